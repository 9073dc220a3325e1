"""Regions of scalars, inlined wherever they are applied: among them the bodies of reduce and scan, which combine two
sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..ttgir.ir import Block, Operation
from .lowering import Lowering
from .registry import lower

#: One value an operand: the state that a reduction or scan combines.
Values: TypeAlias = Sequence[int]


def applied(ctx: Lowering, block: Block, values: Values) -> list[int]:
    """What the block of a region gives of ``values``, all scalars."""
    for argument, value in zip(block.arguments, values, strict=True):
        ctx[argument] = value
    for inner in block.operations[:-1]:
        lower(ctx, inner)
    return [ctx.scalar(value) for value in block.terminator.operands]


def combiner(ctx: Lowering, operation: Operation) -> Callable[[Values, Values], list[int]]:
    """``combine(earlier, later)``: the operation's region applied to two sets of values."""
    block = operation.regions[0].entry
    count = len(block.arguments) // 2

    def combine(earlier: Values, later: Values) -> list[int]:
        results = applied(ctx, block, (*earlier, *later))
        assert len(results) == count, operation.name
        return results

    return combine
