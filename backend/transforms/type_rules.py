"""Which types and encodings operations take: those that ``ttgir/assembly.py`` says follow from each other, the shapes
of what moves elements, and that encodings which meet hold the same elements in the same lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..analysis.axis_info.hints import hint_faults
from ..layouts.distributed import LANE, REGISTER, WARP, LayoutError, distributed_layout
from ..layouts.linear import LinearLayout
from ..layouts.strips import strip_type
from ..ttgir.assembly import FORMATS
from ..ttgir.encodings import DotOperandEncoding, Encoding, SliceEncoding, transposed_back
from ..ttgir.formats import CONSTANT_TYPES
from ..ttgir.ir import DenseAttr, Operation, Value
from ..ttgir.traits import traits
from ..ttgir.type_reader import PLAIN_TYPES, element_of
from ..ttgir.types import MemDescType, PointerType, TensorType, Type, encoding_of

I1 = PLAIN_TYPES["i1"]


def type_faults(operation: Operation) -> Iterator[str]:
    """What is wrong with the number of an operation's operands and results, with their types, and with its hints."""
    row = FORMATS.get(operation.name)
    if row is not None:
        results = row.results_of([result.type for result in operation.results])
        counts = zip(row.operands, operation.segments, strict=False)
        if len(operation.segments) != len(row.operands) or any(
            not suffix and count != 1 or suffix == "?" and count > 1 for (_, suffix), count in counts
        ):
            yield f"segments {operation.segments} of its operands"
            return
        if results is None:
            yield f"it has {len(operation.results)} results"
            return
        if missing := [name for name in row.required if name not in operation.attributes]:
            yield f"it lacks the attribute '{missing[0]}'"
            return
        yield from _unequal(operation)
    yield from hint_faults(operation)
    rule = _RULES.get(operation.name)
    if rule is not None and not rule(operation):
        types = [value.type for value in (*operation.operands, *operation.results)]
        yield f"it does not go with the types ({', '.join(map(str, types))})"


def _unequal(operation: Operation) -> Iterator[str]:
    """Types that do not follow from others as the row says."""
    row = FORMATS[operation.name]
    types: dict[str, list[Type]] = {}
    for number, (name, _) in enumerate(row.operands):
        types[name] = [value.type for value in operation.operand_group(number)]
    spread = row.results_of([result.type for result in operation.results])
    assert spread is not None
    types.update((name, given) for (name, _), given in zip(row.results, spread, strict=True))
    for target, function, source in row.type_equations(next(iter(types), "")):
        constant = CONSTANT_TYPES.get(source)
        known = constant or next(iter(types[source]), None)
        needed = _DERIVED[function](known) if known is not None else None
        if any(type_ != needed for type_ in types[target]):
            yield f"'{target}' has the type {types[target][0]}, which does not follow from that of '{source}'"


def _with_element(type_: Type, element: Type) -> Type:
    return replace(type_, element=element) if isinstance(type_, TensorType) else element


def _pointee(type_: Type) -> Type | None:
    pointer = element_of(type_)
    return _with_element(type_, pointer.pointee) if isinstance(pointer, PointerType) else None


_DERIVED: dict[str, Callable[[Type], Type | None]] = {
    "": lambda type_: type_,
    "i1": lambda type_: _with_element(type_, I1),
    "pointee": _pointee,
    "element": element_of,
}


# -- shapes ------------------------------------------------------------------------------------------------------
def _shape(value: Value) -> tuple[int, ...]:
    return value.type.shape if isinstance(value.type, TensorType | MemDescType) else ()


def _element(value: Value) -> Type:
    return value.type.element if isinstance(value.type, TensorType | MemDescType) else value.type


def _same_elements(operation: Operation) -> bool:
    return len({_element(value) for value in (*operation.operands, *operation.results)}) == 1


def _alike(one: Value, other: Value) -> bool:
    """Whether two values have the same elements in the same shape."""
    return _shape(one) == _shape(other) and _element(one) == _element(other)


def _moves(operation: Operation) -> bool:
    return _alike(operation.operands[0], operation.result)


def _broadcasts(operation: Operation) -> bool:
    source, result = _shape(operation.operands[0]), _shape(operation.result)
    return _same_elements(operation) and len(source) == len(result) and all(map(_widens, source, result))


