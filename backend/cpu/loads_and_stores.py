"""Loads and stores: of a place that all lanes share, of neighbouring places, and of any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..spirv.opcodes import BuiltIn, StorageClass
from . import spread_access
from .decoded_module import IN_SCRATCH, KernelModule, ModuleInstruction
from .divergence import Key
from .errors import Untranslatable
from .lane_shapes import LaneShape
from .registry import translates
from .translation import Translation
from .watching import watch

_WORKGROUP = {BuiltIn.WorkgroupId: "%program", BuiltIn.NumWorkgroups: "%grid"}


@translates("OpAccessChain")
def _access(t: Translation, item: ModuleInstruction) -> None:
    """The address: the base's, and what each index adds. Built-ins and arguments have none: a load finds them."""
    pointer = item.operands[0]
    variable = t.program.variables.get(pointer)
    if variable is not None and variable.storage not in IN_SCRATCH:
        return
    key = t.keys(item.result)[0]
    shape, code = t.shape(key), t.code
    if shape is not None and shape.known:
        return
    spread = shape is None
    type_ = t.spread("i64") if spread else "i64"
    total = _base(t, pointer, spread)
    offset, parts = t.divergence.path(item)
    # An index is signed (section 3.3.8 of the specification). Those into variables are never negative.
    extension = "zext" if variable is not None else "sext"
    for index, stride in parts:
        found = t.keys(index)[0]
        value = t.vector(found) if spread else t.scalar(found)
        width = t.divergence.bits(found)
        if not value.startswith("%") and not spread:
            if int(value):
                total = code.emit(f"add i64 {total}, {int(value) * stride}")
            continue
        if width < 64:
            value = code.emit(f"{extension} {t.vector_type(found) if spread else f'i{width}'} {value} to {type_}")
        value = code.emit(f"mul {type_} {value}, {t.splat_literal(type_, 'i64', stride)}")
        total = code.emit(f"add {type_} {total}, {value}")
    if offset:
        total = code.emit(f"add {type_} {total}, {t.splat_literal(type_, 'i64', offset)}")
    own = variable is not None and variable.storage != StorageClass.Workgroup and pointer not in t.program.tables
    if spread and own:
        size = t.program.size(t.program.type(item.result).element)
        lanes = t.constant_vector("i64", [size * lane for lane in range(t.lanes)])
        total = code.emit(f"add {type_} {total}, {lanes}")
    t.values[key] = total


def _base(t: Translation, pointer: int, spread: bool) -> str:
    """The address of a variable or of what a pointer points to, of all lanes or of lane 0."""
    if pointer not in t.program.variables:
        key = t.keys(pointer)[0]
        return t.vector(key) if spread else t.scalar(key)
    base = t.code.recall(("place", pointer)) or f"%place{pointer}"
    return t.splat("i64", base) if spread else base


@translates("OpLoad")
def _load(t: Translation, item: ModuleInstruction) -> None:
    pointer = item.operands[0]
    storage = t.program.type(pointer).storage
    if storage == StorageClass.Input:
        _load_built_in(t, item)
    elif storage == StorageClass.PushConstant:
        _load_argument(t, item)
    else:
        address = t.keys(pointer)[0]
        keys = t.keys(item.result)
        size = t.program.size(t.divergence.scalar_type(keys[0]))
        watch(t, item, address, size * len(keys))
        if len(keys) > 1 and t.shape(address) is not None and _vectors(t, address, keys, size):
            return
        for place, key in enumerate(keys):
            name, otherwise = t.type_name(key), _instead(t, item, place)
            if name != "i1":
                t.values[key] = load(t, address, place * size, name, size, t.shape(key), otherwise)
                continue
            found = load(t, address, place, "i8", 1, t.shape(key))  # a byte in memory
            spread = t.shape(key) is None
            bytes_, bits = (t.spread("i8"), t.mask_type) if spread else ("i8", "i1")
            t.values[key] = t.code.emit(f"trunc {bytes_} {found} to {bits}")


def _instead(t: Translation, item: ModuleInstruction, place: int) -> Key | None:
    found = t.otherwise.get(item.result)
    return None if found is None else t.keys(found)[place]  # type: ignore[arg-type]


