"""``tt.reduce``: carries out the plan of layouts/reduction.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ..layouts.element_sizes import bits_in_memory
from ..layouts.reduction import PartialResults
from ..layouts.strip_layouts import array_places
from ..planning.memory_pools import first_element
from ..planning.plans import Reduction
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.operations import definition_of
from ..ttgir.types import Type, element_type
from .index_arithmetic import coordinates, not_duplicate
from .lowering import Lowering
from .regions import combiner
from .registry import lowers
from .scratch import take
from .shuffle import shuffle, shuffle_xor

Combine = Callable[[list[int], list[int]], list[int]]


@lowers("tt.reduce")
def _reduce(ctx: Lowering, operation: Operation) -> None:
    types = [element_type(operand.type) for operand in operation.operands]
    planned = ctx.plan_of(operation, Reduction)
    combine = combiner(ctx, operation)
    values = [list(state) for state in zip(*map(ctx.registers, operation.operands), strict=True)]
    for plan, scratch in zip(planned.steps, planned.places, strict=True):
        starts = [take(ctx, place) for place in scratch]
        totals = [_in_pairs(combine, [values[register] for register in group]) for group in plan.groups]
        for mask in plan.lane_masks:
            totals = [combine(total, [shuffle_xor(ctx, value, mask) for value in total]) for total in totals]
        if plan.first_lane is not None:
            lanes = coordinates(ctx, plan.first_lane, 0)
            totals = [[shuffle(ctx, value, lane) for value in total] for total, lane in zip(totals, lanes, strict=True)]
        if plan.across_warps:
            totals = _across_warps(ctx, operation, plan.across_warps, totals, types, starts, combine)
        values = [totals[group] for group in plan.results]
    for number, result in enumerate(operation.results):
        ctx.define(result, [state[number] for state in values])


@lowers("spirv.fold")
def _fold(ctx: Lowering, operation: Operation) -> None:
    """Registers of a strip are combined into the tile's registers that lie at their place in it, apart from whole tiles
    (transforms/strip_reductions.py)."""
    f, count, counter = ctx.f, len(operation.results), ctx.scalar(operation.operands[-1])
    tiles, strips = ([ctx.registers(one) for one in operation.operands[first : first + count]] for first in (0, count))
    type_ = operation.operands[count].tensor
    places = array_places(type_, int(operation.attribute("dim")))
    size = len(tiles[0])
    combine = combiner(ctx, operation)
    at_first = f.compare(op.IEqual, counter, ctx.module.uint(0))
    results: list[list[int]] = []
    for register, place in enumerate(place for place in places if place < size):
        members = sorted((other, number) for number, other in enumerate(places) if other % size == place)
        strip = _in_pairs(combine, [[values[number] for values in strips] for _, number in members])
        both = combine([values[register] for values in tiles], strip)
        results.append([f.select(at_first, new, old) for new, old in zip(strip, both, strict=True)])
    for result, values in zip(operation.results, zip(*results, strict=True), strict=True):
        ctx.define(result, list(values))


def _in_pairs(combine: Combine, values: list[list[int]]) -> list[int]:
    """All values combined in their order, halves before wholes: no result waits for more than a few others, as it would
    in a chain (a processor's maximum of a row took 1.3 times as long), and rounding errors of sums are smaller."""
    if len(values) == 1:
        return values[0]
    half = 1 << (len(values) - 1).bit_length() - 1
    return combine(_in_pairs(combine, values[:half]), _in_pairs(combine, values[half:]))


def _order_is_free(operation: Operation, partials: int) -> bool:
    """Whether each invocation may combine the partial results in its own order: one operation does, and gives the
    same bits in every order, which is less to ask for of two."""
    combination = operation.regions[0].entry.operations
    known = definition_of(combination[0])
    return len(combination) == 2 and known.commutative and (partials == 2 or known.associative)


def _across_warps(
    ctx: Lowering,
    operation: Operation,
    step: PartialResults,
    totals: list[list[int]],
    types: list[Type],
    starts: list[int],
    combine: Combine,
) -> list[list[int]]:
    """Stores each warp's part, then every invocation reads and combines all parts: all in ascending order, or where the
    order does not matter, its own and the others. Several groups an access: Mesa's CPU driver makes a loop of each, and
    its compile time grows with the square of their number where there are barriers (2,048-wide sort: 17.9 s to 5.8)."""
    f, module, shared = ctx.f, ctx.module, ctx.shared
    stores = coordinates(ctx, step.store, 0)
    loads = coordinates(ctx, step.load, 0)
    partial_places = step.load.images("partial")
    sizes = [bits_in_memory(type_) // 8 for type_ in types]
    own_first = _order_is_free(operation, step.partials)
    owner = not_duplicate(ctx, step.duplicate_lanes, step.duplicate_warps)
    width = min(step.width, *(shared.width_limit(type_) for type_ in types))
    assert not any(start % (width * size) for start, size in zip(starts, sizes, strict=True)), "scratch is not aligned"
    results = list(totals)

    def index(place: int, start: int, size: int) -> int:
        return f.shr(f.add(place, module.uint(first_element(start, size))), width.bit_length() - 1)

    def write(vectors: list[tuple[int, ...]]) -> list[int]:
        for vector in vectors:
            for number, (type_, start, size) in enumerate(zip(types, starts, sizes, strict=True)):
                shared.store(
                    ctx,
                    type_,
                    index(stores[vector[0]], start, size),
                    [totals[group][number] for group in vector],
                    start + step.size * size,
                    start,
                )
        return []

    def read(place: int) -> list[list[int]]:
        """The values of each group of the vector at ``place``."""
        loaded = [
            shared.load(ctx, type_, index(place, start, size), width, start + step.size * size, start)
            for type_, start, size in zip(types, starts, sizes, strict=True)
        ]
        return [list(values) for values in zip(*loaded, strict=True)]

    for number, groups in enumerate(step.rounds):
        vectors = [groups[first : first + width] for first in range(0, len(groups), width)]
        if number:
            ctx.barrier()
        f.if_(owner, lambda vectors=vectors: write(vectors))  # type: ignore[misc]
        ctx.barrier()
        for vector in vectors:
            if own_first:
                parts: list[list[list[int]]] = [[totals[group] for group in vector]]
                parts += [read(f.xor(stores[vector[0]], module.uint(place))) for place in partial_places[1:]]
            else:
                # Bits of a place that the partial's number sets are those that the load layout leaves at zero.
                parts = [read(f.add(loads[vector[0]], module.uint(place))) for place in partial_places]
            for group, states in zip(vector, zip(*parts, strict=True), strict=True):
                results[group] = reduce(combine, states)
    return results
