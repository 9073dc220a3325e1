"""What is done alike for many registers: how many of them are computed in one round of a loop over registers.

Code that is repeated for every register of a tile takes drivers long to compile (``Driver.unrolled_instructions``).
Some drivers end loops after so many iterations, counted over all of an invocation (``Faults.loop_limit``).
loop_limit.py asks the plans how often these loops turn.
"""

from __future__ import annotations

from ..drivers import Driver
from ..functions.symbols import form_of
from ..layouts.element_sizes import element_type
from ..layouts.strips import register_count
from ..ttgir.ir import Operation
from ..ttgir.traits import in_loop, traits
from ..ttgir.types import FloatType, TensorType, Type
from .plans import Plan, Rolled


def plan_rolled(operation: Operation, driver: Driver) -> Plan:
    """A long element-by-element operation. No plan for one that is an instruction after all, or reads a register.

    In a loop of the kernel a round is longer, and is made only where that spares more: rounds of all its iterations add
    up to the driver's limit."""
    length, type_ = _length(operation, driver), operation.results[0].type
    if not length:
        return Plan()
    return rounds(operation, length, register_count(type_) if isinstance(type_, TensorType) else 1, driver)


def rounds(operation: Operation, length: int, registers: int, driver: Driver) -> Rolled:
    """A loop over ``registers``, or over what an operation has many of, where code of ``length`` instructions for each
    is too much to be repeated."""
    if in_loop(operation):
        budget = driver.unrolled_in_loop
        together = max(1, budget // length)
        unrolled = 2 * together if budget else registers
    else:
        together, unrolled = 1, max(1, driver.unrolled_instructions // length)
    rolled = registers > unrolled
    reason = f"code of {length} instructions is repeated for {unrolled} registers at most" if rolled else ""
    return Rolled((), (), reason, registers, unrolled, together)


def _length(operation: Operation, driver: Driver) -> int:
    """Instructions of the code of one register; 0 where that is one at most."""
    if operation.name == "tt.extern_elementwise":
        form = form_of(operation.attributes["symbol"], [operand.type for operand in operation.operands])
        return 0 if form is None else form.length
    if operation.name == "math.fma" and fma_is_one_instruction(element_type(operation.result.type), driver):
        return 0
    return traits(operation).length


def fma_is_one_instruction(element: Type, driver: Driver) -> bool:
    """Whether ``math.fma`` of this type is Fma of GLSL.std.450."""
    return driver.fused and element in (FloatType("f32"), FloatType("f64"))