def _widens(extent: int, wider: int) -> bool:
    return extent in (1, wider)


def _expands(operation: Operation) -> bool:
    source, axis = _shape(operation.operands[0]), operation.attributes["axis"]
    return _same_elements(operation) and _shape(operation.result) == (*source[:axis], 1, *source[axis:])


def _transposes(operation: Operation) -> bool:
    source = _shape(operation.operands[0])
    return _same_elements(operation) and _shape(operation.result) == tuple(
        source[dim] for dim in operation.attributes["order"]
    )


def _reshapes(operation: Operation) -> bool:
    types = [value.type for value in (*operation.operands, *operation.results)]
    return _same_elements(operation) and len({type_.size for type_ in types if isinstance(type_, TensorType)}) == 1


def _dots(operation: Operation) -> bool:
    a, b, c = map(_shape, operation.operands[:3])
    return a[:-2] == b[:-2] and a[-1] == b[-2] and c == (*a[:-1], b[-1])


def _reduces(operation: Operation) -> bool:
    axis, arguments = operation.attributes["axis"], operation.regions[0].entry.arguments
    kept = [shape[:axis] + shape[axis + 1 :] for shape in map(_shape, operation.operands)]
    return (
        kept == list(map(_shape, operation.results))
        and _elements(operation.operands) == _elements(operation.results)
        and [argument.type for argument in arguments] == _elements(operation.operands) * 2
    )


def _scans(operation: Operation) -> bool:
    return all(map(_alike, operation.operands, operation.results))


def _elements(values: Sequence[Value]) -> list[Type]:
    return [_element(value) for value in values]


def _ranges(operation: Operation) -> bool:
    return _shape(operation.result) == (operation.attributes["end"] - operation.attributes["start"],)


def _constant(operation: Operation) -> bool:
    value, type_ = operation.attributes["value"], operation.result.type
    if not isinstance(value, DenseAttr):
        return not isinstance(type_, TensorType)
    return value.type == type_ and isinstance(type_, TensorType) and len(value.values) in (1, type_.size)


def _selects(operation: Operation) -> bool:
    condition, one, other = operation.operands
    return one.type == other.type == operation.result.type and condition.type in (I1, _with_element(one.type, I1))


def _counts(operation: Operation) -> bool:
    """An ``scf.for``: bounds and counter of one type, carried values of one type in all four places but the end."""
    counter, *carried = operation.regions[0].entry.arguments
    bounds, initial = operation.operands[:3], operation.operands[3:]
    return all(value.type == counter.type for value in bounds) and (
        [value.type for value in initial]
        == [value.type for value in carried]
        == [value.type for value in operation.results]
    )


def _strip(whole: Value, part: Value, operation: Operation) -> bool:
    dim, strips = operation.attributes["dim"], operation.attributes["strips"]
    return isinstance(whole.type, TensorType) and part.type == strip_type(whole.type, dim, strips)


def _same_types(operation: Operation) -> bool:
    return operation.operands[0].type == operation.result.type


def _multiplies(one: Operation) -> bool:
    """Arrays of a tile C, and of A and B with their dimensions in some order."""
    c, *factors = (_shape(operand) for operand in one.operands[:3])
    a, b = (tuple(shape[dim] for dim in order) for shape, order in zip(factors, one.attributes["turned"], strict=True))
    return c == (*a[:-1], b[-1]) and a[:-2] == b[:-2] and a[-1] == b[-2]


_RULES: dict[str, Callable[[Operation], bool]] = {
    "tt.splat": lambda one: _same_elements(one) and not _shape(one.operands[0]),
    "tt.broadcast": _broadcasts,
    "tt.expand_dims": _expands,
    "tt.trans": _transposes,
    "ttg.memdesc_trans": _transposes,
    "tt.reshape": _reshapes,
    "tt.join": lambda one: _same_elements(one) and _shape(one.result) == (*_shape(one.operands[0]), 2),
    "tt.split": lambda one: _same_elements(one) and (*_shape(one.results[0]), 2) == _shape(one.operands[0]),
    "ttg.convert_layout": _moves,
    "ttg.local_load": _moves,
    "ttg.local_alloc": lambda one: not one.operands or _moves(one),
    "ttg.local_store": lambda one: _alike(one.operands[0], one.operands[1]),
    "tt.gather": lambda one: _shape(one.operands[1]) == _shape(one.result),
    "tt.dot": _dots,
    "tt.reduce": _reduces,
    "tt.scan": _scans,
    "tt.make_range": _ranges,
    "arith.constant": _constant,
    "arith.select": _selects,
    "scf.for": _counts,
    "scf.if": lambda one: one.operands[0].type == I1 and (bool(one.regions[1].blocks) or not one.results),
    "spirv.spill": _same_types,
    "spirv.collect": _same_types,
    "spirv.assign": lambda one: one.operands[0].type == one.operands[1].type,
    "spirv.copy": lambda one: one.operands[0].type == one.operands[1].type,
    "spirv.multiply": _multiplies,
    "spirv.multiply_rounds": _multiplies,
    "spirv.strip": lambda one: _strip(one.operands[0], one.result, one),
    "spirv.put": lambda one: _strip(one.operands[0], one.operands[1], one),
}


