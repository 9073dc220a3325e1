"""Regions that combine two sets of scalars: the bodies of reduce and scan, inlined wherever they are applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..ttgir.ir import Operation
from .lowering import Lowering
from .registry import lower

#: One value an operand: the state that a reduction or scan combines.
Values: TypeAlias = Sequence[int]


def combiner(ctx: Lowering, operation: Operation) -> Callable[[Values, Values], list[int]]:
    """``combine(earlier, later)``: the operation's region applied to two sets of values."""
    block = operation.regions[0].entry
    count = len(block.arguments) // 2

    def combine(earlier: Values, later: Values) -> list[int]:
        for argument, value in zip(block.arguments, (*earlier, *later), strict=True):
            ctx[argument] = value
        for inner in block.operations[:-1]:
            lower(ctx, inner)
        results = [ctx.scalar(value) for value in block.terminator.operands]
        assert len(results) == count, operation.name
        return results

    return combine
