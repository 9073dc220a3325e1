"""What all element-by-element rules share: the loop over registers."""

from __future__ import annotations

from collections.abc import Callable

from ..ttgir.ir import Operation
from .lowering import Lowering


def map_registers(ctx: Lowering, operation: Operation, emit: Callable[..., int]) -> None:
    """Defines the only result register by register: ``emit(*ids)`` of the operands' registers. Equal operands are
    computed once, so broadcast registers cost nothing."""
    known: dict[tuple[int, ...], int] = {}
    results = []
    for operands in zip(*(ctx.registers(operand) for operand in operation.operands), strict=True):
        value = known.get(operands)
        if value is None:
            value = known[operands] = emit(*operands)
        results.append(value)
    ctx.define(operation.result, results)
