"""``tt.gather``: by shuffles where layouts/gather_plans.py finds them, else through workgroup memory.

An index outside of the source has no meaning in the language; here it counts modulo the extent, so that no other memory
is read.
"""

from __future__ import annotations

from ..layouts.element_sizes import bits_in_memory
from ..layouts.gather_plans import INDEX, GatherByShuffles
from ..layouts.gf2 import span_values
from ..layouts.linear import LinearLayout
from ..planning.memory_pools import first_element
from ..planning.plans import Gather
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import TensorType
from .index_arithmetic import apply_bases, coordinates, unique_owner
from .lowering import Lowering
from .registry import lowers
from .rolled import for_each
from .scratch import take
from .shuffle import shuffle


@lowers("tt.gather")
def _gather(ctx: Lowering, operation: Operation) -> None:
    f, module = ctx.f, ctx.module
    source, indices = operation.operands
    axis = int(operation.attribute("axis"))
    last = source.tensor.shape[axis] - 1
    places = [f.and_(f.zero_extend(index, 32), module.uint(last)) for index in ctx.registers(indices)]
    result = ctx.layout(indices.type)
    plan = ctx.plan_of(operation, Gather)
    if plan.shuffles is not None:
        values = _by_shuffles(ctx, plan.shuffles, ctx.registers(source), places)
    else:
        values = _through_shared(ctx, plan, source.tensor, ctx.registers(source), result, axis, places)
    ctx.define(operation.result, values)


def _by_shuffles(ctx: Lowering, plan: GatherByShuffles, registers: list[int], places: list[int]) -> list[int]:
    f, module = ctx.f, ctx.module

    def own(layout: LinearLayout) -> int:
        return f.xor(apply_bases(f, ctx.lane, layout.inputs["lane"]), apply_bases(f, ctx.warp, layout.inputs["warp"]))

    thread_lane, thread_register = own(plan.lane), own(plan.register)
    lanes, numbers = (span_values(layout.inputs["register"]) for layout in (plan.lane, plan.register))
    results = []
    for place, lane_part, register_part in zip(places, lanes, numbers, strict=True):
        lane = f.xor(f.xor(apply_bases(f, place, plan.lane.inputs[INDEX]), thread_lane), module.uint(lane_part))
        register = f.xor(apply_bases(f, place, plan.register.inputs[INDEX]), thread_register)
        value = shuffle(ctx, registers[plan.candidates[0] ^ register_part], lane)
        for candidate in plan.candidates[1:]:
            other = shuffle(ctx, registers[candidate ^ register_part], lane)
            value = f.select(f.compare(op.IEqual, register, module.uint(candidate)), other, value)
        results.append(value)
    return results


def _through_shared(
    ctx: Lowering,
    plan: Gather,
    source: TensorType,
    registers: list[int],
    result: LinearLayout,
    axis: int,
    places: list[int],
) -> list[int]:
    """The whole source in row-major order, then each element from its index."""
    f, module, shared, element = ctx.f, ctx.module, ctx.shared, source.element
    size = bits_in_memory(element) // 8
    layout = ctx.layout(source)
    start = take(ctx, plan.scratch[0])
    base, end = module.uint(first_element(start, size)), start + layout.size * size
    width = plan.stored
    stores = coordinates(ctx, layout.reshape((layout.size,)), 0)
    first: dict[int, int] = {}

    def write() -> list[int]:
        for register, place in list(enumerate(layout.images("register")))[::width]:
            if first.setdefault(place, register) == register:
                index = f.shr(f.add(stores[register], base), width.bit_length() - 1)
                shared.store(ctx, element, index, registers[register : register + width], end, start)
        return []

    f.if_(unique_owner(ctx, layout), write)
    ctx.barrier()
    strides = [1] * source.rank
    for dim in reversed(range(source.rank - 1)):
        strides[dim] = strides[dim + 1] * source.shape[dim + 1]
    offsets = [f.add(f.mul(place, module.uint(strides[axis])), base) for place in places]
    for dim in range(source.rank):
        if dim != axis:
            offsets = [
                f.add(offset, f.mul(coordinate, module.uint(strides[dim])))
                for offset, coordinate in zip(offsets, coordinates(ctx, result, dim), strict=True)
            ]

    def read(offset: int) -> list[int]:
        return shared.load(ctx, element, offset, 1, end, start)

    rows = [(offset,) for offset in offsets]
    return [value for (value,) in for_each(ctx, plan.loads, rows, [f.type_of(registers[0])], read)]
