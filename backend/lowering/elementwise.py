"""What all element-by-element rules share: the loop over registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ttgir.ir import Operation
from .lowering import UNREAD, Lowering

#: Operations that give the elements of an operand as they are, in other places.
MOVES = frozenset({"ttg.convert_layout", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.splat", "tt.trans"})


def map_registers(ctx: Lowering, operation: Operation, emit: Callable[..., int]) -> None:
    """Defines the only result register by register: ``emit(*ids)`` of the operands' registers, in those registers that
    are read. Equal operands are computed once, so broadcast registers cost nothing."""
    ctx.define(
        operation.result,
        map_wanted(ctx, operation, zip(*(ctx.registers(operand) for operand in operation.operands), strict=True), emit),
    )


def map_wanted(
    ctx: Lowering, operation: Operation, rows: Iterable[tuple[int, ...]], emit: Callable[..., int]
) -> list[int]:
    """``emit(*row)`` for each of ``rows``, one per register of the only result, in those that are read."""
    known: dict[tuple[int, ...], int] = {}
    wanted = ctx.plan.live.of(operation.result)
    results = []
    for register, operands in enumerate(rows):
        if not wanted >> register & 1:
            results.append(UNREAD)
            continue
        value = known.get(operands)
        if value is None:
            value = known[operands] = emit(*operands)
        results.append(value)
    return results
