"""The ``ttg`` operations on shared memory: allocation, store, load, views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..layouts.buffers import buffer_bytes, buffer_layout, tensor_offsets
from ..layouts.element_sizes import bits_in_memory
from ..layouts.shared import SharedLayout
from ..planning.plans import BufferAccess
from ..ttgir.ir import Operation
from ..ttgir.types import MemDescType, TensorType
from .linear import coordinates
from .lowering import Lowering
from .registry import lowers
from .shared_memory import SharedBuffer, SharedOperand


def padded(ctx: Lowering, offset: int, layout: SharedLayout) -> int:
    """The element offset in memory for an offset before padding."""
    f = ctx.f
    total = offset
    for interval, padding in layout.padding:
        group = f.shr(offset, interval.bit_length() - 1)
        total = f.add(total, f.mul(group, ctx.module.uint(padding)))
    return total


def element_index(ctx: Lowering, buffer: SharedBuffer, offset: int) -> int:
    """The index of an element in workgroup memory, counted in elements of its type."""
    size = bits_in_memory(buffer.type.element) // 8
    assert buffer.byte_offset % size == 0, buffer
    return ctx.f.add(offset, ctx.module.uint(buffer.byte_offset // size))


def buffer_end(buffer: SharedBuffer) -> int:
    """The byte after the buffer's last."""
    return buffer.byte_offset + buffer_bytes(buffer.type)


def store_tensor(ctx: Lowering, buffer: SharedBuffer, type_: TensorType, registers: Sequence[int], width: int) -> None:
    """Writes a tensor into its buffer, ``width`` registers at a time."""
    layout, element = buffer_layout(buffer.type), type_.element
    offsets = tensor_offsets(type_, buffer.type)
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


def tensor_reader(
    ctx: Lowering, buffer: SharedBuffer, type_: TensorType, width: int = 1
) -> Callable[[int], Sequence[int]]:
    """What reads ``width`` registers of a tensor from its buffer, from a given one on, at its first call for them."""
    layout, element = buffer_layout(buffer.type), type_.element
    offsets = tensor_offsets(type_, buffer.type)
    places = coordinates(ctx, offsets, 0)
    end = buffer_end(buffer)
    known: dict[int, Sequence[int]] = {}

    def read(first: int) -> Sequence[int]:
        index = element_index(ctx, buffer, padded(ctx, places[first], layout))
        if index not in known:
            known[index] = ctx.shared.load(
                ctx, element, ctx.f.shr(index, width.bit_length() - 1), width, end, buffer.byte_offset
            )
        return known[index]

    return read


def load_tensor(ctx: Lowering, buffer: SharedBuffer, type_: TensorType, width: int) -> list[int]:
    """Reads a tensor from its buffer, ``width`` registers at a time: one id a register."""
    read = tensor_reader(ctx, buffer, type_, width)
    count = 1 << len(ctx.layout(type_).bases["register"])
    return [register for first in range(0, count, width) for register in read(first)]


def _buffer(ctx: Lowering, operation: Operation, index: int) -> SharedBuffer:
    buffer = ctx[operation.operands[index]]
    assert isinstance(buffer, SharedBuffer), operation.name
    return buffer


@lowers("ttg.local_alloc")
def _local_alloc(ctx: Lowering, operation: Operation) -> None:
    type_ = operation.result.type
    assert isinstance(type_, MemDescType)
    plan = ctx.plan_of(operation, BufferAccess)
    buffer = SharedBuffer(type_, plan.offset)
    ctx[operation.result] = buffer
    if operation.operands:
        source = operation.operands[0]
        assert isinstance(source.type, TensorType)
        store_tensor(ctx, buffer, source.type, ctx.registers(source), plan.width)


@lowers("ttg.local_dealloc")
def _local_dealloc(ctx: Lowering, operation: Operation) -> None:
    """Upstream's allocation has already reused the bytes."""


@lowers("ttg.local_store")
def _local_store(ctx: Lowering, operation: Operation) -> None:
    source = operation.operands[0]
    assert isinstance(source.type, TensorType)
    width = ctx.plan_of(operation, BufferAccess).width
    store_tensor(ctx, _buffer(ctx, operation, 1), source.type, ctx.registers(source), width)


@lowers("ttg.local_load")
def _local_load(ctx: Lowering, operation: Operation) -> None:
    type_ = operation.result.type
    assert isinstance(type_, TensorType)
    buffer = _buffer(ctx, operation, 0)
    plan = ctx.plan_of(operation, BufferAccess)
    if plan.late:
        ctx[operation.result] = SharedOperand(type_, buffer)
    else:
        ctx[operation.result] = load_tensor(ctx, buffer, type_, plan.width)


@lowers("ttg.memdesc_trans", "ttg.memdesc_reshape")
def _view(ctx: Lowering, operation: Operation) -> None:
    """The same bytes under an encoding that upstream has rewritten to fit."""
    type_ = operation.result.type
    assert isinstance(type_, MemDescType)
    ctx[operation.result] = SharedBuffer(type_, _buffer(ctx, operation, 0).byte_offset)
