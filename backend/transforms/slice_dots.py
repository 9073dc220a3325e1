"""Dots whose operands take too much shared memory become loops over slices of K.

The buffers then have room for one slice. Each iteration fills them anew from the registers that hold the operands, and
multiplies what is there: in the order of K as before, so that results have the same bits. Cutting the dot in a chain of
dots (split_dots.py) takes as little memory, but each of them is code.

    %c = scf.for %slice = 0 to slices step 1 iter_args(%sum = %c) {
      spirv.store_slice %a, %a_buffer, %slice          the elements of that slice, along ``dim``
      spirv.store_slice %b, %b_buffer, %slice
      %sum = tt.dot (ttg.local_load %a_buffer), (ttg.local_load %b_buffer), %sum
    }
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..analysis.matrix_dots import is_matrix_dot
from ..layouts.element_sizes import bytes_in_memory
from ..ttgir.encodings import BlockedEncoding, SwizzledSharedEncoding
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.types import MemDescType, TensorType, operand_of
from .rewriting import Rewriter, erase_unused
from .strip_loops import ROLLED

#: The operation that stores a slice (lowering/slices.py).
STORE = "spirv.store_slice"
#: Steps of K that a slice keeps at least.
LEAST_STEPS = 8


@dataclass(frozen=True)
class _Stored:
    """An operand that is stored to a buffer. ``views``: of the buffer; ``load``: of the last view. Other dots may
    read them, too."""

    allocation: Operation
    views: tuple[Operation, ...]
    load: Operation

    @property
    def bytes(self) -> int:
        type_ = self.load.result.tensor
        return type_.size * bytes_in_memory(type_.element)


def slice_dots(function: Function, limit: int) -> bool:
    """Makes loops of the dots whose operands take more than ``limit`` bytes. Whether there was one."""
    dots = [one for one in function.walk() if one.name == "tt.dot" and not is_matrix_dot(one)]
    return any([_slice(dot, limit) for dot in dots])


def _slice(dot: Operation, limit: int) -> bool:
    a, b = (_stored(operand, dot) for operand in dot.operands[:2])
    if a is None or b is None:
        return False
    steps, slices = dot.operands[0].tensor.shape[1], 1
    while (a.bytes + b.bytes) // slices > limit and steps // slices >= 2 * LEAST_STEPS:
        slices *= 2
    if slices == 1:
        return False
    _roll(dot, a, b, slices)
    return True


def _stored(operand: Value, dot: Operation) -> _Stored | None:
    """How an operand of two dimensions came into a buffer that nothing else writes, in the block of its ``dot``."""
    load, type_ = operand.owner, operand.type
    if not isinstance(type_, TensorType) or type_.rank != 2:
        return None
    if (
        not isinstance(operand_of(type_), BlockedEncoding)
        or not isinstance(load, Operation)
        or load.name != "ttg.local_load"
    ):
        return None
    views: list[Operation] = []
    owner = load.operands[0].owner
    while isinstance(owner, Operation) and owner.name == "ttg.memdesc_trans":
        views.insert(0, owner)
        owner = owner.operands[0].owner
    if not isinstance(owner, Operation) or owner.name != "ttg.local_alloc" or not owner.operands:
        return None
    buffer = owner.result.memdesc
    plain = isinstance(buffer.encoding, SwizzledSharedEncoding) and not buffer.mutable
    here = all(one.block is dot.block for one in (owner, *views, load))
    return _Stored(owner, tuple(views), load) if plain and here else None


def _roll(dot: Operation, a: _Stored, b: _Stored, slices: int) -> None:
    rewriter = Rewriter.before(dot)
    bounds = [rewriter.integer(value) for value in (0, slices, 1)]
    loop, block = rewriter.loop(bounds, dot.operands[2:], {ROLLED: True})
    body = rewriter.at_end(block)
    counter, total = block.arguments
    buffers = [_buffer(body, one, k_axis, slices, counter) for one, k_axis in ((a, 1), (b, 0))]
    loads = [_loaded(body, one, buffer) for one, buffer in zip((a, b), buffers, strict=True)]
    product = body.copy(dot, operands=[*loads, total])
    body.make("scf.yield", [product.result])
    dot.result.replace_uses(loop.result)
    dot.erase()
    erase_unused(dict.fromkeys(one for stored in (a, b) for one in (stored.load, *stored.views, stored.allocation)))


def _buffer(body: Rewriter, one: _Stored, k_axis: int, slices: int, counter: Value) -> Value:
    """A buffer for a slice, which is stored there."""
    type_ = one.allocation.result.memdesc
    dim = k_axis if len(one.views) % 2 == 0 else 1 - k_axis
    location = one.allocation.location
    sliced = body.make("ttg.local_alloc", [], [_part(type_, dim, slices)], location=location).result
    body.make(STORE, [one.allocation.operands[0], sliced, counter], (), {"dim": dim}, location=location)
    return sliced


def _loaded(body: Rewriter, one: _Stored, buffer: Value) -> Value:
    for view in one.views:
        turned = replace(view.result.memdesc, shape=buffer.memdesc.shape[::-1], mutable=True, alloc_shape=())
        buffer = body.copy(view, operands=[buffer], types=[turned]).result
    loaded = replace(one.load.result.tensor, shape=buffer.memdesc.shape)
    return body.copy(one.load, operands=[buffer], types=[loaded]).result


def _part(type_: MemDescType, dim: int, slices: int) -> MemDescType:
    shape = tuple(extent // slices if axis == dim else extent for axis, extent in enumerate(type_.shape))
    return replace(type_, shape=shape, mutable=True, alloc_shape=())
