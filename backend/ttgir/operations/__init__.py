"""The operations of TTIR and TTGIR. The row of an operation says how it is written, what it does, which types it takes,
what becomes of it, and how much work it is (``definition.Definition``). Each family of operations has a module.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..declared import OWN
from ..ir import Operation, Value
from . import (
    arith,
    control_flow,
    dots,
    elementwise,
    math,
    memory,
    pipelines,
    programs,
    reductions,
    register_arrays,
    shapes,
    shared_memory,
)
from .definition import (  # noqa: F401 - callers find them here
    ANYTHING,
    LONG,
    MEDIUM,
    ROWS,
    SHORT,
    TOUCHES_SHARED,
    WORST,
    Definition,
    Effect,
    End,
    Layouts,
    Memory,
    Pointers,
    Refusal,
)

#: The modules with the rows.
FAMILIES = (
    *(arith, control_flow, dots, elementwise, math),
    *(memory, pipelines, programs, reductions, register_arrays, shapes, shared_memory),
)

#: Operation → its row.
OPERATIONS: Mapping[str, Definition] = ROWS


def definition_of(operation: Operation) -> Definition:
    """The row of an operation, the worst case where it has none."""
    return OPERATIONS.get(operation.name, WORST)


def masks(operation: Operation) -> list[Value]:
    """The mask of an access to device memory, if it has one."""
    return operation.operand_group("mask") if definition_of(operation).masked else []


def memory_semantics(operation: Operation) -> str | None:
    """How an atomic operation orders other accesses; None of other operations."""
    declared = OWN.get(operation.name)
    return operation.attribute("sem") if declared is not None and "sem" in declared.values else None


def takes_shared_memory(name: str) -> bool:
    """Whether an operation of this name may have shared memory."""
    return OPERATIONS.get(name, WORST).memory is not Memory.NONE


def in_loop(operation: Operation) -> bool:
    """Whether an operation is in a region of its function that may run several times."""
    return any(definition_of(one).loop for one in operation.holders())