# -- encodings ---------------------------------------------------------------------------------------------------
def encoding_faults(operation: Operation, shape: tuple[int | None, int | None]) -> Iterator[str]:
    """What is wrong with the encodings of an operation's operands and results. ``shape``: lanes of a subgroup and
    subgroups of a workgroup; None before upstream's passes have chosen encodings."""
    for type_ in (result.type for result in operation.results):
        if not isinstance(type_, TensorType) or None in shape:
            continue
        if type_.encoding is None:
            yield f"{type_} has no encoding"
            return
        layout = _layout(type_.encoding, type_.shape)
        if layout is not None and shape != tuple(1 << len(layout.inputs[name]) for name in (LANE, WARP)):
            yield f"the encoding of {type_} is not one of {shape[1]} subgroups of {shape[0]}"
    for value, _ in apart(operation):
        yield f"{value.type} has another encoding than follows from its other operands and results"


def apart(operation: Operation) -> Iterator[tuple[Value, Encoding]]:
    """The operands and results of an operation whose elements lie elsewhere than follows from the others, each with the
    encoding that does follow."""
    for value, encoding in _meetings(operation):
        type_ = value.type
        assert isinstance(type_, TensorType)
        if type_.encoding is None or encoding is None or type_.encoding == encoding:
            continue
        one, other = _layout(type_.encoding, type_.shape), _layout(encoding, type_.shape)
        if one is None or other is None:
            continue
        if operation.name in _BY_ELEMENT:
            one, other = one.without_zeros(REGISTER), other.without_zeros(REGISTER)
        if one != other:
            yield value, encoding


#: Operations whose registers are found by the element that they hold: how often one is held does not matter.
_BY_ELEMENT = frozenset({"tt.broadcast", "tt.expand_dims", "tt.trans"})


def _layout(encoding: Encoding, shape: tuple[int, ...]) -> LinearLayout | None:
    try:
        return distributed_layout(encoding, shape)
    except LayoutError:
        return None  # it is refused where it is lowered


def _meetings(operation: Operation) -> Iterator[tuple[Value, Encoding | None]]:
    """Operands and results, with the encodings that follow for them from others of the operation."""
    tensors = [value for value in (*operation.operands, *operation.results) if isinstance(value.type, TensorType)]
    encodings = [encoding_of(value.type) for value in tensors]
    if traits(operation).elementwise or operation.name == "tt.scan":
        yield from ((value, encodings[0]) for value in tensors[1:])
    elif operation.name == "tt.broadcast":
        yield tensors[0], encodings[1]
    elif operation.name == "tt.expand_dims" and encodings[1] is not None:
        yield tensors[0], SliceEncoding(operation.attributes["axis"], encodings[1])
    elif operation.name == "tt.reduce" and encodings[0] is not None:
        for value in tensors[len(operation.operands) :]:
            yield value, SliceEncoding(operation.attributes["axis"], encodings[0])
    elif operation.name == "tt.trans" and encodings[1] is not None:
        yield tensors[0], transposed_back(encodings[1], tuple(operation.attributes["order"]))
    elif operation.name == "tt.gather":
        yield tensors[2], encodings[1]
    elif operation.name == "tt.dot":
        for number, value in enumerate(tensors[:2]):
            if isinstance(encoding := encodings[number], DotOperandEncoding) and encodings[2] is not None:
                yield value, DotOperandEncoding(number, encodings[2], encoding.k_width)
