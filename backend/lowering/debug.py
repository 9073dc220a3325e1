"""``tt.assert`` and ``tt.print``: what they say reaches the host through the report buffer (reports.py)."""

from __future__ import annotations

from functools import reduce

from ..layouts.element_sizes import bits_in_memory, element_type
from ..layouts.linear import LinearLayout
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, TensorType, Type
from .linear import coordinates, owns
from .lowering import Lowering
from .registry import lowers

#: Any type of no shape: its owner is one invocation.
SCALAR = IntegerType(32)


@lowers("tt.assert")
def _assert(ctx: Lowering, operation: Operation) -> None:
    """Each element is asserted by the invocation that owns it: another may have loaded what the owner stored since."""
    f = ctx.f
    reports = ctx.reports
    condition = operation.operands[0]
    number = reports.message("assert", operation.location, text=operation.attribute("message"))
    failed = reduce(f.logical_or, map(f.logical_not, ctx.registers(condition)))
    reports.fail(ctx, f.logical_and(owns(ctx, condition.type), failed), number)


@lowers("tt.print")
def _print(ctx: Lowering, operation: Operation) -> None:
    """Each element is recorded by the one invocation that owns it."""
    reports, zero = ctx.reports, ctx.module.uint(0)
    signed = operation.attribute("isSigned") or ()
    number = reports.message(
        "print",
        operation.location,
        prefix=operation.attribute("prefix"),
        hex=bool(operation.attribute("hex")),
        operands=[
            {
                "type": str(element_type(operand.type)),
                "signed": bool(signed[index]) if signed else True,
                "shape": list(operand.type.shape) if isinstance(operand.type, TensorType) else [],
            }
            for index, operand in enumerate(operation.operands)
        ],
    )
    if not operation.operands:
        reports.record(ctx, owns(ctx, SCALAR), number, 0, zero, (zero, zero))
        return
    for index, operand in enumerate(operation.operands):
        registers = ctx.registers(operand)
        places = _places(ctx, operand.type)
        for place, register in zip(places, registers, strict=True):
            reports.record(
                ctx, owns(ctx, operand.type), number, index, place, _words(ctx, element_type(operand.type), register)
            )


def _places(ctx: Lowering, type_: Type) -> list[int]:
    """The row-major index of each register's element."""
    if not isinstance(type_, TensorType):
        return [ctx.module.uint(0)]
    layout = ctx.layout(type_)
    return coordinates(ctx, LinearLayout.from_flat(layout.inputs, (layout.size,)), 0)


def _words(ctx: Lowering, type_: Type, value: int) -> tuple[int, int]:
    """The bits of an element as two words."""
    f, module = ctx.f, ctx.module
    if module.kinds[f.type_of(value)][0] == "bool":
        return f.select(value, module.uint(1), module.uint(0)), module.uint(0)
    width = module.kinds[f.type_of(value)][1]
    assert width == bits_in_memory(type_), type_
    bits = f.zero_extend(f.bitcast(value, module.int(width)), 64)
    return f.zero_extend(bits, 32), f.zero_extend(f.shr(bits, 32), 32)
