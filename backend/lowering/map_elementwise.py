"""``tt.map_elementwise``: its region, applied to as many consecutive registers at a time as a pack has."""

from __future__ import annotations

from ..ttgir.ir import Operation
from .errors import UnsupportedOperation
from .lowering import Lowering
from .regions import applied
from .registry import lowers


@lowers("tt.map_elementwise")
def _map_elementwise(ctx: Lowering, operation: Operation) -> None:
    pack = int(operation.attribute("pack"))
    block = operation.regions[0].entry
    operands = [ctx.registers(operand) for operand in operation.operands]
    count = len(operands[0])
    if count % pack:
        raise UnsupportedOperation(
            operation,
            f"pack={pack} does not divide the {count} elements of the tensor that an invocation holds",
            "use a smaller pack, a larger tensor or fewer warps",
        )
    results: list[list[int]] = [[] for _ in operation.results]
    for start in range(0, count, pack):
        arguments = [registers[start + place] for registers in operands for place in range(pack)]
        returned = applied(ctx, block, arguments)
        for number, registers in enumerate(results):
            registers += returned[number * pack : (number + 1) * pack]
    for result, registers in zip(operation.results, results, strict=True):
        ctx.define(result, registers)
