"""An f32 as a sum of bf16 numbers (analysis/split_products.py).

The first part is the number rounded to bf16, the next one what is left of it, rounded, and so on. What is left is exact
each time, because the rounding is to nearest.

An infinity or a NaN has 1 with its sign as its first part and is itself the last one, with zeros between. The last part
meets only the other operand's first part, which has that operand's sign, and is zero only where that operand is below
2**-134: so its products are the infinities and NaNs of the numbers themselves, and all others are finite.

Numbers from 2**127 on are cut off instead of rounded, so that none becomes an infinity. If the product of finite
numbers passes the range of f32 by more than 2**8, a NaN may come out instead of an infinity: its terms may overflow to
both sides.
"""

from __future__ import annotations

from ..spirv import opcodes as op
from .emitter import Emitter

#: In bits of an f32: all but the sign; an infinity; 1; the sign; 2**127; the upper half; half of a bf16's last digit.
_MAGNITUDE, _INFINITY, _ONE, _SIGN = 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x80000000
_LARGE, _UPPER, _HALF = 0x7F000000, 0xFFFF0000, 0x8000


def bf16_parts(emitter: Emitter, value: int, count: int) -> list[int]:
    """The bits of ``count`` bf16 numbers (2 or 3), the largest one first, whose sum ``value`` is: all of it with three,
    except for what a device takes for zero because it is subnormal."""
    f, module = emitter.f, emitter.module
    uint, f32 = module.uint, f.type_of(value)
    bits = f.bitcast(value, module.u32)
    magnitude = f.and_(bits, uint(_MAGNITUDE))
    finite = f.compare(op.ULessThan, magnitude, uint(_INFINITY))
    half = f.select(f.compare(op.ULessThan, magnitude, uint(_LARGE)), uint(_HALF), uint(0))
    one = f.or_(f.and_(bits, uint(_SIGN)), uint(_ONE))
    upper = f.select(finite, f.and_(f.add(bits, half), uint(_UPPER)), one)
    parts, rest = [upper], f.emit(op.FSub, f32, value, f.bitcast(upper, f32))
    for number in range(1, count):
        left = f.bitcast(rest, module.u32)
        upper = f.add(left, half)
        if number < count - 1:
            upper = f.select(finite, f.and_(upper, uint(_UPPER)), uint(0))
            rest = f.emit(op.FSub, f32, rest, f.bitcast(upper, f32))
        parts.append(upper)
    return [f.zero_extend(f.shr(part, 16), 16) for part in parts]
