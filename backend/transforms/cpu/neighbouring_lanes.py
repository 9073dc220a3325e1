"""Neighbouring lanes hold neighbouring elements: on a device whose lanes are elements of vector registers.

Upstream gives each lane several elements that lie together in memory, for wide accesses of each lane, and each lane of
a dot's result a square. Where the lanes of a subgroup are a vector, an access is one where neighbours hold neighbours:
a lane gets one element, and lanes go along the fastest dimension first, as far as the tensors of the encoding reach,
then along the next. Element e of a tensor, counted in the encoding's order, is then in lane e mod W of register
e div W.

Encodings stay where an operation gives its result an encoding by a rule of its own that would give another one then: it
is put between conversions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from ...layouts.distributed import LANE, REGISTER, LayoutError, distributed_layout, layout_of
from ...layouts.linear import flatten
from ...layouts.strip_layouts import register_count
from ...ttgir.encodings import BlockedEncoding, DotOperandEncoding, Encoding, SliceEncoding
from ...ttgir.ir import DenseAttr, Module, Operation, Value
from ...ttgir.types import TensorType, Type
from ..rewriting import Rewriter, encode_again
from ..type_rules import apart

#: Operations whose results' encodings follow in upstream's own way.
_BY_RULES = frozenset({"tt.join", "tt.split", "ttg.fp4_to_fp"})


def neighbouring_lanes(module: Module) -> bool:
    """Gives the blocked encodings of a module of one subgroup a workgroup such lanes. Whether any changed. A kernel
    that computes several elements of a lane together keeps its own: they are to be those that lie together in
    memory."""
    if module.warps != 1 or any(map(_packs, module.walk())):
        return False
    chosen = _choose(module, module.lanes)
    if all(encoding == other for encoding, other in chosen.items()):
        return False
    before = {value: value.type for value in module.values()}
    encode_again(module, partial(_meant, chosen))
    for operation in list(module.walk()):
        if _is_wrong(operation):
            _between_conversions(operation, before)
    return True


def _packs(operation: Operation) -> bool:
    name = {"tt.elementwise_inline_asm": "packed_element", "tt.map_elementwise": "pack"}.get(operation.name)
    return name is not None and int(operation.attribute(name)) > 1


def row_major(shape: tuple[int, ...], order: tuple[int, ...], lanes: int) -> BlockedEncoding:
    """The encoding for tensors of ``shape`` whose elements lie in ``order``, the fastest dimension first: see above."""
    threads, left = [1] * len(shape), lanes
    for dim in order:
        threads[dim] = min(left, shape[dim])
        left //= threads[dim]
    threads[order[-1]] *= left
    ones = (1,) * len(shape)
    return BlockedEncoding(ones, tuple(threads), ones, order)


def _choose(module: Module, lanes: int) -> dict[BlockedEncoding, BlockedEncoding]:
    extents: dict[BlockedEncoding, tuple[int, ...]] = {}

    def reaches(encoding: BlockedEncoding, shape: Iterable[int]) -> bool:
        known = extents.get(encoding)
        found = tuple(shape) if known is None else tuple(map(max, known, shape))
        extents[encoding] = found
        return found != known

    for type_ in _types(module):
        encoding, shape = type_.encoding, type_.shape
        while isinstance(encoding, SliceEncoding):
            shape, encoding = (*shape[: encoding.dim], 1, *shape[encoding.dim :]), encoding.parent
        if isinstance(encoding, BlockedEncoding):
            reaches(encoding, shape)
    turned = [operation for operation in module.walk() if operation.name == "tt.trans"]
    while any([_same_reach(operation, extents, reaches) for operation in turned]):
        pass
    return {encoding: row_major(shape, encoding.order, lanes) for encoding, shape in extents.items()}


def _same_reach(trans: Operation, extents: dict[BlockedEncoding, tuple[int, ...]], reaches: object) -> bool:
    """Tells both encodings of a ``tt.trans`` how far the other's tensors reach. Whether that was news."""
    assert callable(reaches)
    source, result = (value.tensor.encoding for value in (trans["src"], trans.result))
    if not (isinstance(source, BlockedEncoding) and isinstance(result, BlockedEncoding)):
        return False
    order = trans.attribute("order")
    forward = reaches(result, [extents[source][dim] for dim in order])
    back = reaches(source, [extents[result][order.index(dim)] for dim in range(len(order))])
    return bool(forward or back)


def _types(module: Module) -> Iterator[TensorType]:
    for value in module.values():
        if isinstance(value.type, TensorType):
            yield value.type
    for operation in module.walk():
        for attribute in operation.attributes.values():
            if isinstance(attribute, DenseAttr) and isinstance(attribute.type, TensorType):
                yield attribute.type


def _meant(chosen: dict[BlockedEncoding, BlockedEncoding], encoding: Encoding) -> Encoding:
    if isinstance(encoding, SliceEncoding | DotOperandEncoding):
        return replace(encoding, parent=_meant(chosen, encoding.parent))
    return chosen.get(encoding, encoding) if isinstance(encoding, BlockedEncoding) else encoding


def _is_wrong(operation: Operation) -> bool:
    """Whether the encodings of an operation do not follow from each other any more."""
    if operation.name == "tt.reshape":
        return operation.flag("allow_reorder") or not _same_elements(operation["src"].tensor, operation.result.tensor)
    if operation.name == "tt.cat":
        return 2 * register_count(operation["lhs"].tensor) != register_count(operation.result.tensor)
    return operation.name in _BY_RULES and not _joins(operation) or any(True for _ in apart(operation))


def _same_elements(one: TensorType, other: TensorType) -> bool:
    try:
        return layout_of(one).inputs == layout_of(other).inputs
    except LayoutError:
        return False


def _joins(operation: Operation) -> bool:
    """Whether a ``tt.join`` or ``tt.split`` keeps what it joins in one lane, and each in its place."""
    if operation.name == "tt.join":
        part, whole = operation["lhs"].tensor, operation.result.tensor
    elif operation.name == "tt.split":
        part, whole = operation.results[0].tensor, operation["src"].tensor
    else:
        return False
    try:
        one, both = distributed_layout(part.encoding, part.shape), distributed_layout(whole.encoding, whole.shape)
    except LayoutError:
        return False
    last = (0,) * part.rank
    registers = [flatten((*last, 1), whole.shape), *(2 * basis for basis in one.inputs[REGISTER])]
    return list(both.inputs[REGISTER]) == registers and list(both.inputs[LANE]) == [
        2 * basis for basis in one.inputs[LANE]
    ]


def _between_conversions(operation: Operation, before: dict[Value, Type]) -> None:
    """Gives an operation the types that its operands and results had before."""
    into, out = Rewriter.before(operation), Rewriter.after(operation)
    operands = []
    for operand in operation.operands:
        type_ = before.get(operand, operand.type)
        changed = type_ != operand.type and isinstance(type_, TensorType)
        operands.append(into.make("ttg.convert_layout", [operand], [type_]).result if changed else operand)
    operation.set_operands(operands)
    for result in operation.results:
        type_, meant = before[result], result.type
        if type_ == meant:
            continue
        result.type = type_
        made = out.make("ttg.convert_layout", [result], [meant])
        result.replace_uses(made.result, by=lambda user, made=made: user is not made)  # type: ignore[misc]
        before[made.result] = type_  # whoever is put between conversions next wants that
