"""Integer operations that SPIR-V leaves undefined for some operands, made defined, and 64-bit ones that drivers get
wrong, built from those they get right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..spirv import opcodes as op

if TYPE_CHECKING:
    from .context import Context


def _width(ctx: Context, value: int) -> int:
    return ctx.module.kinds[ctx.f.type_of(value)][1]


def safe_shift(ctx: Context, opcode: int, value: int, amount: int) -> int:
    """A shift whose amount may reach the width: zeros, or the sign for an arithmetic one, as PTX's shl and shr do.
    OpShift* is undefined there (SPIR-V 3.49.14)."""
    f, module = ctx.f, ctx.module
    width = _width(ctx, value)
    known = module.constants.get(amount)
    if known is not None and int(known) < width:
        return f.binary(opcode, value, amount)
    limit = module.uint(width - 1, width)
    past = f.compare(op.UGreaterThan, amount, limit)
    clamped = f.select(past, limit, amount)
    shifted = f.binary(opcode, value, clamped)
    return shifted if opcode == op.ShiftRightArithmetic else f.select(past, module.uint(0, width), shifted)


def unsigned_divide(ctx: Context, a: int, b: int) -> int:
    """``a / b``; a zero divisor gives an unspecified value, as in upstream, but no undefined behaviour."""
    return _unsigned(ctx, op.UDiv, a, b)


def unsigned_remainder(ctx: Context, a: int, b: int) -> int:
    """``a % b``, with a zero divisor as in unsigned_divide."""
    return _unsigned(ctx, op.UMod, a, b)


def _unsigned(ctx: Context, opcode: int, a: int, b: int) -> int:
    f, module = ctx.f, ctx.module
    width = _width(ctx, a)
    known = module.constants.get(b)
    if known:
        power = int(known)
        if power & (power - 1) == 0:
            if opcode == op.UDiv:
                return f.shr(a, power.bit_length() - 1)
            return f.and_(a, module.uint(power - 1, width))
        return f.binary(opcode, a, b)
    if known is None:
        one = module.uint(1, width)
        b = f.select(f.compare(op.IEqual, b, module.uint(0, width)), one, b)
        return f.binary(opcode, a, b)
    return module.uint(0, width)


def magnitude(ctx: Context, value: int) -> tuple[int, int]:
    """|value| as an unsigned number, and the value's sign spread over all bits."""
    f = ctx.f
    width = _width(ctx, value)
    sign = f.binary(op.ShiftRightArithmetic, value, ctx.module.uint(width - 1, width))
    return f.sub(f.xor(value, sign), sign), sign


def signed_divide(ctx: Context, a: int, b: int) -> int:
    """``a / b`` rounded towards zero, through an unsigned division: OpSDiv is undefined for the smallest integer over
    -1, and traps on some CPUs."""
    f = ctx.f
    magnitude_a, sign_a = magnitude(ctx, a)
    magnitude_b, sign_b = magnitude(ctx, b)
    sign = f.xor(sign_a, sign_b)
    return f.sub(f.xor(unsigned_divide(ctx, magnitude_a, magnitude_b), sign), sign)


def signed_remainder(ctx: Context, a: int, b: int) -> int:
    """The remainder with the sign of ``a``. OpSRem of 64-bit integers is wrong on NVIDIA drivers, and undefined where
    either operand is negative on Vulkan without maintenance8; the unsigned remainder is neither."""
    f = ctx.f
    magnitude_a, sign_a = magnitude(ctx, a)
    magnitude_b, _ = magnitude(ctx, b)
    return f.sub(f.xor(unsigned_remainder(ctx, magnitude_a, magnitude_b), sign_a), sign_a)


def multiply_high(ctx: Context, a: int, b: int) -> int:
    """The upper half of the double-width product of unsigned numbers."""
    f, module = ctx.f, ctx.module
    type_id = f.type_of(a)
    if _width(ctx, a) == 32:
        product = f.mul(f.zero_extend(a, 64), f.zero_extend(b, 64))
        return f.zero_extend(f.shr(product, 32), 32)
    return f.emit(op.CompositeExtract, type_id, f.emit(op.UMulExtended, module.pair(type_id), a, b), 1)