def _load_built_in(t: Translation, item: ModuleInstruction) -> None:
    key = t.keys(item.result)[0]
    shape = t.shape(key)
    assert shape is not None
    if shape.known:
        return
    definition = t.program.definitions.get(item.operands[0])
    variable = item.operands[0] if definition is None else definition.operands[0]
    number = t.program.built_ins[variable]
    if definition is None and number == BuiltIn.SubgroupId:
        t.values[key] = "%subgroup"
        return
    if number == BuiltIn.SMIDNV:  # every program runs on the first multiprocessor
        t.values[key] = "0"
        return
    if definition is None or number not in (*_WORKGROUP, BuiltIn.GlobalInvocationId):
        raise Untranslatable(t.program.name, f"built-in {number}", t.where(item))
    axis = t.program.constants[definition.operands[1]].bits
    if number == BuiltIn.GlobalInvocationId:  # a workgroup has one invocation along y and z
        t.values[key] = f"%program{'xyz'[axis]}" if axis else _first_invocation(t)
        return
    t.values[key] = f"{_WORKGROUP[number]}{'xyz'[axis]}"


def _first_invocation(t: Translation) -> str:
    """The number of lane 0's invocation along x."""
    before = t.code.emit(f"mul i32 %programx, {t.program.local_size}")
    return t.code.emit(f"add i32 {before}, {t.code.emit(f'mul i32 %subgroup, {t.lanes}')}")


def _load_argument(t: Translation, item: ModuleInstruction) -> None:
    """A word of the argument block."""
    offset, definition, base = 0, t.program.definitions.get(item.operands[0]), "%arguments"
    if definition is not None:
        offset, parts = t.program.path(t.program.variables[definition.operands[0]].type, definition.operands[1:])
        for index, stride in parts:
            known = t.program.constants.get(index)
            if known is not None:
                offset += known.bits * stride
            else:
                base = _further(t, item, base, index, stride)
    for place, key in enumerate(t.keys(item.result)):
        name, size = t.type_name(key), t.program.size(t.divergence.scalar_type(key))
        at = t.code.emit(f"getelementptr inbounds i8, ptr {base}, i64 {offset + place * size}")
        t.values[key] = t.code.emit(f"load {name}, ptr {at}, align {size}, !invariant.load !0")


def _further(t: Translation, item: ModuleInstruction, base: str, index: int, stride: int) -> str:
    """The place of an element of the argument block whose number all lanes share."""
    key = t.keys(index)[0]
    shape = t.shape(key)
    if shape is None or not shape.uniform:
        raise Untranslatable(t.program.name, "a push constant whose number differs between lanes", t.where(item))
    name, number = t.type_name(key), t.scalar(key)
    wide = number if name == "i64" else t.code.emit(f"zext {name} {number} to i64")
    return t.code.emit(f"getelementptr inbounds i8, ptr {base}, i64 {t.code.emit(f'mul i64 {wide}, {stride}')}")


def _at(t: Translation, address: Key, offset: int) -> str:
    """The address of lane 0, and so many bytes on."""
    base = t.scalar(address)
    if not offset:
        return base
    return t.code.emit(f"add i64 {base}, {offset}")


def _spread_addresses(t: Translation, address: Key, offset: int) -> str:
    base = t.vector(address)
    if not offset:
        return base
    return t.code.emit(f"add {t.spread('i64')} {base}, splat (i64 {offset})")


def _stepped(shape: LaneShape | None, size: int, step: int = 1) -> bool:
    """Whether neighbouring lanes have elements of so many bytes that are ``step`` elements apart."""
    return shape is not None and all(
        offset - shape.offsets[0] == size * step * lane for lane, offset in enumerate(shape.offsets)
    )


def load(
    t: Translation,
    address: Key,
    offset: int,
    name: str,
    size: int,
    result: LaneShape | None,
    otherwise: Key | None = None,
) -> str:
    """A scalar of each lane, ``offset`` bytes behind an address; of lanes that are not active ``otherwise``, or any
    number."""
    shape, code = t.shape(address), t.code
    if result is not None:
        return _load_shared(t, _at(t, address, offset), name, size)
    if _stepped(shape, size):
        return load_neighbours(t, _at(t, address, offset), name, size, otherwise)
    root = _root(t, address)
    if root is None:
        return _gather(t, address, offset, name, size, otherwise)
    together, apart, after = (code.name(kind) for kind in ("near", "far", "after"))
    code.branch(t.near[root][0], together, apart)
    found = []
    for label in (together, apart):
        code.label(label)
        with code.scope():
            if label == together:
                value = load_neighbours(t, t.lane_0(address), name, size, otherwise)
            else:
                value = _gather(t, address, offset, name, size, otherwise)
        found.append((value, code.block))
        code.jump(after)
    code.label(after)
    return code.phi(t.spread(name), found)


