"""What is done alike for many registers: how many of them are computed in one round of a loop over registers.

Code that is repeated for every register of a tile takes drivers long to compile (``Driver.unrolled_instructions``).
Some drivers end loops after so many iterations, counted over all of an invocation (``Faults.loop_limit``).
loop_limit.py asks the plans how often these loops turn.
"""

from __future__ import annotations

from ..analysis.code_size import ROUNDED, UNPACKED, length
from ..driver_quirks import Driver
from ..layouts.strip_layouts import register_count
from ..ttgir.ir import Operation
from ..ttgir.operations import in_loop
from ..ttgir.types import FloatType, TensorType, element_type
from .plans import Plan, Rolled, Unmade

#: Numbers that a loop unpacks in one round, so that it need not wait for each of them.
_UNPACKED_TOGETHER = 4


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


def unpacks(operation: object) -> bool:
    """Whether an operation gives a tensor of numbers of four or eight bits in a wider format."""
    if not isinstance(operation, Operation) or not operation.results:
        return False
    if operation.name == "ttg.fp4_to_fp":
        return True
    if operation.name != "tt.fp_to_fp" or operation.attribute("rounding") == "rtz":
        return False
    return _narrow(operation) and isinstance(operation.result.type, TensorType)


def _narrow(operation: Operation) -> bool:
    source, target = (element_type(value.type) for value in (operation["src"], operation.result))
    return isinstance(source, FloatType) and source.width == 8 and isinstance(target, FloatType) and target.width > 8


def _scaling(operation: Operation) -> Operation | None:
    """The product that is the only use of what ``operation`` unpacks, and that nothing fuses into a sum."""
    users = operation.result.uses
    if len(users) != 1 or users[0].name != "arith.mulf" or users[0].block is not operation.block:
        return None
    sums = ("arith.addf", "arith.subf")
    return None if any(use.name in sums for use in users[0].result.uses) else users[0]


def plan_unpacked(operation: Operation, driver: Driver) -> Plan:
    """The plan of an operation that unpacks: where its numbers are scaled in a loop, they are unpacked there."""
    if not unpacks(operation):
        return Plan()
    scaling = _scaling(operation)
    if scaling is not None and plan_scaled(scaling, driver).iterations:
        return Unmade((), (), "its numbers are unpacked where they are scaled")
    return _unpacking(operation, UNPACKED, driver)


def plan_scaled(product: Operation, driver: Driver) -> Plan:
    """The plan of a product: in a loop together with the unpacking of its operands, where both are long code."""
    owners = [value.owner for value in product.operands]
    unpacked = [owner for owner in owners if isinstance(owner, Operation) and unpacks(owner)]
    unpacked = [owner for owner in unpacked if _scaling(owner) is product]
    if not unpacked:
        return Plan()
    rounding = ROUNDED if element_type(product.result.type) == FloatType("bf16") else 1
    return _unpacking(product, len(unpacked) * UNPACKED + rounding, driver)


def _unpacking(operation: Operation, each: int, driver: Driver) -> Plan:
    """A loop over the registers of ``operation``, in or outside a loop of the kernel, where that is more code than the
    driver is to have of it."""
    registers = register_count(operation.result.tensor)
    if driver.unrolled_unpacking is None:
        return Plan()
    unrolled = driver.unrolled_unpacking // each
    reason = f"code of {each} instructions is repeated for {unrolled} registers at most" if registers > unrolled else ""
    return Rolled((), (), reason, registers, unrolled, _UNPACKED_TOGETHER)
