"""The narrow float formats, and rounding from f32 to each of them in integer arithmetic.

=============== ======== ======== ==== =================================================== ==================
format          exponent mantissa bias codes that are not finite                           past the largest
=============== ======== ======== ==== =================================================== ==================
f16             5        10       15   infinities, NaN                                     infinity
f8E5M2          5        2        15   infinities, NaN                                     largest finite
f8E4M3FN        4        3        7    NaN 0x7F and 0xFF                                   largest finite
f8E5M2FNUZ      5        2        16   NaN 0x80; there is no negative zero                 largest finite
f8E4M3FNUZ      4        3        8    NaN 0x80; there is no negative zero                 largest finite
=============== ======== ======== ==== =================================================== ==================

To fp8, numbers past the largest and infinities become the largest finite number, as in PTX ``cvt.rn.satfinite`` and
AMD's saturating conversions, which upstream's GPU backends use. Rounding towards zero to a format with infinities
(f16, f8E5M2) keeps an infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...abi.elements import FLOATS
from ...spirv import opcodes as op
from ...spirv.module import bits_float
from ..emitter import Emitter


@dataclass(frozen=True)
class FloatFormat:
    """A float format of at most 16 bits. Codes without sign: ``nan`` of the NaN that conversions give, ``largest`` of
    the largest finite number, ``limit`` of the result of rounding too large a number to nearest. ``signed_zero`` is
    False if the sign bit alone is the NaN."""

    width: int
    mantissa: int
    bias: int
    nan: int
    largest: int
    limit: int
    infinity: int | None = None
    signed_zero: bool = True


def _of(
    name: str, nan: int, largest: int, limit: int, infinity: int | None = None, signed_zero: bool = True
) -> FloatFormat:
    known = FLOATS[name]
    return FloatFormat(known.bits, known.mantissa, known.bias, nan, largest, limit, infinity, signed_zero)


FORMATS = {
    "f16": _of("f16", 0x7E00, 0x7BFF, 0x7C00, 0x7C00),
    "f8E5M2": _of("f8E5M2", 0x7F, 0x7B, 0x7B, 0x7C),
    "f8E4M3FN": _of("f8E4M3FN", 0x7F, 0x7E, 0x7E),
    "f8E5M2FNUZ": _of("f8E5M2FNUZ", 0x80, 0x7F, 0x7F, signed_zero=False),
    "f8E4M3FNUZ": _of("f8E4M3FNUZ", 0x80, 0x7F, 0x7F, signed_zero=False),
}


#: No conversion goes through a table here: it is the upper half of an f32.
BF16 = _of("bf16", 0x7FC0, 0x7F7F, 0x7F80, 0x7F80)


def decimal_code(value: float, name: str) -> int:
    """The code of the number of a format (bf16, or one of FORMATS) that is nearest to ``value``, a finite number within
    its range: MLIR prints as many digits as tell it from its neighbours, no more."""
    fmt = BF16 if name == "bf16" else FORMATS[name]
    magnitude = abs(value)
    exponent = max(math.frexp(magnitude)[1] - 1, 1 - fmt.bias) if magnitude else 1 - fmt.bias
    significand = round(math.ldexp(magnitude, fmt.mantissa - exponent))  # to even; the scaling is exact
    # The significand's leading one, if it has one, adds one to the exponent field.
    code = significand + ((exponent + fmt.bias - 1) << fmt.mantissa)
    negative = math.copysign(1, value) < 0 and (code or fmt.signed_zero)
    return code | (1 << (fmt.width - 1) if negative else 0)


def round_to_format(emitter: Emitter, value: int, name: str, toward_zero: bool = False) -> int:
    """An f32 rounded to the format ``name``, to nearest even or towards zero; gives its code as an integer of the
    format's width. No step depends on the device's rounding mode or on subnormal f32 arithmetic."""
    f, module = emitter.f, emitter.module
    fmt = FORMATS[name]
    bits = f.bitcast(value, module.u32)
    magnitude = f.and_(bits, module.uint(0x7FFFFFFF))
    sign = f.shr(f.and_(bits, module.uint(0x80000000)), 32 - fmt.width)
    drop = 23 - fmt.mantissa
    smallest_exponent = 127 - fmt.bias + 1
    # Numbers below the smallest normal: the significand shifted down to units of the smallest subnormal.
    exponent = f.shr(magnitude, 23)
    distance = f.sub(module.uint(smallest_exponent + drop), exponent)
    far = f.compare(op.SGreaterThan, distance, module.uint(31))
    distance = f.select(far, module.uint(31), distance)
    tiny = f.compare(op.ULessThan, magnitude, module.uint(smallest_exponent << 23))
    distance = f.select(tiny, distance, module.uint(drop))
    significand = f.or_(f.and_(magnitude, module.uint(0x7FFFFF)), module.uint(0x800000))
    # Numbers from the smallest normal on: the exponent is kept above the significand, so that a carry moves into it.
    kept = f.select(tiny, significand, f.sub(magnitude, module.uint((smallest_exponent - 1) << 23)))
    code = f.binary(op.ShiftRightLogical, kept, distance)
    if not toward_zero:
        one = module.uint(1)
        half_less_one = f.sub(f.binary(op.ShiftLeftLogical, one, f.sub(distance, one)), one)
        increment = f.add(half_less_one, f.and_(code, one))
        code = f.binary(op.ShiftRightLogical, f.add(kept, increment), distance)
    limit = module.uint(fmt.largest if toward_zero else fmt.limit)
    # An f32 infinity is past every format's limit, and no finite f32 is so large that the sum wraps around.
    code = f.select(f.compare(op.UGreaterThan, code, limit), limit, code)
    if toward_zero and fmt.infinity is not None:
        infinite = f.compare(op.IEqual, magnitude, module.uint(0x7F800000))
        code = f.select(infinite, module.uint(fmt.infinity), code)
    is_nan = f.compare(op.UGreaterThan, magnitude, module.uint(0x7F800000))
    if not fmt.signed_zero:
        sign = f.select(f.compare(op.IEqual, code, module.uint(0)), module.uint(0), sign)
        return f.zero_extend(f.select(is_nan, module.uint(fmt.nan), f.or_(code, sign)), fmt.width)
    return f.zero_extend(f.or_(f.select(is_nan, module.uint(fmt.nan), code), sign), fmt.width)


def format_to_f32(emitter: Emitter, value: int, name: str) -> int:
    """The f32 that an fp8 code stands for: exact."""
    f, module = emitter.f, emitter.module
    fmt = FORMATS[name]
    f32 = module.float(32)
    code = f.zero_extend(value, 32)
    sign_bit = 1 << (fmt.width - 1)
    sign = f.shl(f.and_(code, module.uint(sign_bit)), 32 - fmt.width)
    magnitude = f.and_(code, module.uint(sign_bit - 1))
    shifted = f.shl(magnitude, 23 - fmt.mantissa)
    smallest_exponent = 127 - fmt.bias + 1
    # Subnormals: 1.m at the smallest exponent, less 1, is the 0.m that they are.
    smallest_bits = smallest_exponent << 23
    subnormal = f.emit(
        op.FSub,
        f32,
        f.bitcast(f.add(shifted, module.uint(smallest_bits)), f32),
        module.real(bits_float(smallest_bits, 32), 32),
    )
    normal = f.add(shifted, module.uint((smallest_exponent - 1) << 23))
    is_subnormal = f.compare(op.ULessThan, magnitude, module.uint(1 << fmt.mantissa))
    result = f.select(is_subnormal, f.bitcast(subnormal, module.u32), normal)
    if fmt.infinity is not None:
        special = f.compare(op.UGreaterThanEqual, magnitude, module.uint(fmt.infinity))
        result = f.select(special, f.or_(shifted, module.uint(0x7F800000)), result)
    elif fmt.signed_zero:
        result = f.select(f.compare(op.IEqual, magnitude, module.uint(fmt.nan)), module.uint(0x7FC00000), result)
    else:
        result = f.select(f.compare(op.IEqual, code, module.uint(fmt.nan)), module.uint(0x7FC00000), result)
    return f.bitcast(f.or_(result, sign), f32)