def _root(t: Translation, address: Key) -> Key | None:
    """The number whose lanes say whether those of an address are neighbours; None where nothing says it."""
    step = t.neighbours.steps.get(address)
    return step.root if step is not None and step.root in t.near else None


def load_neighbours(t: Translation, first: str, name: str, size: int, otherwise: Key | None) -> str:
    """Neighbouring elements, from the address of lane 0 on."""
    code, type_, mask = t.code, t.spread(name), t.mask
    pointer = t.pointer(first)
    if mask is None:
        return code.emit(f"load {type_}, ptr {pointer}, align {size}")
    instead = "zeroinitializer" if otherwise is None else t.vector(otherwise)
    if not t.host.masks:
        arguments = [("ptr", pointer), (t.mask_type, mask), (type_, instead)]
        return code.call(spread_access.masked_load(t, name, size), type_, arguments, declared=True)
    arguments = [(f"ptr align {size}", pointer), (t.mask_type, mask), (type_, instead)]
    return code.call(
        f"llvm.masked.load.{t.suffix(name)}.p0", type_, arguments, declared=_declare_masked(t, "load", name)
    )


def _gather(t: Translation, address: Key, offset: int, name: str, size: int, otherwise: Key | None) -> str:
    """Elements of any places."""
    shape = t.shape(address)
    if shape is not None and t.mask is None and size > 1 and _stepped(shape, size, 2):
        return _every_second(t, _at(t, address, offset), name, size)
    if (indexed := _loaded_index(t, address, size)) is not None:
        return _gather_indexed(t, indexed, offset, name, size, otherwise)
    helper = spread_access.gather(t, name, size)
    instead = "zeroinitializer" if otherwise is None or t.mask is None else t.vector(otherwise)
    addresses = _spread_addresses(t, address, offset)
    arguments = [(t.spread("i64"), addresses), (t.mask_type, t.active()), (t.spread(name), instead)]
    return t.code.call(helper, t.spread(name), arguments, declared=True)


def _every_second(t: Translation, first: str, name: str, size: int) -> str:
    """Every second element, by two loads. What is between two of them is in the page of one."""
    code, lanes, type_ = t.code, t.lanes, t.spread(name)
    last = code.emit(f"add i64 {first}, {(lanes - 1) * size}")
    parts = [code.emit(f"load {type_}, ptr {t.pointer(place)}, align {size}") for place in (first, last)]
    chosen = [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]
    mask = ", ".join(f"i32 {place}" for place in chosen)
    return code.emit(f"shufflevector {type_} {parts[0]}, {type_} {parts[1]}, <{lanes} x i32> <{mask}>")


class Offsets(NamedTuple):
    """Addresses of lanes: behind ``base``, which all lanes share, and ``before`` bytes more, ``step`` times the number
    ``key``, which is extended to 64 bits by ``extension``."""

    base: int
    before: int
    key: Key
    extension: str
    step: int


def offsets_of(t: Translation, address: Key) -> Offsets | None:
    """An address taken apart: of the numbers that are left vectors are shorter, and a processor's addresses multiply
    them. None where nothing is extended or multiplied."""
    program = t.program
    item = program.definitions.get(address) if isinstance(address, int) else None
    if item is None or t.shape(address) is not None:
        return None
    if item.name == "OpAccessChain":
        variable, (before, parts) = program.variables.get(item.operands[0]), t.divergence.path(item)
        if variable is None or variable.storage != StorageClass.Workgroup or len(parts) != 1:
            return None
        index, step = parts[0]
        return Offsets(item.operands[0], before, t.keys(index)[0], "zext", step) if _is_word(program, index) else None
    for base, behind in (item.operands, item.operands[::-1]) if item.name == "OpIAdd" else ():
        if not t.is_shared(t.keys(base)[0]):
            continue
        index, step = behind, 1
        shift = program.definitions.get(index)
        if shift is not None and shift.name == "OpShiftLeftLogical" and shift.operands[1] in program.constants:
            index, step = shift.operands[0], 1 << program.constants[shift.operands[1]].bits
        wide = program.definitions.get(index)
        if wide is not None and wide.name == "OpSConvert" and _is_word(program, wide.operands[0]):
            index = wide.operands[0]
        return None if index == behind else Offsets(base, 0, t.keys(index)[0], "sext", step)
    return None


