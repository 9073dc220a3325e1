"""``tt.assert`` and ``tt.print``: what they say reaches the host through the report buffer (reports.py)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ..layouts.element_sizes import bits_in_memory
from ..layouts.linear import LinearLayout
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, IntegerType, TensorType, Type, element_type
from .index_arithmetic import coordinates, owns
from .lowering import Lowering
from .registry import lowers

#: Any type of no shape: its owner is one invocation.
SCALAR = IntegerType(32)


@lowers("tt.assert")
def _assert(ctx: Lowering, operation: Operation) -> None:
    """Each element is asserted by the invocation that owns it: another may have loaded what the owner stored since."""
    f = ctx.f
    reports = ctx.reports
    condition = operation["condition"]
    value = _compared(condition)
    facts = {"text": operation.attribute("message"), "shape": _shape(condition.type)}
    if value is not None:
        facts["compared"] = str(element_type(value.type))
    number = reports.message("assert", operation.location, **facts)
    failing = [f.logical_not(holds) for holds in ctx.registers(condition)]
    failed = reduce(f.logical_or, failing)

    def first(registers: Sequence[int]) -> int:
        """That of the first element that failed."""
        found = registers[-1]
        for fails, register in zip(reversed(failing[:-1]), reversed(registers[:-1]), strict=True):
            found = f.select(fails, register, found)
        return found

    def element() -> Sequence[int]:
        zero = ctx.module.uint(0)
        index = first(_places(ctx, condition.type)) if isinstance(condition.type, TensorType) else zero
        if value is None:
            return index, zero, zero
        return index, *_words(ctx, element_type(value.type), first(ctx.registers(value)))

    reports.fail(ctx, f.logical_and(owns(ctx, condition.type), failed), number, element)


def _compared(condition: Value) -> Value | None:
    """The number that an assertion compares: the left one, or the only one that is no constant. With a mask an
    assertion also holds where the mask does not: its condition comes before that (upstream's semantic.py)."""
    owner = condition.owner
    if isinstance(owner, Operation) and owner.name == "arith.ori":
        return next(filter(None, map(_compared, owner.operands)), None)
    if not isinstance(owner, Operation) or owner.name not in ("arith.cmpi", "arith.cmpf"):
        return None
    left, right = owner.operands
    value = right if _is_constant(left) and not _is_constant(right) else left
    return value if isinstance(element_type(value.type), IntegerType | FloatType) else None


def _is_constant(value: Value) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name in ("arith.constant", "tt.splat")


def _shape(type_: Type) -> list[int]:
    return list(type_.shape) if isinstance(type_, TensorType) else []


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
                "shape": _shape(operand.type),
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
