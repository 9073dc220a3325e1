"""``ttg.convert_layout``: carries out the plan of layouts/conversion.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from ..layouts.conversion import (
    Exchange,
    Identity,
    Plan,
    RegisterPermutation,
    SubgroupShuffle,
    ThroughShared,
    plan_conversion,
    plan_through_shared,
)
from ..layouts.linear import LinearLayout
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import Type
from .elements import bits_in_memory, element_type
from .linear import apply_bases, coordinates, not_duplicate
from .registry import lowers
from .scratch import scratch_offset
from .shuffle import shuffle

if TYPE_CHECKING:
    from .context import Context


#: Bytes of workgroup memory that a conversion takes in place of shuffles, and the most that it takes.
USUAL_SCRATCH, LARGEST_SCRATCH = 4096, 16384


@lowers("ttg.convert_layout")
def _convert_layout(ctx: Context, operation: Operation) -> None:
    source, target = operation.operands[0].type, operation.result.type
    registers = ctx.registers(operation.operands[0])
    ctx.define(
        operation.result,
        convert_registers(ctx, operation, registers, element_type(source), ctx.layout(source), ctx.layout(target)),
    )


def convert_registers(
    ctx: Context, operation: Operation, registers: list[int], element: Type, source: LinearLayout, target: LinearLayout
) -> list[int]:
    """``registers``, held in layout ``source``, in layout ``target``; scratch memory is the operation's allocation."""
    plan = plan_conversion(
        source, target, bits_in_memory(element) // 8, int(operation.attributes.get("allocation.size", 0))
    )
    plan = _without_many_shuffles(ctx, plan, source, target, element)
    return _carry_out(ctx, plan, registers, element, lambda size: scratch_offset(ctx, operation, size))


def move_registers(
    ctx: Context, registers: list[int], element: Type, source: LinearLayout, target: LinearLayout
) -> list[int]:
    """The same for an operation that owns no scratch memory: where some is needed, it is beyond upstream's."""
    size = bits_in_memory(element) // 8
    plan = _without_many_shuffles(
        ctx, plan_conversion(source, target, size, source.size * size), source, target, element
    )
    return _carry_out(ctx, plan, registers, element, ctx.extra_shared)


def _carry_out(
    ctx: Context, plan: Plan, registers: list[int], element: Type, scratch: Callable[[int], int]
) -> list[int]:
    """``scratch(bytes)``: the byte offset of that much workgroup memory."""
    if isinstance(plan, Identity):
        return registers
    if isinstance(plan, RegisterPermutation):
        return [registers[index] for index in plan.sources]
    if isinstance(plan, SubgroupShuffle):
        return _shuffled(ctx, plan, registers)
    return _through_shared(ctx, plan, registers, element, scratch(plan.size * (bits_in_memory(element) // 8)))


def _without_many_shuffles(ctx: Context, plan: Plan, source: LinearLayout, target: LinearLayout, element: Type) -> Plan:
    """``plan``, or one through workgroup memory where the driver makes too much of the shuffles."""
    most, size = ctx.capabilities.traits.most_shuffles, bits_in_memory(element) // 8
    if not isinstance(plan, SubgroupShuffle) or few_shuffles(plan, size, most):
        return plan
    whole = source.size * size
    room = min(LARGEST_SCRATCH, ctx.shared.extra_room())
    for scratch in sorted({min(whole, USUAL_SCRATCH), whole}):
        through = plan_through_shared(source, target, size, scratch) if scratch <= room else None
        if through is not None:
            return through
    return plan


def few_shuffles(plan: SubgroupShuffle, size: int, most: int | None) -> bool:
    """Whether a driver that should have ``most`` shuffles of 32 bits for a conversion takes this plan for elements of
    ``size`` bytes."""
    return most is None or len(plan.shuffles) * max(1, size // 4) <= most


def _exchange(ctx: Context, step: Exchange, registers: list[int]) -> list[int]:
    f, module = ctx.f, ctx.module
    ones = f.xor(_parity(ctx, ctx.lane, step.lane_mask), _parity(ctx, ctx.warp, step.warp_mask))
    odd = f.compare(op.INotEqual, ones, module.uint(0))
    return [f.select(odd, registers[number ^ step.register_xor], register) for number, register in enumerate(registers)]


def _parity(ctx: Context, value: int, mask: int) -> int:
    """0 or 1: the parity of ``value & mask``."""
    f, module = ctx.f, ctx.module
    bits = [f.and_(f.shr(value, bit), module.uint(1)) for bit in range(mask.bit_length()) if mask >> bit & 1]
    return reduce(f.xor, bits, module.uint(0))


def _shuffled(ctx: Context, plan: SubgroupShuffle, registers: list[int]) -> list[int]:
    f, module = ctx.f, ctx.module
    for step in plan.before:
        registers = _exchange(ctx, step, registers)
    bases = plan.lane_source.inputs
    lane_source = f.xor(apply_bases(f, ctx.lane, bases["lane"]), apply_bases(f, ctx.warp, bases["warp"]))
    moved = [
        registers[step.register]
        if plan.local and not step.lane_xor
        else shuffle(ctx, registers[step.register], f.xor(lane_source, module.uint(step.lane_xor)))
        for step in plan.shuffles
    ]
    values = [moved[index] for index in plan.values]
    for step in plan.after:
        values = _exchange(ctx, step, values)
    return values[: plan.results]


def _through_shared(
    ctx: Context, plan: ThroughShared, registers: list[int], element: Type, byte_offset: int
) -> list[int]:
    f, module, shared = ctx.f, ctx.module, ctx.shared
    size = bits_in_memory(element) // 8
    base = module.uint(byte_offset // size)
    end = byte_offset + plan.size * size
    limit = shared.width_limit(element)
    stores = [f.add(place, base) for place in coordinates(ctx, plan.store, 0)]
    loads = [f.add(place, base) for place in coordinates(ctx, plan.load, 0)]
    owner = not_duplicate(ctx, plan.duplicate_lanes, plan.duplicate_warps)
    loaded: dict[int, int] = {}

    for number, exchange in enumerate(plan.rounds):
        if number:
            ctx.barrier()

        def write(vectors: tuple[tuple[int, ...], ...] = exchange.stores) -> list[int]:
            for vector in vectors:
                width = min(len(vector), limit)
                for start in range(0, len(vector), width):
                    index = f.shr(_offset(ctx, stores[vector[0]], start), width.bit_length() - 1)
                    shared.store(
                        ctx, element, index, [registers[r] for r in vector[start : start + width]], end, byte_offset
                    )
            return []

        f.if_(owner, write)
        ctx.barrier()
        for vector in exchange.loads:
            width = min(len(vector), limit)
            for start in range(0, len(vector), width):
                index = f.shr(_offset(ctx, loads[vector[0]], start), width.bit_length() - 1)
                elements = shared.load(ctx, element, index, width, end, byte_offset)
                loaded.update(zip(vector[start : start + width], elements, strict=True))
    return [loaded[register] for register in plan.results]


def _offset(ctx: Context, place: int, elements: int) -> int:
    return ctx.f.add(place, ctx.module.uint(elements))
