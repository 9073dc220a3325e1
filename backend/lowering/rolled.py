"""Long element-by-element code in a loop over registers, so that its size does not grow with the tile."""

from __future__ import annotations

from collections.abc import Callable

from ..planning.plans import Rolled
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation
from .elementwise import map_registers
from .lowering import Lowering


def map_rolled(ctx: Lowering, operation: Operation, emit: Callable[..., int]) -> None:
    """map_registers for long code: in a loop over registers where so many of them differ as planned."""
    plan = ctx.plan_of(operation, Rolled)
    rows = list(zip(*(ctx.registers(operand) for operand in operation.operands), strict=True))
    distinct = list(dict.fromkeys(rows))
    count, together = len(distinct), plan.together
    if count <= plan.unrolled:
        map_registers(ctx, operation, emit)
        return
    f, module = ctx.f, ctx.module
    types = [f.type_of(value) for value in distinct[0]]
    result_type = ctx.type_id(operation.result.type)
    # The last round computes elements of its own where the count is not a multiple, from zeros.
    rounded = -(-count // together) * together

    def array(type_id: int) -> tuple[int, int]:
        return f.variable(module.array(type_id, rounded)), module.pointer(StorageClass.Function, type_id)

    inputs, output = [array(type_id) for type_id in types], array(result_type)
    padded = distinct + [tuple(map(module.null, types))] * (rounded - count)
    for index, row in enumerate(padded):
        for (variable, pointer), value in zip(inputs, row, strict=True):
            f.store(f.access(pointer, variable, module.uint(index)), value)

    def body(carried: list[int]) -> list[int]:
        for place in range(together):
            index = f.add(carried[0], module.uint(place))
            values = [
                f.load(type_id, f.access(pointer, variable, index))
                for (variable, pointer), type_id in zip(inputs, types, strict=True)
            ]
            f.store(f.access(output[1], output[0], index), emit(*values))
        return [f.add(carried[0], module.uint(together))]

    f.loop(
        [module.uint(0)],
        lambda carried: f.compare(op.ULessThan, carried[0], module.uint(rounded)),
        body,
        LOOP_CONTROL_DONT_UNROLL,
    )
    loaded = [f.load(result_type, f.access(output[1], output[0], module.uint(index))) for index in range(count)]
    place = {row: value for row, value in zip(distinct, loaded, strict=True)}
    ctx.define(operation.result, [place[row] for row in rows])
