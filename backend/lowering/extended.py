"""Integer ``arith`` operations that round otherwise, or give more than the low half: carries, borrows, high halves."""

from __future__ import annotations

from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import IntegerType, element_type
from .defined_integers import signed_divide, signed_remainder, unsigned_divide, unsigned_remainder
from .elementwise import map_registers
from .lowering import Lowering
from .registry import lowers


def _nonzero(ctx: Lowering, value: int) -> int:
    return ctx.f.compare(op.INotEqual, value, ctx.f.constant_like(value, 0))


def _one_where(ctx: Lowering, condition: int, like: int) -> int:
    f = ctx.f
    return f.select(condition, f.constant_like(like, 1), f.constant_like(like, 0))


@lowers("arith.ceildivui")
def _ceil_unsigned(ctx: Lowering, operation: Operation) -> None:
    map_registers(
        ctx,
        operation,
        lambda a, b: ctx.f.add(
            unsigned_divide(ctx, a, b), _one_where(ctx, _nonzero(ctx, unsigned_remainder(ctx, a, b)), a)
        ),
    )


@lowers("arith.ceildivsi", "arith.floordivsi")
def _round_signed(ctx: Lowering, operation: Operation) -> None:
    """The quotient rounded towards zero, corrected by 1 where the exact one lies on the other side of it."""
    f = ctx.f
    up = operation.name == "arith.ceildivsi"

    def emit(a: int, b: int) -> int:
        negative = f.compare(op.SLessThan, f.xor(a, b), f.constant_like(a, 0))
        inexact = _nonzero(ctx, signed_remainder(ctx, a, b))
        correction = _one_where(ctx, f.logical_and(inexact, f.logical_not(negative) if up else negative), a)
        return (f.add if up else f.sub)(signed_divide(ctx, a, b), correction)

    map_registers(ctx, operation, emit)


@lowers("arith.addui_extended", "arith.subui_extended")
def _with_carry(ctx: Lowering, operation: Operation) -> None:
    f = ctx.f
    left, right = (ctx.registers(operand) for operand in operation.operands)
    if operation.name == "arith.addui_extended":
        totals = [f.add(a, b) for a, b in zip(left, right, strict=True)]
        carries = [f.compare(op.ULessThan, total, a) for total, a in zip(totals, left, strict=True)]
    else:
        totals = [f.sub(a, b) for a, b in zip(left, right, strict=True)]
        carries = [f.compare(op.ULessThan, a, b) for a, b in zip(left, right, strict=True)]
    total, carry = operation.results
    ctx.define(total, totals)
    ctx.define(carry, carries)


def _high(ctx: Lowering, a: int, b: int, width: int, signed: bool) -> int:
    f = ctx.f
    if width < 64:
        extend = f.sign_extend if signed else f.zero_extend
        wide = 2 * width
        return f.zero_extend(f.shr(f.mul(extend(a, wide), extend(b, wide)), width), width)
    type_id = f.type_of(a)
    opcode = op.SMulExtended if signed else op.UMulExtended
    return f.emit(op.CompositeExtract, type_id, f.emit(opcode, ctx.module.pair(type_id), a, b), 1)


@lowers("arith.mului_extended", "arith.mulsi_extended")
def _multiply_wide(ctx: Lowering, operation: Operation) -> None:
    low, high = operation.results
    type_ = element_type(low.type)
    assert isinstance(type_, IntegerType)
    signed = operation.name == "arith.mulsi_extended"
    left, right = (ctx.registers(operand) for operand in operation.operands)
    pairs = list(zip(left, right, strict=True))
    ctx.define(low, [ctx.f.mul(a, b) for a, b in pairs])
    ctx.define(high, [_high(ctx, a, b, type_.width, signed) for a, b in pairs])
