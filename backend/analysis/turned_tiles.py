"""Loops that turn a tile around and carry it on: a transposition, or another change of its shape, on the way from one
iteration to the next.

Upstream's pass that removes layout conversions does not come to an end where it may compute such a tile again in other
layouts: with tiles that start as a constant, or have fewer elements than there are threads.
"""

from __future__ import annotations

from ..ttgir.ir import Function, Operation, Value
from ..ttgir.operations import OPERATIONS, Layouts, Pointers, definition_of
from .pointer_range import carried

#: Operations whose operand and result cannot have one layout.
TURNS = frozenset(name for name, row in OPERATIONS.items() if row.layouts is Layouts.TURNED)

#: Operations that carry values from one iteration to the next.
LOOPS = frozenset(name for name, row in OPERATIONS.items() if row.loop)

#: Their results have a layout that does not depend on their operands'.
_ENDS = frozenset({"tt.dot", "tt.dot_scaled", "tt.atomic_rmw", "tt.atomic_cas"})


def turned_carried_tile(function: Function) -> Operation | None:
    """One of TURNS by way of which a value that a loop carries is computed from the one of the iteration before."""
    operations = list(function.walk())
    turns = [operation for operation in operations if operation.name in TURNS]
    if not turns:
        return None
    targets: dict[Value, list[Value]] = {}
    for operation in operations:
        if definition_of(operation).pointers is Pointers.CARRIED:
            for groups, sources in carried(operation):
                for source in sources:
                    for group in groups:
                        for one, other in zip(source, group, strict=True):
                            targets.setdefault(one, []).append(other)
        elif operation.name not in _ENDS:
            for operand in operation.operands:
                targets.setdefault(operand, []).extend(operation.results)
    return next((operation for operation in turns if _reaches(operation, targets)), None)


def _reaches(operation: Operation, targets: dict[Value, list[Value]]) -> bool:
    """Whether an operand of ``operation`` is computed from its results."""
    found = set(operation.results)
    pending = list(found)
    while pending:
        for target in targets.get(pending.pop(), ()):
            if target not in found:
                found.add(target)
                pending.append(target)
    return not found.isdisjoint(operation.operands)