def _is_word(program: KernelModule, value: int) -> bool:
    return program.size(program.type_of[value]) == 4


def base_of(t: Translation, offsets: Offsets, further: int = 0) -> str:
    """The address that lanes' numbers are added to, and so many bytes on."""
    base, before = _base(t, offsets.base, False), offsets.before + further
    return t.code.emit(f"add i64 {base}, {before}") if before else base


def _loaded_index(t: Translation, address: Key, size: int) -> Offsets | None:
    """An address that a loaded number tells. Such lanes are seldom neighbours, which is not looked for. None on hosts
    without instructions for that."""
    if not (t.host.masks and t.host.vector_bits >= 512 and size in (4, 8)):
        return None
    found = offsets_of(t, address)
    if found is None or found.base in t.program.variables or not isinstance(found.key, int):
        return None
    index: int | None = found.key if found.step == size else None
    if found.step == 1:
        index = _scaled(t.program, _apart(t, found.key), size)
    return found if index is not None and _is_loaded(t, index) else None


def _scaled(program: KernelModule, item: ModuleInstruction | None, size: int) -> int | None:
    """What is shifted to multiply it with a size."""
    if item is None or item.name != "OpShiftLeftLogical":
        return None
    known = program.constants.get(item.operands[1])
    return item.operands[0] if known is not None and 1 << known.bits == size else None


def _apart(t: Translation, value: int) -> ModuleInstruction | None:
    """What gives a number, without numbers that all lanes share and that are added to it."""
    item = t.program.definitions.get(value)
    while item is not None and item.name == "OpIAdd":
        rest = [operand for operand in item.operands if not t.is_shared(t.keys(operand)[0])]
        item = t.program.definitions.get(rest[0]) if len(rest) == 1 else None
    return item


def _is_loaded(t: Translation, value: int) -> bool:
    """Whether a load gave a number, with or without a mask."""
    item = _apart(t, value)
    if item is None or item.name != "OpPhi":
        return item is not None and item.name == "OpLoad"
    sources = [t.program.definitions.get(source) for source in item.operands[::2]]
    return any(source is not None and source.name == "OpLoad" for source in sources)


def _gather_indexed(t: Translation, places: Offsets, offset: int, name: str, size: int, otherwise: Key | None) -> str:
    code, lanes, type_ = t.code, t.lanes, t.spread(name)
    pointers = f"<{lanes} x ptr>"
    instead = "zeroinitializer" if otherwise is None or t.mask is None else t.vector(otherwise)
    first, indices = t.pointer(base_of(t, places, offset)), f"{t.vector_type(places.key)} {t.vector(places.key)}"
    elements = code.emit(f"getelementptr i{8 * places.step}, ptr {first}, {indices}")
    arguments = [(f"{pointers} align {size}", elements), (t.mask_type, t.active()), (type_, instead)]
    function = f"llvm.masked.gather.{t.suffix(name)}.v{lanes}p0"
    code.declarations.add(f"declare {type_} @{function}({pointers}, {t.mask_type}, {type_})")
    return code.call(function, type_, arguments, declared=True)


def passes_over(t: Translation, body: Sequence[ModuleInstruction]) -> bool:
    """Whether accesses are passed over where no lane is active, and not done under a mask of none. In a round that is
    not within all bounds there may be no memory, where a Zen takes 0.5 µs for such a load; a gather takes as long for
    no lane as for all."""
    return t.rare or any(
        item.name == "OpLoad" and _loaded_index(t, t.keys(item.operands[0])[0], t.program.size(item.type)) is not None
        for item in body
    )


def _declare_masked(t: Translation, kind: str, name: str) -> bool:
    type_ = t.spread(name)
    if kind == "load":
        line = f"declare {type_} @llvm.masked.load.{t.suffix(name)}.p0(ptr, {t.mask_type}, {type_})"
    else:
        line = f"declare void @llvm.masked.store.{t.suffix(name)}.p0({type_}, ptr, {t.mask_type})"
    t.code.declarations.add(line)
    return True


