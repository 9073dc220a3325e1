"""Long element-by-element code in a loop over registers, so that its size does not grow with the tile."""

from __future__ import annotations

from collections.abc import Callable

from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation
from ..ttgir.traits import in_loop
from .context import Context
from .elementwise import map_registers

#: Instructions of one element's code, roughly.
MEDIUM, LONG = 100, 500


def map_rolled(ctx: Context, operation: Operation, emit: Callable[..., int], length: int = MEDIUM) -> None:
    """map_registers for code of about ``length`` instructions an element, in a loop where repeating it is too long.

    Inside a loop of the kernel none is added: Mesa's CPU driver ends loops after 65,535 iterations in all.
    """
    rows = list(zip(*(ctx.registers(operand) for operand in operation.operands), strict=True))
    distinct = list(dict.fromkeys(rows))
    budget = ctx.capabilities.traits.unrolled_instructions
    if len(distinct) <= max(1, budget // length) or in_loop(operation):
        map_registers(ctx, operation, emit)
        return
    f, module = ctx.f, ctx.module
    count = len(distinct)
    types = [f.type_of(value) for value in distinct[0]]
    result_type = ctx.type_id(operation.result.type)

    def array(type_id: int) -> tuple[int, int]:
        return f.variable(module.array(type_id, count)), module.pointer(StorageClass.Function, type_id)

    inputs, output = [array(type_id) for type_id in types], array(result_type)
    for index, row in enumerate(distinct):
        for (variable, pointer), value in zip(inputs, row, strict=True):
            f.store(f.access(pointer, variable, module.uint(index)), value)

    def body(carried: list[int]) -> list[int]:
        index = carried[0]
        values = [
            f.load(type_id, f.access(pointer, variable, index))
            for (variable, pointer), type_id in zip(inputs, types, strict=True)
        ]
        f.store(f.access(output[1], output[0], index), emit(*values))
        return [f.add(index, module.uint(1))]

    f.loop(
        [module.uint(0)],
        lambda carried: f.compare(op.ULessThan, carried[0], module.uint(count)),
        body,
        LOOP_CONTROL_DONT_UNROLL,
    )
    loaded = [f.load(result_type, f.access(output[1], output[0], module.uint(index))) for index in range(count)]
    place = {row: value for row, value in zip(distinct, loaded, strict=True)}
    ctx.define(operation.result, [place[row] for row in rows])
