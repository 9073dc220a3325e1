"""``ttg.convert_layout``: carries out the plan of layouts/conversion.py."""

from __future__ import annotations

from functools import partial, reduce

from ..layouts.conversion import Identity, RegisterPermutation
from ..layouts.element_sizes import bits_in_memory
from ..layouts.shuffles import Exchange, SubgroupShuffle
from ..layouts.through_shared import ThroughShared, Vectors
from ..planning.memory_pools import first_element
from ..planning.plans import Conversion
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import Type, element_type
from .index_arithmetic import apply_bases, coordinates, not_duplicate, thread_part
from .lowering import Lowering
from .registry import lowers
from .scratch import take
from .shuffle import shuffle


@lowers("ttg.convert_layout")
def _convert_layout(ctx: Lowering, operation: Operation) -> None:
    source = operation["src"]
    plan = ctx.plan_of(operation, Conversion)
    ctx.define(operation.result, convert_registers(ctx, plan, ctx.registers(source), element_type(source.type)))


def convert_registers(ctx: Lowering, plan: Conversion, registers: list[int], element: Type) -> list[int]:
    """``registers`` with elements of type ``element``, from the source layout of ``plan`` to its target layout."""
    moves = plan.moves
    if isinstance(moves, Identity):
        return registers
    if isinstance(moves, RegisterPermutation):
        return [registers[index] for index in moves.sources]
    if isinstance(moves, SubgroupShuffle):
        return _shuffled(ctx, moves, registers)
    return _through_shared(ctx, moves, registers, element, take(ctx, plan.scratch[0]))


def _exchange(ctx: Lowering, step: Exchange, registers: list[int]) -> list[int]:
    f, module = ctx.f, ctx.module
    ones = f.xor(_parity(ctx, ctx.lane, step.lane_mask), _parity(ctx, ctx.warp, step.warp_mask))
    odd = f.compare(op.INotEqual, ones, module.uint(0))
    return [f.select(odd, registers[number ^ step.register_xor], register) for number, register in enumerate(registers)]


def _parity(ctx: Lowering, value: int, mask: int) -> int:
    """0 or 1: the parity of ``value & mask``."""
    f, module = ctx.f, ctx.module
    bits = [f.and_(f.shr(value, bit), module.uint(1)) for bit in range(mask.bit_length()) if mask >> bit & 1]
    return reduce(f.xor, bits, module.uint(0))


def _shuffled(ctx: Lowering, plan: SubgroupShuffle, registers: list[int]) -> list[int]:
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
    ctx: Lowering, plan: ThroughShared, registers: list[int], element: Type, byte_offset: int
) -> list[int]:
    f, module, shared = ctx.f, ctx.module, ctx.shared
    size = bits_in_memory(element) // 8
    base = module.uint(first_element(byte_offset, size))
    end = byte_offset + plan.size * size
    limit = shared.width_limit(element)
    stores = [f.add(place, base) for place in coordinates(ctx, plan.store, 0)]
    loads = [f.add(place, base) for place in coordinates(ctx, plan.load, 0)]
    owner = not_duplicate(ctx, plan.duplicate_lanes, plan.duplicate_warps)
    turn = thread_part(ctx, plan.turn, 0)[0]
    loaded: dict[int, int] = {}

    def write(vectors: Vectors) -> list[int]:
        for vector in vectors:
            width = min(len(vector), limit)
            for start in range(0, len(vector), width):
                index = f.shr(_offset(ctx, stores[vector[0]], start), width.bit_length() - 1)
                shared.store(
                    ctx, element, index, [registers[r] for r in vector[start : start + width]], end, byte_offset
                )
        return []

    for number, exchange in enumerate(plan.rounds):
        if number:
            ctx.barrier()
        for whose, vectors in plan.stores(number):
            mine = f.compare(op.IEqual, turn, module.uint(whose)) if plan.takes_turns else module.boolean(True)
            f.if_(f.logical_and(owner, mine), partial(write, vectors))
        ctx.barrier()
        for vector in exchange.loads:
            width = min(len(vector), limit)
            for start in range(0, len(vector), width):
                index = f.shr(_offset(ctx, loads[vector[0]], start), width.bit_length() - 1)
                elements = shared.load(ctx, element, index, width, end, byte_offset)
                loaded.update(zip(vector[start : start + width], elements, strict=True))
    return [loaded[register] for register in plan.results]


def _offset(ctx: Lowering, place: int, elements: int) -> int:
    return ctx.f.add(place, ctx.module.uint(elements))
