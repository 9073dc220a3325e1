"""Which types and encodings operations take: those that follow from each other by an operation's syntax, those that its
row in ``ttgir/operations/`` says go together, and encodings that hold the same elements in the same lanes where they
meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..analysis.axis_info.hints import hint_faults
from ..layouts.distributed import LANE, REGISTER, WARP, LayoutError, distributed_layout
from ..layouts.linear import LinearLayout
from ..ttgir.encodings import Encoding
from ..ttgir.formats import CONSTANT_TYPES, Format
from ..ttgir.ir import Operation, Value
from ..ttgir.operations import definition_of
from ..ttgir.operations.type_checks import I1, tensors, with_element
from ..ttgir.types import PointerType, TensorType, Type, element_type, encoding_of


def type_faults(operation: Operation) -> Iterator[str]:
    """What is wrong with the number of an operation's operands and results, with their types, and with its hints."""
    row = definition_of(operation)
    syntax = row.syntax
    if syntax is not None:
        results = syntax.results_of([result.type for result in operation.results])
        counts = zip(syntax.operands, operation.segments, strict=False)
        if len(operation.segments) != len(syntax.operands) or any(
            not suffix and count != 1 or suffix == "?" and count > 1 for (_, suffix), count in counts
        ):
            yield f"segments {operation.segments} of its operands"
            return
        if results is None:
            yield f"it has {len(operation.results)} results"
            return
    if missing := operation.missing_attributes():
        yield f"it lacks the attribute '{missing[0]}'"
        return
    if syntax is not None:
        yield from _unequal(operation, syntax)
    yield from hint_faults(operation)
    if row.types is not None and not row.types(operation):
        types = [value.type for value in (*operation.operands, *operation.results)]
        yield f"it does not go with the types ({', '.join(map(str, types))})"


def _unequal(operation: Operation, syntax: Format) -> Iterator[str]:
    """Types that do not follow from others as the syntax says."""
    types: dict[str, list[Type]] = {}
    for name, _ in syntax.operands:
        types[name] = [value.type for value in operation.operand_group(name)]
    spread = syntax.results_of([result.type for result in operation.results])
    assert spread is not None
    types.update((name, given) for (name, _), given in zip(syntax.results, spread, strict=True))
    for target, function, source in syntax.type_equations(next(iter(types), "")):
        constant = CONSTANT_TYPES.get(source)
        known = constant or next(iter(types[source]), None)
        needed = _DERIVED[function](known) if known is not None else None
        if any(type_ != needed for type_ in types[target]):
            yield f"'{target}' has the type {types[target][0]}, which does not follow from that of '{source}'"


def _pointee(type_: Type) -> Type | None:
    pointer = element_type(type_)
    return with_element(type_, pointer.pointee) if isinstance(pointer, PointerType) else None


_DERIVED: dict[str, Callable[[Type], Type | None]] = {
    "": lambda type_: type_,
    "i1": lambda type_: with_element(type_, I1),
    "pointee": _pointee,
    "element": element_type,
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
    by_element = definition_of(operation).by_element
    for value, encoding in _meetings(operation):
        type_ = value.type
        assert isinstance(type_, TensorType)
        if type_.encoding is None or encoding is None or type_.encoding == encoding:
            continue
        one, other = _layout(type_.encoding, type_.shape), _layout(encoding, type_.shape)
        if one is None or other is None:
            continue
        if by_element:
            one, other = one.without_zeros(REGISTER), other.without_zeros(REGISTER)
        if one != other:
            yield value, encoding


def _layout(encoding: Encoding, shape: tuple[int, ...]) -> LinearLayout | None:
    try:
        return distributed_layout(encoding, shape)
    except LayoutError:
        return None  # it is refused where it is lowered


def _meetings(operation: Operation) -> Iterator[tuple[Value, Encoding | None]]:
    """Operands and results, with the encodings that follow for them from others of the operation."""
    row = definition_of(operation)
    if row.elementwise:
        met = tensors(operation)
        yield from ((value, encoding_of(met[0].type)) for value in met[1:])
    elif row.encodings is not None:
        yield from row.encodings(operation)
