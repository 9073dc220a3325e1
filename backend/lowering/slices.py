"""A slice of a tensor into its buffer: ``spirv.store_slice`` (transforms/slice_dots.py)."""

from __future__ import annotations

from ..layouts.linear import log2
from ..layouts.slices import slice_numbers, slice_offsets
from ..planning.plans import BufferAccess
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import TensorType
from .linear import coordinates, thread_part
from .lowering import Lowering
from .registry import lowers
from .shared import element_index, write
from .shared_memory import SharedBuffer


@lowers("spirv.store_slice")
def _store_slice(ctx: Lowering, operation: Operation) -> None:
    """The invocations in which a register belongs to the slice store it; registers of one number go together."""
    f, module = ctx.f, ctx.module
    source, destination, number = operation.operands
    type_, buffer, dim = source.type, ctx[destination], int(operation.attributes["dim"])
    assert isinstance(type_, TensorType) and isinstance(buffer, SharedBuffer)
    memory, registers = buffer.view.type, ctx.registers(source)
    width = ctx.plan_of(operation, BufferAccess).width
    places = coordinates(ctx, slice_offsets(type_, memory, dim), 0)
    thread, _ = thread_part(ctx, ctx.layout(type_), dim)
    own = f.xor(f.shr(thread, log2(memory.shape[dim])), ctx.scalar(number))
    groups: dict[int, list[int]] = {}
    for register, contributed in enumerate(slice_numbers(type_, memory, dim)):
        groups.setdefault(contributed, []).append(register)
    for contributed, members in groups.items():

        def store(members: list[int] = members) -> list[int]:
            for first in members[::width]:
                index = element_index(ctx, buffer, places[first])
                write(ctx, buffer, index, registers[first : first + width])
            return []

        f.if_(f.compare(op.IEqual, own, module.uint(contributed)), store)
