"""``tt.histogram``: counters in workgroup memory, incremented by atomics."""

from __future__ import annotations

from ..layouts.element_sizes import bits_in_memory
from ..planning.exchanges import COUNTER
from ..planning.plans import Shared
from ..planning.shared_memory import first_element
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from .linear import coordinates, unique_owner
from .lowering import Lowering
from .registry import lowers
from .scratch import take

COUNTER_BYTES = 4


@lowers("tt.histogram")
def _histogram(ctx: Lowering, operation: Operation) -> None:
    """A value below zero, or not below the number of bins, is not counted."""
    f, module, shared = ctx.f, ctx.module, ctx.shared
    source, *mask = operation.operands
    result = operation.result.tensor
    bins = result.size
    start = take(ctx, ctx.plan_of(operation, Shared).scratch[0])
    base, end = module.uint(first_element(start, COUNTER_BYTES)), start + bins * COUNTER_BYTES
    places = [f.add(place, base) for place in coordinates(ctx, ctx.layout(result), 0)]
    zero = module.uint(0)

    def clear() -> list[int]:
        for place in dict.fromkeys(places):
            shared.store(ctx, COUNTER, place, [zero], end, start)
        return []

    f.if_(unique_owner(ctx, ctx.layout(result)), clear)
    ctx.barrier()
    layout = ctx.layout(source.type)
    values, masks = ctx.registers(source), ctx.registers(mask[0]) if mask else None
    owner = unique_owner(ctx, layout)
    counted: set[int] = set()
    for register, place in enumerate(layout.images("register")):
        if place in counted:
            continue
        counted.add(place)
        value = values[register]
        condition = f.logical_and(owner, f.compare(op.ULessThan, value, f.constant_like(value, bins)))
        if masks:
            condition = f.logical_and(condition, masks[register])

        def count(value: int = value) -> list[int]:
            shared.increment(ctx, f.add(f.zero_extend(value, 32), base), end, start)
            return []

        f.if_(condition, count)
    ctx.barrier()
    width = bits_in_memory(result.element)
    ctx.define(
        operation.result, [f.zero_extend(shared.load(ctx, COUNTER, place, 1, end, start)[0], width) for place in places]
    )