def _load_shared(t: Translation, address: str, name: str, size: int) -> str:
    """A scalar that all lanes read at one place: not read where no lane is active."""
    code = t.code
    if t.mask is None:
        return code.emit(f"load {name}, ptr {t.pointer(address)}, align {size}")
    here, reads, after = code.block, code.name("read"), code.name("after")
    code.branch(t.any_of(t.mask), reads, after)
    code.label(reads)
    found = code.emit(f"load {name}, ptr {t.pointer(address)}, align {size}")
    code.jump(after)
    code.label(after)
    zero = "0x0000000000000000" if name in ("float", "double") else "0xH0000" if name == "half" else "0"
    return code.phi(name, [(found, reads), (zero if name != "i1" else "false", here)])


def _vectors(t: Translation, address: Key, keys: list[Key], size: int) -> bool:
    """Loads a vector for each lane where lanes have neighbouring ones: all at once, and then sorts the components.
    Whether it could."""
    count, name = len(keys), t.type_name(keys[0])
    if t.mask is not None or not _stepped(t.shape(address), size * count):
        return False
    wide = f"<{t.lanes * count} x {name}>"
    loaded = t.code.emit(f"load {wide}, ptr {t.pointer(t.scalar(address))}, align {size}")
    for place, key in enumerate(keys):
        picked = ", ".join(f"i32 {lane * count + place}" for lane in range(t.lanes))
        t.values[key] = t.code.emit(f"shufflevector {wide} {loaded}, {wide} poison, <{t.lanes} x i32> <{picked}>")
    return True


@translates("OpStore")
def _store(t: Translation, item: ModuleInstruction) -> None:
    pointer, value = item.operands[:2]
    address = t.keys(pointer)[0]
    if t.program.type(value).kind == "array":
        _clear(t, item, address)
        return
    keys = t.keys(value)
    size = t.program.size(t.divergence.scalar_type(keys[0]))
    watch(t, item, address, size * len(keys))
    for place, key in enumerate(keys):
        store(t, address, place * size, key, size)


def _clear(t: Translation, item: ModuleInstruction, address: Key) -> None:
    """An array of zeros."""
    if not t.program.constants[item.operands[1]].null:
        raise Untranslatable(t.program.name, "a store of a whole array", t.where(item))
    type_id = t.program.type_of[item.operands[1]]
    if t.mask is not None:
        _blend(t, item, type_id, item.operands[0], None)
        return
    pointer, count = t.pointer(f"%place{item.operands[0]}"), t.program.size(type_id) * t.lanes
    t.code.call("llvm.memset.p0.i64", "void", [("ptr", pointer), ("i8", "0"), ("i64", str(count)), ("i1", "false")])


@translates("OpCopyMemory")
def _copy(t: Translation, item: ModuleInstruction) -> None:
    """One array of the invocation's own to another one of the same type."""
    to, source = item.operands[:2]
    type_id = t.program.variables[to].type
    if t.mask is not None:
        _blend(t, item, type_id, to, source)
        return
    count = t.program.size(type_id) * t.lanes
    pointers = [("ptr", t.pointer(f"%place{variable}")) for variable in (to, source)]
    t.code.call("llvm.memcpy.p0.p0.i64", "void", [*pointers, ("i64", str(count)), ("i1", "false")])


def _blend(t: Translation, item: ModuleInstruction, type_id: int, to: int, source: int | None) -> None:
    """Gives the active lanes the elements of another array, or zeros, and leaves those of the other lanes: a loop over
    the elements, which lie side by side for all lanes. Nothing is done if no lane is active."""
    code, known = t.code, t.program.types[type_id]
    if known.kind != "array" or t.program.types[known.element].kind not in ("bool", "int", "float", "pointer"):
        raise Untranslatable(t.program.name, "a whole array in a branch of some lanes", t.where(item))
    size = t.program.size(known.element)
    wide, before = t.spread(f"i{8 * size}"), code.block
    each, after = code.name("each"), code.name("after")
    code.branch(t.any_of(t.active()), each, after)
    code.label(each)
    with code.scope():
        number = code.phi("i64", [("0", before)])
        offset = code.emit(f"mul i64 {number}, {size * t.lanes}")
        places = [code.emit(f"add i64 %place{one}, {offset}") for one in (to, source) if one is not None]
        old, *others = [code.emit(f"load {wide}, ptr {t.pointer(place)}, align {size}") for place in places]
        new = others[0] if others else "zeroinitializer"
        chosen = code.emit(f"select {t.mask_type} {t.active()}, {wide} {new}, {wide} {old}")
        code.do(f"store {wide} {chosen}, ptr {t.pointer(places[0])}, align {size}")
        following = code.emit(f"add i64 {number}, 1")
        code.add_incoming(number, following, code.block)
        code.branch(code.emit(f"icmp eq i64 {following}, {known.count}"), after, each)
    code.label(after)


