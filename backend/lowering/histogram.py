"""``tt.histogram``: counters in workgroup memory, incremented by atomics, in several copies as planned."""

from __future__ import annotations

from functools import reduce

from ..layouts.element_sizes import bits_in_memory
from ..planning.cross_lane import COUNTER
from ..planning.memory_pools import first_element
from ..planning.plans import Atomic
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from .index_arithmetic import coordinates, unique_owner
from .lowering import Lowering
from .registry import lowers
from .rolled import in_turn
from .scratch import take

COUNTER_BYTES = 4


@lowers("tt.histogram")
def _histogram(ctx: Lowering, operation: Operation) -> None:
    """A value below zero, or not below the number of bins, is not counted."""
    f, module, shared = ctx.f, ctx.module, ctx.shared
    source, *mask = operation.operands
    result = operation.result.tensor
    bins = result.size
    plan = ctx.plan_of(operation, Atomic)
    start = take(ctx, plan.scratch[0])
    base, end = module.uint(first_element(start, COUNTER_BYTES)), start + plan.copies * bins * COUNTER_BYTES
    places = [f.add(place, base) for place in coordinates(ctx, ctx.layout(result), 0)]
    zero = module.uint(0)

    def copies(place: int) -> list[int]:
        return [place, *(f.add(place, module.uint(number * bins)) for number in range(1, plan.copies))]

    def clear() -> list[int]:
        for first in dict.fromkeys(places):
            for place in copies(first):
                shared.store(ctx, COUNTER, place, [zero], end, start)
        return []

    def total(first: int) -> int:
        return reduce(f.add, (shared.load(ctx, COUNTER, place, 1, end, start)[0] for place in copies(first)))

    f.if_(unique_owner(ctx, ctx.layout(result)), clear)
    ctx.barrier()
    layout = ctx.layout(source.type)
    values, masks = ctx.registers(source), ctx.registers(mask[0]) if mask else None
    owner = unique_owner(ctx, layout)
    # One register of those that hold the same element.
    own = {place: register for register, place in reversed([*enumerate(layout.images("register"))])}.values()

    own_base = base
    if plan.copies > 1:  # neighbouring lanes count in copies of their own
        own_base = f.add(base, f.mul(f.and_(ctx.lane, module.uint(plan.copies - 1)), module.uint(bins)))

    def count(mine: int, value: int) -> list[int]:
        def increment() -> list[int]:
            shared.increment(ctx, f.add(f.zero_extend(value, 32), own_base), end, start)
            return []

        f.if_(f.logical_and(mine, f.compare(op.ULessThan, value, f.constant_like(value, bins))), increment)
        return []

    rows = [(f.logical_and(owner, masks[register]) if masks else owner, values[register]) for register in sorted(own)]
    in_turn(ctx, plan.updates, rows, [], count)
    ctx.barrier()
    width = bits_in_memory(result.element)
    ctx.define(operation.result, [f.zero_extend(total(place), width) for place in places])
