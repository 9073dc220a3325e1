"""Atomic instructions, one active lane after the other, and what orders accesses to memory.

Where one thread runs the programs of a launch (``%alone``, cpu/module_translation.py), nothing comes between a load and
a store: updates are those of plain memory then, as in memory of the program's own. Updates of several threads may be
made later (delayed_updates.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..spirv.opcodes import Scope, StorageClass
from .decoded_module import ModuleInstruction
from .divergence import Key
from .errors import Untranslatable
from .loads_and_stores import base_of, load_neighbours, offsets_of, store_neighbours
from .near_updates import near_type
from .registry import translates
from .translation import ALONE, LOG, Translation
from .watching import order_program, watch

_UPDATES = {
    "OpAtomicIAdd": "add",
    "OpAtomicISub": "sub",
    "OpAtomicAnd": "and",
    "OpAtomicOr": "or",
    "OpAtomicXor": "xor",
    "OpAtomicSMax": "max",
    "OpAtomicSMin": "min",
    "OpAtomicUMax": "umax",
    "OpAtomicUMin": "umin",
    "OpAtomicExchange": "xchg",
    "OpAtomicFAddEXT": "fadd",
}
#: What a semantics operand's bits that order something are (section 3.25): Acquire, Release, both, and in sequence.
_ORDERS = 0x2 | 0x4 | 0x8 | 0x10


#: Update → the intrinsic that is the same of two integers.
_CHOICES = {"max": "smax", "min": "smin", "umax": "umax", "umin": "umin"}


@translates(*_UPDATES)
def _update(t: Translation, item: ModuleInstruction) -> None:
    key, name = t.keys(item.result)[0], _UPDATES[item.name]
    type_ = t.type_name(key)
    operands = [t.keys(item.operands[3])[0]]
    locked = f"  %found = atomicrmw {name} ptr %place, {type_} %value monotonic"
    if not near_type(t.program, t.divergence, item):
        _each_lane(t, item, name, operands, ["value"], locked, _plain_update(t, name, type_))
        return
    code, alone, after = t.code, t.code.name("alone"), t.code.name("after")
    first, values = t.scalar(t.keys(item.operands[0])[0]), t.vector(operands[0])
    if not _is_own(t, item):
        several = code.name("several")
        code.branch(ALONE, alone, several)
        code.label(several)
        if t.delayed.most:
            code.helpers.setdefault(f"near_{type_}", _near(t, name, type_))
        _each_lane(t, item, name, operands, ["value"], locked, near=f"near_{type_}")
        code.jump(after)
        code.label(alone)
    found = load_neighbours(t, first, type_, 4, None)
    store_neighbours(t, first, code.emit(f"{name} {t.spread(type_)} {found}, {values}"), type_, 4)
    if not _is_own(t, item):
        code.jump(after)
        code.label(after)


def make_kept(t: Translation, room: bool = False) -> bool:
    """Has a program make the updates of its log, or so that there is ``room`` for a round of a loop. Gives whether
    others may have to wait for some, which they do not."""
    if t.delayed.most:
        several, after = t.code.name("several"), t.code.name("after")
        t.code.branch(ALONE, after, several)
        t.code.label(several)
        if room:
            full, held = t.code.name("full"), t.code.emit(f"load i64, ptr {LOG}, align 64")
            t.code.branch(t.code.emit(f"icmp ugt i64 {held}, {t.delayed.full}"), full, after)
            t.code.label(full)
        t.code.call("make_delayed", "void", [("ptr", LOG), ("ptr", "%stop"), ("i1", "true")], declared=True)
        t.code.jump(after)
        t.code.label(after)
    return False


def _near(t: Translation, name: str, type_: str) -> str:
    """The function that adds to the neighbouring elements from %base on that are active, in plain memory."""
    vector, suffix = t.spread(type_), t.suffix(type_)
    t.code.declarations |= {
        f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, {t.mask_type}, {vector})",
        f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, {t.mask_type})",
    }
    return f"""define internal void @near_{type_}(i64 %base, {t.mask_type} %mask, {vector} %values) {{
entry:
  %place = inttoptr i64 %base to ptr
  %active = bitcast {t.mask_type} %mask to i{t.lanes}
  %all = icmp eq i{t.lanes} %active, -1
  br i1 %all, label %every, label %some
every:
  %found = load {vector}, ptr %place, align 1
  %new = {name} {vector} %found, %values
  store {vector} %new, ptr %place, align 1
  ret void
some:
  %old = call {vector} @llvm.masked.load.{suffix}.p0(ptr align 1 %place, {t.mask_type} %mask, {vector} poison)
  %sum = {name} {vector} %old, %values
  call void @llvm.masked.store.{suffix}.p0({vector} %sum, ptr align 1 %place, {t.mask_type} %mask)
  ret void
}}"""


def _is_own(t: Translation, item: ModuleInstruction) -> bool:
    """Whether only this thread has the memory: that of a workgroup, whose lanes act one after the other."""
    return t.program.type(item.operands[0]).storage == StorageClass.Workgroup


def _plain_update(t: Translation, name: str, type_: str) -> str:
    """An update of memory that no other thread has: a load and a store."""
    size = _bytes(type_)
    made, stored = f"%new = {name} {type_} %found, %value", "%new"
    if name == "xchg":
        made, stored = "", "%value"
    elif name in _CHOICES:
        function = f"@llvm.{_CHOICES[name]}.{type_}"
        t.code.declarations.add(f"declare {type_} {function}({type_}, {type_})")
        made = f"%new = call {type_} {function}({type_} %found, {type_} %value)"
    return f"""  %found = load {type_}, ptr %place, align {size}
  {made}
  store {type_} {stored}, ptr %place, align {size}"""


def _bytes(type_: str) -> int:
    return 8 if type_ == "double" else 4 if type_ == "float" else max(int(type_[1:]) // 8, 1)


@translates("OpAtomicCompareExchange")
def _exchange(t: Translation, item: ModuleInstruction) -> None:
    type_ = t.type_name(t.keys(item.result)[0])
    size = _bytes(type_)
    locked = f"""  %pair = cmpxchg ptr %place, {type_} %compared, {type_} %value monotonic monotonic
  %found = extractvalue {{ {type_}, i1 }} %pair, 0"""
    plain = f"""  %found = load {type_}, ptr %place, align {size}
  %equal = icmp eq {type_} %found, %compared
  %new = select i1 %equal, {type_} %value, {type_} %found
  store {type_} %new, ptr %place, align {size}"""
    operands = [t.keys(item.operands[number])[0] for number in (4, 5)]
    _each_lane(t, item, "cas", operands, ["value", "compared"], locked, plain)


@translates("OpAtomicLoad")
def _load(t: Translation, item: ModuleInstruction) -> None:
    type_ = t.type_name(t.keys(item.result)[0])
    size = t.program.size(item.type)
    read = f"  %found = load atomic {type_}, ptr %place monotonic, align {size}"
    _each_lane(t, item, "load", [], [], read)


@translates("OpAtomicStore")
def _store(t: Translation, item: ModuleInstruction) -> None:
    value = t.keys(item.operands[3])[0]
    size = t.program.size(t.divergence.scalar_type(value))
    write = f"  store atomic {t.type_name(value)} %value, ptr %place monotonic, align {size}"
    _each_lane(t, item, "store", [value], ["value"], write)


def _watched(t: Translation, pointer: int) -> tuple[Key, int]:
    """The place and the bytes of what an atomic instruction accesses. An element that is smaller than a word is updated
    by exchanges of the word that it lies in (lowering/atomics.py), whose other elements keep their values: races are
    those of the element."""
    program = t.program
    size = program.size(program.type(pointer).element)
    item = program.definitions.get(pointer)
    while program.watched and item is not None and item.name in ("OpBitcast", "OpConvertUToPtr"):
        item = program.definitions.get(item.operands[0])
    if program.watched and item is not None and item.name == "OpBitwiseAnd":
        element, mask = item.operands
        known = program.constants.get(mask)
        if known is not None and known.bits == (1 << 64) - size:
            return t.keys(element)[0], 1
    return t.keys(pointer)[0], size


def _each_lane(
    t: Translation,
    item: ModuleInstruction,
    name: str,
    operands: Sequence[Key],
    names: Sequence[str],
    locked: str,
    plain: str = "",
    near: str = "",
) -> None:
    """Has the active lanes do one after the other what ``locked`` says of %place and the operands, by their names; if
    no other thread has the memory, what ``plain`` says, if it says anything. What they call %found is the lane's
    result, which is kept if something uses it. ``near``: what adds to all lanes' neighbouring places later (_near)."""
    address = t.keys(item.operands[0])[0]
    watch(t, item, *_watched(t, item.operands[0]))
    result = t.keys(item.result)[0] if item.result and item.result in t.program.mentioned else None
    type_ = t.type_name(t.keys(item.result)[0] if item.result else operands[0])
    shared = {one for one, operand in zip(names, operands, strict=True) if t.is_shared(operand) and not near}
    own = bool(plain) and _is_own(t, item)
    helper = f"atomic_{'own_' if own else ''}{name}_{type_}{''.join(f'_{one}' for one in sorted(shared))}"
    helper += "_near" if near else "" if result is None else "_found"
    apart = None if near else offsets_of(t, address)
    places, extension, step = (address, "", 1) if apart is None else (apart.key, apart.extension, apart.step)
    form = ("i64" if near else t.type_name(places), extension, step)
    helper += f"_{form[0]}{extension}{step}"
    if helper not in t.code.helpers:
        ways = [("plain", plain)] if own else [("locked", locked)]
        if plain and not own and t.program.emulation is None:
            ways.append(("plain", plain))
        t.code.helpers[helper] = _helper(t, helper, type_, names, shared, ways, result is not None, near, form)
        t.code.declarations.add(f"declare i{t.lanes} @llvm.cttz.i{t.lanes}(i{t.lanes}, i1)")
    base = t.scalar(address) if near else "0" if apart is None else base_of(t, apart)
    arguments = [
        ("i64", base),
        *([] if near else [(t.vector_type(places), t.vector(places))]),
        (t.mask_type, t.active()),
    ]
    arguments += [
        (type_, t.scalar(operand)) if one in shared else (t.spread(type_), t.vector(operand))
        for one, operand in zip(names, operands, strict=True)
    ]
    arguments += [("i1", ALONE), ("ptr", LOG)]
    returned = t.spread(type_) if result is not None else "void"
    found = t.code.call(helper, returned, arguments, declared=True)
    if result is not None:
        if t.shape(result) is not None:
            raise Untranslatable(t.program.name, f"{item.name} of a shared value", t.where(item))
        t.values[result] = found


