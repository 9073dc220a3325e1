"""The ``ttg`` operations on shared memory: allocation, store, load, views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ..layouts.distributed import distributed_layout
from ..layouts.linear import LinearLayout
from ..layouts.shared import SharedLayout, shared_layout
from ..ttgir.ir import Operation
from ..ttgir.types import MemDescType, TensorType, Type
from .elements import bits_in_memory
from .linear import coordinates
from .registry import lowers
from .shared_memory import SharedBuffer, SharedOperand

if TYPE_CHECKING:
    from .context import Context


def buffer_layout(type_: MemDescType) -> SharedLayout:
    """Where the elements of a buffer lie."""
    rank = len(type_.shape)
    return shared_layout(type_.encoding, tuple(type_.alloc_shape[-rank:]) or type_.shape)


def padded(ctx: Context, offset: int, layout: SharedLayout) -> int:
    """The element offset in memory for an offset before padding."""
    f = ctx.f
    total = offset
    for interval, padding in layout.padding:
        group = f.shr(offset, interval.bit_length() - 1)
        total = f.add(total, f.mul(group, ctx.module.uint(padding)))
    return total


@lru_cache(maxsize=1024)
def tensor_offsets(tensor: TensorType, buffer: MemDescType) -> LinearLayout:
    """(register, lane, warp) → element offset before padding."""
    assert tensor.encoding is not None
    return distributed_layout(tensor.encoding, tensor.shape).compose(buffer_layout(buffer).offsets)


@lru_cache(maxsize=1024)
def consecutive(layout: LinearLayout, limit: int) -> int:
    """How many consecutive registers lie at consecutive, aligned offsets, ``limit`` at most."""
    width = 1
    for basis in layout.inputs["register"]:
        if basis != width or width >= limit:
            break
        width *= 2
    others = [basis for name in ("lane", "warp") for basis in layout.inputs[name]]
    others += [basis for basis in layout.inputs["register"] if basis >= width]
    while width > 1 and any(basis % width for basis in others):
        width //= 2
    return width


def _width(ctx: Context, offsets: LinearLayout, layout: SharedLayout, type_: Type) -> int:
    limit = ctx.shared.width_limit(type_)
    for interval, padding in layout.padding:
        limit = min(limit, interval & -interval, padding & -padding)
    return consecutive(offsets, limit)


def element_index(ctx: Context, buffer: SharedBuffer, offset: int) -> int:
    """The index of an element in workgroup memory, counted in elements of its type."""
    size = bits_in_memory(buffer.type.element) // 8
    assert buffer.byte_offset % size == 0, buffer
    return ctx.f.add(offset, ctx.module.uint(buffer.byte_offset // size))


def buffer_end(buffer: SharedBuffer) -> int:
    """The byte after the buffer's last."""
    return buffer.byte_offset + buffer_layout(buffer.type).size * (bits_in_memory(buffer.type.element) // 8)


def store_tensor(ctx: Context, buffer: SharedBuffer, type_: TensorType, registers: Sequence[int]) -> None:
    """Writes a tensor into its buffer."""
    layout, element = buffer_layout(buffer.type), type_.element
    offsets = tensor_offsets(type_, buffer.type)
    width = _width(ctx, offsets, layout, element)
    places = coordinates(ctx, offsets, 0)
    end = buffer_end(buffer)
    for start in range(0, len(registers), width):
        index = element_index(ctx, buffer, padded(ctx, places[start], layout))
        ctx.shared.store(
            ctx,
            element,
            ctx.f.shr(index, width.bit_length() - 1),
            registers[start : start + width],
            end,
            buffer.byte_offset,
        )


def load_tensor(ctx: Context, buffer: SharedBuffer, type_: TensorType) -> list[int]:
    """Reads a tensor from its buffer: one id a register."""
    layout, element = buffer_layout(buffer.type), type_.element
    offsets = tensor_offsets(type_, buffer.type)
    width = _width(ctx, offsets, layout, element)
    places = coordinates(ctx, offsets, 0)
    end = buffer_end(buffer)
    known: dict[int, list[int]] = {}
    registers: list[int] = []
    for start in range(0, len(places), width):
        index = element_index(ctx, buffer, padded(ctx, places[start], layout))
        if index not in known:
            known[index] = ctx.shared.load(
                ctx, element, ctx.f.shr(index, width.bit_length() - 1), width, end, buffer.byte_offset
            )
        registers += known[index]
    return registers


def _buffer(ctx: Context, operation: Operation, index: int) -> SharedBuffer:
    buffer = ctx[operation.operands[index]]
    assert isinstance(buffer, SharedBuffer), operation.name
    return buffer


@lowers("ttg.local_alloc")
def _local_alloc(ctx: Context, operation: Operation) -> None:
    type_ = operation.result.type
    assert isinstance(type_, MemDescType)
    buffer = SharedBuffer(type_, int(operation.attributes["allocation.offset"]))
    ctx[operation.result] = buffer
    if operation.operands:
        source = operation.operands[0]
        assert isinstance(source.type, TensorType)
        store_tensor(ctx, buffer, source.type, ctx.registers(source))


@lowers("ttg.local_dealloc")
def _local_dealloc(ctx: Context, operation: Operation) -> None:
    """Upstream's allocation has already reused the bytes."""


@lowers("ttg.local_store")
def _local_store(ctx: Context, operation: Operation) -> None:
    source = operation.operands[0]
    assert isinstance(source.type, TensorType)
    store_tensor(ctx, _buffer(ctx, operation, 1), source.type, ctx.registers(source))


@lowers("ttg.local_load")
def _local_load(ctx: Context, operation: Operation) -> None:
    type_ = operation.result.type
    assert isinstance(type_, TensorType)
    buffer = _buffer(ctx, operation, 0)
    if operation in ctx.lazy_loads:
        ctx[operation.result] = SharedOperand(type_, buffer)
    else:
        ctx[operation.result] = load_tensor(ctx, buffer, type_)


@lowers("ttg.memdesc_trans", "ttg.memdesc_reshape")
def _view(ctx: Context, operation: Operation) -> None:
    """The same bytes under an encoding that upstream has rewritten to fit."""
    type_ = operation.result.type
    assert isinstance(type_, MemDescType)
    ctx[operation.result] = SharedBuffer(type_, _buffer(ctx, operation, 0).byte_offset)
