"""Integer operations that SPIR-V leaves undefined for some operands, made defined, and 64-bit operations that drivers
get wrong, built from operations that they get right."""

from __future__ import annotations

from ..spirv import opcodes as op
from .emitter import Emitter


def _width(emitter: Emitter, value: int) -> int:
    return emitter.module.kinds[emitter.f.type_of(value)][1]


def negative(emitter: Emitter, value: int) -> int:
    """-value, modulo its width."""
    width = _width(emitter, value)
    hidden = width < 32 and emitter.capabilities.traits.faults.widens_negations
    return emitter.f.sub(emitter.zero(width) if hidden else emitter.module.uint(0, width), value)


def safe_shift(emitter: Emitter, opcode: int, value: int, amount: int) -> int:
    """A shift whose amount may reach the width: zeros, or the sign for an arithmetic one, as PTX's shl and shr do.
    OpShift* is undefined there (SPIR-V 3.49.14)."""
    f, module = emitter.f, emitter.module
    width = _width(emitter, value)
    known = module.constants.get(amount)
    if known is not None and int(known) < width:
        return f.binary(opcode, value, amount)
    limit = module.uint(width - 1, width)
    past = f.compare(op.UGreaterThan, amount, limit)
    clamped = f.select(past, limit, amount)
    shifted = f.binary(opcode, value, clamped)
    return shifted if opcode == op.ShiftRightArithmetic else f.select(past, module.uint(0, width), shifted)


def known_divide(emitter: Emitter, a: int, b: int) -> int:
    """``a / b`` of numbers that no sign was extended to; a zero divisor as in unsigned_divide."""
    return _unsigned(emitter, op.UDiv, a, b)


def unsigned_divide(emitter: Emitter, a: int, b: int) -> int:
    """``a / b``; a zero divisor gives an unspecified value, as in upstream, but no undefined behaviour."""
    return _unsigned(emitter, op.UDiv, *of_any_size(emitter, a, b))


def unsigned_remainder(emitter: Emitter, a: int, b: int) -> int:
    """``a % b``, with a zero divisor as in unsigned_divide."""
    return _unsigned(emitter, op.UMod, *of_any_size(emitter, a, b))


def of_any_size(emitter: Emitter, *values: int) -> list[int]:
    """The unsigned numbers; for a driver with the fault ``takes_for_small`` ones whose highest bit it does not
    know."""
    if not emitter.capabilities.traits.faults.takes_for_small:
        return list(values)
    f, constants, width = emitter.f, emitter.module.constants, _width(emitter, values[0])
    bit = f.shl(emitter.zero(width), width - 1)
    return [value if value in constants else f.xor(value, bit) for value in values]


def _unsigned(emitter: Emitter, opcode: int, a: int, b: int) -> int:
    f, module = emitter.f, emitter.module
    width = _width(emitter, a)
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


def magnitude(emitter: Emitter, value: int) -> tuple[int, int]:
    """|value| as an unsigned number, and the value's sign spread over all bits."""
    f = emitter.f
    width = _width(emitter, value)
    sign = f.binary(op.ShiftRightArithmetic, value, emitter.module.uint(width - 1, width))
    return f.sub(f.xor(value, sign), sign), sign


def signed_divide(emitter: Emitter, a: int, b: int) -> int:
    """``a / b`` rounded towards zero, through an unsigned division: OpSDiv is undefined for the smallest integer over
    -1, and traps on some CPUs."""
    f = emitter.f
    magnitude_a, sign_a = magnitude(emitter, a)
    magnitude_b, sign_b = magnitude(emitter, b)
    sign = f.xor(sign_a, sign_b)
    return f.sub(f.xor(known_divide(emitter, magnitude_a, magnitude_b), sign), sign)


def signed_remainder(emitter: Emitter, a: int, b: int) -> int:
    """The remainder with the sign of ``a``. OpSRem of 64-bit integers is wrong on NVIDIA drivers, and undefined where
    either operand is negative on Vulkan without maintenance8; the unsigned remainder is neither."""
    f = emitter.f
    magnitude_a, sign_a = magnitude(emitter, a)
    magnitude_b, _ = magnitude(emitter, b)
    return f.sub(f.xor(_unsigned(emitter, op.UMod, magnitude_a, magnitude_b), sign_a), sign_a)


def multiply_high(emitter: Emitter, a: int, b: int) -> int:
    """The upper half of the double-width product of unsigned numbers."""
    f, module = emitter.f, emitter.module
    type_id = f.type_of(a)
    if _width(emitter, a) == 32:
        product = f.mul(f.zero_extend(a, 64), f.zero_extend(b, 64))
        return f.zero_extend(f.shr(product, 32), 32)
    return f.emit(op.CompositeExtract, type_id, f.emit(op.UMulExtended, module.pair(type_id), a, b), 1)