def _helper(
    t: Translation,
    helper: str,
    type_: str,
    names: Sequence[str],
    shared: Collection[str],
    ways: Sequence[tuple[str, str]],
    gives: bool,
    near: str,
    form: tuple[str, str, int],
) -> str:
    """The function of ``ways``: (name, body) of one, or of what runs unless and if this thread is alone. ``form``: the
    type of places, how they are extended, and what they are multiplied by before %base is added. The plain way
    has no loop where all lanes are active: elements of vectors are taken apart in registers, before any is updated
    (a histogram of 2^18 numbers by atomics 147 µs; from memory 343, as loads wait for the stores before them).

    Vectors of other lanes are in memory: an element whose number is not constant is read or written there in any case,
    and a vector that is written anew for each lane would be waited for (histograms 0.24 of torch instead of 0.09)."""
    lanes, vector, bits, size = t.lanes, t.spread(type_), f"i{t.lanes}", _bytes(type_)
    number, extension, step = form
    type_of_places, places = t.spread(number), "%places"
    if near:
        places = t.constant_vector("i64", [lane * size for lane in range(lanes)])
    given = [("i64", "%base"), *([] if near else [(type_of_places, places)]), (t.mask_type, "%mask")]
    given += [(type_, f"%{name}") if name in shared else (vector, f"%{name}s") for name in names]
    spread = [name for name in names if name not in shared]
    made = [f"  %all = alloca {type_of_places}, align 64"]
    made += [f"  %at{name} = alloca {vector}, align 64" for name in spread]
    put = f"  store {type_of_places} {places}, ptr %all, align 64\n"
    put += "".join(f"  store {vector} %{name}s, ptr %at{name}, align 64\n" for name in spread)
    kept, final = "", "  ret void"
    if gives:
        made += [f"  %results = alloca {vector}, align 64", f"  store {vector} zeroinitializer, ptr %results, align 64"]
        kept = (
            f"  %result = getelementptr {type_}, ptr %results, i64 INDEX\n"
            f"  store {type_} %found, ptr %result, align {size}\n"
        )
        final = f"  %end = load {vector}, ptr %results, align 64\n  ret {vector} %end"
    taken = f"  %of = getelementptr {number}, ptr %all, i64 INDEX\n  %at = load {number}, ptr %of, align 4\n" + "".join(
        f"  %to{name} = getelementptr {type_}, ptr %at{name}, i64 INDEX\n"
        f"  %{name} = load {type_}, ptr %to{name}, align {size}\n"
        for name in spread
    )
    values = "".join(f"  %{name} = extractelement {vector} %{name}s, i64 INDEX\n" for name in spread)
    taken += "" if number == "i64" else f"  %wide = {extension} {number} %at to i64\n"
    pointer = f"  %bytes = mul i64 {'%at' if number == 'i64' else '%wide'}, {step}\n  %number = add i64 %base, %bytes\n"
    pointer += "  %place = inttoptr i64 %number to ptr\n"
    common = {"base", "places", "results", "all", "pairs", *shared, *(f"pair{lane}" for lane in range(0, lanes, 2))}
    common |= {text for name in spread for text in (f"at{name}", f"{name}s")}

    def one(text: str, index: str, mark: str) -> str:
        """What a lane does, with names of its own."""
        own = re.sub(r"%(\w+)", lambda found: found[0] if found[1] in common else f"{found[0]}.{mark}", text)
        return own.replace("INDEX", index)

    blocks = ""
    for way, body in ways:
        begin, looped = way, f"{taken}{pointer}{body}\n{kept}"
        if way == "plain":
            begin = "some"
            splits = [_split(places, form, lane, lanes) + values + pointer for lane in range(lanes)]
            parts = [*splits, *[f"{body}\n{kept}"] * lanes]
            every = "".join(one(part, str(at % lanes), str(at % lanes)) for at, part in enumerate(parts))
            if number == "i32":
                every = f"  %pairs = bitcast {type_of_places} {places} to <{lanes // 2} x i64>\n{every}"
            blocks += f"""plain:
  %full = icmp eq {bits} %active, -1
  br i1 %full, label %every, label %some
every:
{every}  br label %done
"""
        blocks += f"""{begin}:
{put}  %any.{way} = icmp ne {bits} %active, 0
  br i1 %any.{way}, label %lanes.{way}, label %done
lanes.{way}:
  %left.{way} = phi {bits} [%active, %{begin}], [%fewer.{way}, %lanes.{way}]
  %lane.{way} = call {bits} @llvm.cttz.{bits}({bits} %left.{way}, i1 true)
  %index.{way} = {"add i64" if lanes == 64 else f"zext {bits}"} %lane.{way}{", 0" if lanes == 64 else " to i64"}
{one(looped, f"%index.{way}", way)}  %minus.{way} = sub {bits} %left.{way}, 1
  %fewer.{way} = and {bits} %left.{way}, %minus.{way}
  %again.{way} = icmp ne {bits} %fewer.{way}, 0
  br i1 %again.{way}, label %lanes.{way}, label %done
"""
    begun = f"  br label %{ways[0][0]}\n"
    if near:
        begun = t.delayed.keep(near, given, "", "locked", "fadd" if type_ == "float" else "add")
    elif len(ways) > 1:
        keep = t.delayed.keep(helper, given, ", i1 true, ptr null", "locked")
        begun = f"  br i1 %alone, label %plain, label %shared\nshared:\n{keep}"
    before = "\n".join(made)
    head = ", ".join(f"{kind} {name}" for kind, name in [*given, ("i1", "%alone"), ("ptr", "%log")])
    return f"""define internal {vector if gives else "void"} @{helper}({head}) {{
entry:
{before}
  %active = bitcast {t.mask_type} %mask to {bits}
{begun}{blocks}done:
{final}
}}"""


