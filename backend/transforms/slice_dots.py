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

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..analysis.matrix_dots import is_matrix_dot
from ..layouts.element_sizes import bytes_in_memory
from ..ttgir.encodings import BlockedEncoding, DotOperandEncoding, SwizzledSharedEncoding
from ..ttgir.ir import Block, Function, Operation, Region, Value
from ..ttgir.types import MemDescType, TensorType
from .rewriting import append, drop_uses, integer, replace_uses
from .strip_loops import I32, ROLLED

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
        type_ = self.load.result.type
        assert isinstance(type_, TensorType)
        return type_.shape[0] * type_.shape[1] * bytes_in_memory(type_.element)


def slice_dots(function: Function, limit: int) -> bool:
    """Makes loops of the dots whose operands take more than ``limit`` bytes. Whether there was one."""
    assert function.body is not None
    dots = [
        one
        for block in function.body.blocks
        for top in block.operations
        for one in top.walk()
        if one.name == "tt.dot" and not is_matrix_dot(one)
    ]
    return any([_slice(dot, limit) for dot in dots])


def _slice(dot: Operation, limit: int) -> bool:
    a, b = (_stored(operand, dot) for operand in dot.operands[:2])
    if a is None or b is None:
        return False
    type_ = dot.operands[0].type
    assert isinstance(type_, TensorType)
    steps, slices = type_.shape[1], 1
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
    if not isinstance(type_.encoding, DotOperandEncoding) or not isinstance(type_.encoding.parent, BlockedEncoding):
        return None
    if not isinstance(load, Operation) or load.name != "ttg.local_load":
        return None
    views: list[Operation] = []
    owner = load.operands[0].owner
    while isinstance(owner, Operation) and owner.name == "ttg.memdesc_trans":
        views.insert(0, owner)
        owner = owner.operands[0].owner
    if not isinstance(owner, Operation) or owner.name != "ttg.local_alloc" or not owner.operands:
        return None
    buffer = owner.result.type
    assert isinstance(buffer, MemDescType)
    plain = isinstance(buffer.encoding, SwizzledSharedEncoding) and not buffer.mutable
    here = all(one.block is dot.block for one in (owner, *views, load))
    return _Stored(owner, tuple(views), load) if plain and here else None


def _roll(dot: Operation, a: _Stored, b: _Stored, slices: int) -> None:
    block = dot.block
    assert block is not None
    place = block.operations.index(dot)
    after = block.operations[place + 1 :]
    del block.operations[place:]
    accumulator = dot.operands[2]
    bounds = [integer(block, value) for value in (0, slices, 1)]
    body = Block()
    region = Region([body])
    body.parent = region
    counter, total = Value(I32, body, 0), Value(accumulator.type, body, 1)
    body.arguments += [counter, total]
    loop = append(
        block,
        "scf.for",
        [*bounds, accumulator],
        [accumulator.type],
        {ROLLED: True},
        [region],
        segments=(1, 1, 1, 1),
        location=dot.location,
    )
    buffers = [_buffer(body, one, k_axis, slices, counter) for one, k_axis in ((a, 1), (b, 0))]
    loads = [_loaded(body, one, buffer) for one, buffer in zip((a, b), buffers, strict=True)]
    product = append(
        body,
        "tt.dot",
        [*loads, total],
        [total.type],
        dict(dot.attributes),
        segments=dot.segments,
        location=dot.location,
    )
    append(body, "scf.yield", [product.result], segments=(1,), location=dot.location)
    replace_uses(dot.result, loop.result)
    drop_uses(dot)
    for operation in dict.fromkeys((*_users_first(a), *_users_first(b))):
        if not operation.result.uses:
            drop_uses(operation)
            block.operations.remove(operation)
    block.operations += after


def _users_first(one: _Stored) -> Iterator[Operation]:
    yield one.load
    yield from reversed(one.views)
    yield one.allocation


def _buffer(body: Block, one: _Stored, k_axis: int, slices: int, counter: Value) -> Value:
    """A buffer for a slice, which is stored there."""
    type_ = one.allocation.result.type
    assert isinstance(type_, MemDescType)
    dim = k_axis if len(one.views) % 2 == 0 else 1 - k_axis
    location = one.allocation.location
    sliced = append(body, "ttg.local_alloc", [], [_part(type_, dim, slices)], location=location).result
    operands = [one.allocation.operands[0], sliced, counter]
    append(body, STORE, operands, (), {"dim": dim}, segments=(1, 1, 1), location=location)
    return sliced


def _loaded(body: Block, one: _Stored, buffer: Value) -> Value:
    for view in one.views:
        type_, source = view.result.type, buffer.type
        assert isinstance(type_, MemDescType) and isinstance(source, MemDescType)
        turned = replace(type_, shape=(source.shape[1], source.shape[0]), mutable=True, alloc_shape=())
        buffer = append(
            body, view.name, [buffer], [turned], dict(view.attributes), segments=view.segments, location=view.location
        ).result
    type_, source = one.load.result.type, buffer.type
    assert isinstance(type_, TensorType) and isinstance(source, MemDescType)
    loaded = TensorType(source.shape, type_.element, type_.encoding)
    return append(
        body, "ttg.local_load", [buffer], [loaded], dict(one.load.attributes), segments=(1,), location=one.load.location
    ).result


def _part(type_: MemDescType, dim: int, slices: int) -> MemDescType:
    shape = tuple(extent // slices if axis == dim else extent for axis, extent in enumerate(type_.shape))
    return replace(type_, shape=shape, mutable=True, alloc_shape=())
