"""How many loop iterations an invocation may make, as far as constants tell."""

from __future__ import annotations

from collections.abc import Callable

from ..ttgir.ir import Block, Function, Operation, Value

#: Operations whose emitted code may loop as often as data, or the choices of the lowering (a dot's rectangles), say.
_UNBOUNDED = (
    "scf.while",
    "tt.dot",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.atomic_poll",
    "arith.remf",
    "math.ipowi",
    "tt.extern_elementwise",
)


def most_iterations(function: Function, rounds: Callable[[Operation], int] = lambda operation: 0) -> int | None:
    """An upper bound of the iterations of all ``scf.for`` together, the last check of each counted; None where it is
    not known. ``rounds``: of the loop over registers that an operation in them has (planning/rolling.py)."""
    assert function.body is not None
    return _of_block(function.body.entry, rounds)


def _of_block(block: Block, rounds: Callable[[Operation], int]) -> int | None:
    total = 0
    for operation in block.operations:
        count = _of_operation(operation, rounds)
        if count is None:
            return None
        total += count
    return total


def _of_operation(operation: Operation, rounds: Callable[[Operation], int]) -> int | None:
    if operation.name in _UNBOUNDED:
        return None
    inner = rounds(operation)
    for region in operation.regions:
        for block in region.blocks:
            count = _of_block(block, rounds)
            if count is None:
                return None
            inner += count
    if operation.name != "scf.for":
        return inner
    lower, upper, step = (_constant(value) for value in operation.operands[:3])
    if lower is None or upper is None or not step:
        return None
    trips = max(0, -(-(upper - lower) // step))
    return trips * (inner + 1) + 1


def _constant(value: Value) -> int | None:
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        number = owner.attributes["value"]
        return number if isinstance(number, int) else None
    return None
