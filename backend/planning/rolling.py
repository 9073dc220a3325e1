"""What is done alike for many registers: how many of them are computed in one round of a loop over registers.

Code that is repeated for every register of a tile takes drivers long to compile (``Driver.unrolled_instructions``).
Some drivers end loops after so many iterations, counted over all of an invocation (``Faults.loop_limit``).
loop_limit.py asks the plans how often these loops turn.
"""

from __future__ import annotations

from ..analysis.code_size import length
from ..drivers import Driver
from ..layouts.strips import register_count
from ..ttgir.ir import Operation
from ..ttgir.traits import in_loop
from ..ttgir.types import TensorType
from .plans import Plan, Rolled


def plan_rolled(operation: Operation, driver: Driver) -> Plan:
    """A long element-by-element operation. No plan for one that is an instruction after all, or reads a register.

    In a loop of the kernel a round is longer, and is made only where that spares more: rounds of all its iterations add
    up to the driver's limit."""
    each, type_ = length(operation, driver), operation.results[0].type
    if each == 1:
        return Plan()
    return rounds(operation, each, register_count(type_) if isinstance(type_, TensorType) else 1, driver)


def rounds(operation: Operation, each: int, registers: int, driver: Driver) -> Rolled:
    """A loop over ``registers``, or over what an operation has many of, where code of so many instructions for ``each``
    is too much to be repeated."""
    if in_loop(operation):
        budget = driver.unrolled_in_loop
        together = max(1, budget // each)
        unrolled = 2 * together if budget else registers
    else:
        together, unrolled = 1, max(1, driver.unrolled_instructions // each)
    rolled = registers > unrolled
    reason = f"code of {each} instructions is repeated for {unrolled} registers at most" if rolled else ""
    return Rolled((), (), reason, registers, unrolled, together)
