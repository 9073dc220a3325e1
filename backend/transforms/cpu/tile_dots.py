"""Dots as products of whole tiles, on a device that has functions for them (abi/tile_products.py).

The operands and the result of a dot are arrays of the invocation's own (strip_loops.py), in the order of rows: memory
holds each tile row by row, or column by column. No operand goes through shared memory, none is transposed, and nobody
waits.

    %r = tt.dot %a, %b, %c     →     %x = spirv.spill %a ; %y = spirv.spill %b ; %z = spirv.spill %c
                                     spirv.multiply %z, %x, %y
                                     %r = spirv.collect %z

What ``%a`` and ``%b`` are is sought behind layout conversions, buffers in shared memory and transpositions. Operands
narrower than what products are added in are widened before they are put into arrays, but for integers of 8 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from ...abi.tile_products import NARROW
from ...analysis.places import is_zero
from ...layouts.strip_layouts import has_copies, memory_strides
from ...ttgir.ir import Function, Operation, Value
from ...ttgir.operations.dots import added_in
from ...ttgir.types import FloatType, IntegerType, TensorType, Type
from ..rewriting import Rewriter, erase_unused
from ..strip_loops import MULTIPLY
from .carried_arrays import collected, in_array, new_array, spilled
from .neighbouring_lanes import row_major

#: Operations that bring operands to dots.
_MOVES = ("ttg.convert_layout", "ttg.local_load", "ttg.local_alloc", "ttg.memdesc_trans", "tt.trans")


def multiply_tiles(function: Function, elements: Collection[str], lanes: int) -> bool:
    """Rewrites the dots of ``function`` whose products are added in one of ``elements``. Whether there were any."""
    rewriting = _Rewriting(lanes)
    dots = [operation for operation in function.walk() if operation.name == "tt.dot"]
    changed = [rewriting.dot(dot) for dot in dots if str(added_in(dot)) in elements]
    if any(changed):
        _erase_moves(function)
    return any(changed)


@dataclass(frozen=True)
class _Source:
    """A tensor in registers; dimension ``order[i]`` of it is dimension i of what it is the source of."""

    value: Value
    order: tuple[int, ...]


def _source(operand: Value) -> _Source:
    value, order = operand, tuple(range(operand.tensor.rank))
    while isinstance(owner := value.owner, Operation):
        if owner.name == "tt.trans":
            turned = owner.attribute("order")
            value, order = owner["src"], tuple(turned[dim] for dim in order)
        elif owner.name == "ttg.convert_layout":
            value = owner["src"]
        elif owner.name == "ttg.local_load" and (found := _filled_by(owner["src"])) is not None:
            value, order = found.value, tuple(found.order[dim] for dim in order)
        else:
            break
    return _Source(value, order)


def _filled_by(buffer: Value) -> _Source | None:
    """What a buffer, or a transposed view of one, was filled with when it was made; None if others write to it."""
    order = tuple(range(len(buffer.memdesc.shape)))
    while isinstance(owner := buffer.owner, Operation) and owner.name == "ttg.memdesc_trans":
        turned = owner.attribute("order")
        buffer, order = owner["src"], tuple(turned[dim] for dim in order)
    if not isinstance(owner, Operation) or owner.name != "ttg.local_alloc" or not owner.operands:
        return None
    if not all(use.name in ("ttg.local_load", "ttg.local_dealloc") for use in _users(buffer)):
        return None
    return _Source(owner["src"], order)


def _users(buffer: Value) -> Iterator[Operation]:
    for use in buffer.uses:
        if use.name == "ttg.memdesc_trans":
            yield from _users(use.result)
        else:
            yield use


@dataclass
class _Rewriting:
    """The rewriting of a function's dots for subgroups of ``lanes``. ``arrays``: tensor → the array that was made of
    it, by the type that it has there."""

    lanes: int
    arrays: dict[tuple[Value, TensorType], Value] = field(default_factory=dict)

    def dot(self, dot: Operation) -> bool:
        """Rewrites a dot. Whether its result has an element for each lane, at least, without which it stays."""
        c, result, added = dot["c"], dot.result.tensor, added_in(dot)
        assert added is not None
        if result.size < self.lanes:
            return False
        type_ = replace(result, element=added)
        if memory_strides(type_) is None or has_copies(type_):
            type_ = self._row_major(type_)
        sources = [_source(dot[name]) for name in ("a", "b")]
        factors = [_factor(source.value, added) for source in sources]
        operands = [self._array_of(source.value, factor) for source, factor in zip(sources, factors, strict=True)]
        rewriter = Rewriter.before(dot)
        adds = not is_zero(c)
        total = spilled(rewriter, _converted(rewriter, c, type_)) if adds else new_array(rewriter, type_)
        turned = tuple(source.order for source in sources)
        rewriter.make(MULTIPLY, [total, *operands], attributes={"adds": adds, "turned": turned})
        dot.result.replace_uses(_converted(rewriter, collected(rewriter, total), result))
        dot.erase()
        return True

    def _row_major(self, type_: TensorType) -> TensorType:
        order = tuple(reversed(range(type_.rank)))
        return replace(type_, encoding=row_major(type_.shape, order, self.lanes))

    def _array_of(self, value: Value, added: Type) -> Value:
        """An array with the elements of a tensor, made where the tensor is."""
        type_ = replace(value.tensor, element=added)
        if memory_strides(type_) is None:
            type_ = self._row_major(type_)
        held = in_array(value)
        if held is not None and held.type == type_:
            return held
        key = value, type_
        if key not in self.arrays:
            rewriter = after_definition(value)
            self.arrays[key] = spilled(rewriter, _converted(rewriter, value, type_))
        return self.arrays[key]


def _factor(value: Value, added: Type) -> Type:
    """The element type that a factor has in its array."""
    element = value.tensor.element
    return element if NARROW.get(str(element)) == str(added) else added


def after_definition(value: Value) -> Rewriter:
    """What puts operations right where a value is there."""
    owner = value.owner
    if isinstance(owner, Operation):
        return Rewriter.after(owner)
    return Rewriter(owner, owner.operations[0], value.location)


def _converted(rewriter: Rewriter, value: Value, type_: TensorType) -> Value:
    """``value`` with the element type and the encoding of ``type_``."""
    element, wanted = value.tensor.element, type_.element
    if element != wanted:
        converted = replace(value.tensor, element=wanted)
        value = rewriter.make(_cast(element, wanted), [value], [converted]).result
    return value if value.type == type_ else rewriter.make("ttg.convert_layout", [value], [type_]).result


def _cast(source: Type, target: Type) -> str:
    if isinstance(source, IntegerType):
        return "arith.extsi"
    assert isinstance(source, FloatType) and isinstance(target, FloatType)
    if 8 in (source.width, target.width):
        return "tt.fp_to_fp"
    return "arith.extf" if source.width < target.width else "arith.truncf"


def _erase_moves(function: Function) -> None:
    """Takes out what moved operands and is not used any more."""
    moves = [operation for operation in function.walk() if operation.name in _MOVES]
    erase_unused(moves)
    allocations = [operation for operation in moves if operation.name == "ttg.local_alloc" and operation.result.uses]
    for allocation in allocations:
        if all(use.name == "ttg.local_dealloc" for use in allocation.result.uses):
            for use in list(allocation.result.uses):
                use.erase()
            allocation.erase()
