"""``tt.reduce``: carries out the plan of layouts/reduction.py."""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from ..layouts.reduction import AcrossWarps, plan_reduction
from ..ttgir.ir import Operation
from ..ttgir.types import Type
from .elements import bits_in_memory, element_type
from .linear import coordinates, not_duplicate
from .regions import combiner
from .registry import lowers
from .shuffle import shuffle_xor

if TYPE_CHECKING:
    from .context import Context

Combine = Callable[[list[int], list[int]], list[int]]


@lowers("tt.reduce")
def _reduce(ctx: Context, operation: Operation) -> None:
    types = [element_type(operand.type) for operand in operation.operands]
    sizes = tuple(bits_in_memory(type_) // 8 for type_ in types)
    plan = plan_reduction(ctx.layout(operation.operands[0].type), int(operation.attributes["axis"]), sizes,
                          int(operation.attributes.get("allocation.size", 0)))
    combine = combiner(ctx, operation)
    operands = [ctx.registers(operand) for operand in operation.operands]
    totals = [reduce(combine, ([operand[register] for operand in operands] for register in group))
              for group in plan.groups]
    for mask in plan.lane_masks:
        totals = [combine(total, [shuffle_xor(ctx, value, mask) for value in total]) for total in totals]
    if plan.across_warps:
        totals = _across_warps(ctx, plan.across_warps, totals, types, int(operation.attributes["allocation.offset"]),
                               combine)
    for number, result in enumerate(operation.results):
        ctx.define(result, [totals[group][number] for group in plan.results])


def _across_warps(ctx: Context, step: AcrossWarps, totals: list[list[int]], types: list[Type], byte_offset: int,
                  combine: Combine) -> list[list[int]]:
    """Stores each warp's part, then every invocation reads and combines all parts."""
    f, module, shared = ctx.f, ctx.module, ctx.shared
    stores = coordinates(ctx, step.store, 0)
    loads = coordinates(ctx, step.load, 0)
    partial_places = step.load.images("partial")
    sizes = [bits_in_memory(type_) // 8 for type_ in types]
    starts = [byte_offset + offset for offset in step.operand_offsets]
    ends = [start + step.size * size for start, size in zip(starts, sizes, strict=True)]
    owner = not_duplicate(ctx, step.duplicate_lanes, step.duplicate_warps)
    results = list(totals)

    def write(groups: tuple[int, ...]) -> list[int]:
        for group in groups:
            for type_, value, start, size, end in zip(types, totals[group], starts, sizes, ends, strict=True):
                shared.store(ctx, type_, f.add(stores[group], module.uint(start // size)), [value], end)
        return []

    def read(place: int) -> list[int]:
        return [shared.load(ctx, type_, f.add(place, module.uint(start // size)), 1, end)[0]
                for type_, start, size, end in zip(types, starts, sizes, ends, strict=True)]

    for number, groups in enumerate(step.rounds):
        if number:
            ctx.barrier()
        f.if_(owner, lambda groups=groups: write(groups))  # type: ignore[misc]
        ctx.barrier()
        for group in groups:
            # Bits of a place that the partial's number sets are those that the load layout leaves at zero.
            parts = [read(f.add(loads[group], module.uint(place))) for place in partial_places]
            results[group] = reduce(combine, parts)
    return results