def _split(places: str, form: tuple[str, str, int], lane: int, lanes: int) -> str:
    """What takes the number of a lane's place from the vector. Those of 32 bits leave it by twos, for a processor takes
    one element of a vector to its other registers at a time: LLVM is not told what a pair is made of, or it would take
    both. Scatter add of 2^18 elements takes 107 µs instead of 125."""
    number, extension, _ = form
    if number != "i32":
        return f"  %at = extractelement <{lanes} x {number}> {places}, i64 INDEX\n" + (
            "" if number == "i64" else f"  %wide = {extension} {number} %at to i64\n"
        )
    if lane % 2:
        return f"  %wide = {'ashr' if extension == 'sext' else 'lshr'} i64 %pair{lane - 1}, 32\n"
    return f"""  %both = extractelement <{lanes // 2} x i64> %pairs, i64 {lane // 2}
  %pair{lane} = call i64 asm "", "=r,0"(i64 %both)
  %low = trunc i64 %pair{lane} to i32
  %wide = {extension} i32 %low to i64
"""


@translates("OpControlBarrier", "OpMemoryBarrier")
def _barrier(t: Translation, item: ModuleInstruction) -> None:
    """Subgroups of an emulated device wait for each other. A workgroup of the processor is one subgroup, whose lanes
    run together: what is left of a barrier is the order of accesses that other programs see."""
    workgroup = item.name == "OpControlBarrier" and t.program.constants[item.operands[0]].bits == Scope.Workgroup
    if workgroup and t.subgroups > 1:
        t.code.call("triton_spirv_barrier", "void", [])
    order_program(t, item)
    if t.program.constants[item.operands[-1]].bits & _ORDERS:
        t.code.do("fence acq_rel")