def store(t: Translation, address: Key, offset: int, value: Key, size: int) -> None:
    """Stores a scalar of each active lane ``offset`` bytes behind an address; the last of several lanes that name one
    place."""
    shape, code, name = t.shape(address), t.code, t.type_name(value)
    if shape is not None and shape.uniform:
        _store_shared(t, _at(t, address, offset), value, size)
        return
    text, name = _in_memory(t, t.vector(value), name, True)
    if _stepped(shape, size):
        store_neighbours(t, _at(t, address, offset), text, name, size)
        return
    root = _root(t, address)
    if root is None:
        _scatter(t, address, offset, text, name, size)
        return
    together, apart, after = (code.name(kind) for kind in ("near", "far", "after"))
    code.branch(t.near[root][0], together, apart)
    for label in (together, apart):
        code.label(label)
        with code.scope():
            if label == together:
                store_neighbours(t, t.lane_0(address), text, name, size)
            else:
                _scatter(t, address, offset, text, name, size)
        code.jump(after)
    code.label(after)


def store_neighbours(t: Translation, first: str, text: str, name: str, size: int) -> None:
    """Stores neighbouring elements, from the address of lane 0 on."""
    code, type_ = t.code, t.spread(name)
    pointer = t.pointer(first)
    if t.mask is None:
        code.do(f"store {type_} {text}, ptr {pointer}, align {size}")
    elif not t.host.masks:
        helper = spread_access.masked_store(t, name, size)
        code.call(helper, "void", [(type_, text), ("ptr", pointer), (t.mask_type, t.mask)], declared=True)
    else:
        arguments = [(type_, text), (f"ptr align {size}", pointer), (t.mask_type, t.mask)]
        declared = _declare_masked(t, "store", name)
        code.call(f"llvm.masked.store.{t.suffix(name)}.p0", "void", arguments, declared=declared)


def _scatter(t: Translation, address: Key, offset: int, text: str, name: str, size: int) -> None:
    """Stores elements at any places."""
    helper = spread_access.scatter(t, name, size)
    arguments = [
        (t.spread(name), text),
        (t.spread("i64"), _spread_addresses(t, address, offset)),
        (t.mask_type, t.active()),
    ]
    t.code.call(helper, "void", arguments, declared=True)


def _in_memory(t: Translation, text: str, name: str, spread: bool) -> tuple[str, str]:
    """A value and its type as they are in memory: a condition is a byte."""
    if name != "i1":
        return text, name
    bits, bytes_ = (t.mask_type, t.spread("i8")) if spread else ("i1", "i8")
    return t.code.emit(f"zext {bits} {text} to {bytes_}"), "i8"


def _store_shared(t: Translation, address: str, value: Key, size: int) -> None:
    """A store of all lanes to one place."""
    code, name = t.code, t.type_name(value)
    spread = t.shape(value) is None or not t.shape(value).uniform  # type: ignore[union-attr]
    text, name = _in_memory(t, t.vector(value) if spread else t.scalar(value), name, spread)
    if t.mask is None:
        if spread:
            text = code.emit(f"extractelement {t.spread(name)} {text}, i32 {t.lanes - 1}")
        code.do(f"store {name} {text}, ptr {t.pointer(address)}, align {size}")
        return
    known = t.known_mask()
    if known is not None:
        if any(known):
            if spread:
                chosen = max(lane for lane, active in enumerate(known) if active)
                text = code.emit(f"extractelement {t.spread(name)} {text}, i32 {chosen}")
            code.do(f"store {name} {text}, ptr {t.pointer(address)}, align {size}")
        return
    writes, after, bits = code.name("write"), code.name("after"), f"i{t.lanes}"
    mask = code.emit(f"bitcast {t.mask_type} {t.mask} to {bits}")
    code.branch(code.emit(f"icmp ne {bits} {mask}, 0"), writes, after)
    code.label(writes)
    if spread:
        zeros = code.call(f"llvm.ctlz.{bits}", bits, [(bits, mask), ("i1", "true")])
        last = code.emit(f"sub {bits} {t.lanes - 1}, {zeros}")
        text = code.emit(f"extractelement {t.spread(name)} {text}, {bits} {last}")
    code.do(f"store {name} {text}, ptr {t.pointer(address)}, align {size}")
    code.jump(after)
    code.label(after)
