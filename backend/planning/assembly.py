"""Inline assembly: read, and checked against the types of the operation, before anything is emitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..analysis.code_size import of_assembly
from ..driver_quirks import Driver
from ..errors import UnsupportedOperation
from ..layouts.strip_layouts import register_count
from ..ptx.constraints import parse_constraints
from ..ptx.parser import parse
from ..ptx.program import PtxError
from ..ttgir.ir import Operation, Value
from ..ttgir.types import PointerType, TensorType, element_type
from .plans import InlineAssembly, Plan
from .rolling import rounds


def plan_assembly(operation: Operation, driver: Driver) -> Plan:
    """The plan of a ``tt.elementwise_inline_asm``. Raises UnsupportedOperation."""
    try:
        plan = InlineAssembly(
            constraints=parse_constraints(operation.attribute("constraints")),
            program=parse(operation.attribute("asm_string")),
            pack=int(operation.attribute("packed_element")),
        )
        _check(plan, "result", plan.constraints.results, operation.results)
        _check(plan, "argument", plan.constraints.arguments, operation.operands)
    except PtxError as error:
        raise UnsupportedOperation(operation, f"inline assembly: {error.reason}", error.instead) from error
    type_ = operation.results[0].type
    packs = -(-register_count(type_) // plan.pack) if isinstance(type_, TensorType) else 1
    loop = rounds(operation, max(1, of_assembly(plan.program)), packs, driver)
    return replace(plan, reason=loop.reason, registers=loop.registers, unrolled=loop.unrolled, together=loop.together)


def _check(plan: InlineAssembly, what: str, given: tuple[int, ...], values: Iterable[Value]) -> None:
    wanted: list[int] = []
    for value in values:
        if isinstance(element_type(value.type), PointerType):
            raise PtxError(f"{what} {len(wanted)} is a pointer", "load and store with tl.load and tl.store")
        width = plan.element_width(value.type)
        together = plan.sharing(width)
        wanted += [width * together] * (plan.pack // together)
    if len(wanted) != len(given):
        raise PtxError(
            f"the constraints name {len(given)} registers for {what}s; with pack={plan.pack} they fill {len(wanted)}"
        )
    for index, (bits, register) in enumerate(zip(wanted, given, strict=True)):
        if bits > register:
            raise PtxError(f"{what} {index} has {bits} bits, and its constraint's register {register}")
