"""How many loop iterations an invocation may make, as far as constants tell."""

from __future__ import annotations

from collections.abc import Callable

from ..ttgir.ir import Block, Function, Operation
from ..ttgir.operations import definition_of
from .places import constant


def most_iterations(
    function: Function,
    rounds: Callable[[Operation], int] = lambda operation: 0,
    copies: Callable[[Operation], int | None] = lambda operation: None,
) -> int | None:
    """An upper bound of the iterations of all loops together, the last check of each counted; None if it is not
    known. ``rounds``: of the loops that the code of an operation has itself; ``copies``: how often the code of its
    regions is repeated, where these are not control flow."""
    assert function.body is not None
    return _of_block(function.body.entry, rounds, copies)


def _of_block(
    block: Block, rounds: Callable[[Operation], int], copies: Callable[[Operation], int | None]
) -> int | None:
    total = 0
    for operation in block.operations:
        count = _of_operation(operation, rounds, copies)
        if count is None:
            return None
        total += count
    return total


def _of_operation(
    operation: Operation, rounds: Callable[[Operation], int], copies: Callable[[Operation], int | None]
) -> int | None:
    if definition_of(operation).unbounded:
        return None
    inner = 0
    for region in operation.regions:
        for block in region.blocks:
            count = _of_block(block, rounds, copies)
            if count is None:
                return None
            inner += count
    if inner and not operation.name.startswith("scf."):
        times = copies(operation)
        if times is None:
            return None
        inner *= times
    inner += rounds(operation)
    if operation.name != "scf.for":
        return inner
    lower, upper, step = (constant(value) for value in operation.operands[:3])
    if lower is None or upper is None or not step or (operation.flag("unsignedCmp") and min(lower, upper) < 0):
        return None
    trips = max(0, -(-(upper - lower) // step))
    return trips * (inner + 1) + 1
