"""The exact remainder of floats, ``fmod``: long division of the significands, several bits a step.

``x - trunc(x / y) * y`` would be wrong as soon as the quotient has more bits than the format.
"""

from __future__ import annotations

from ...spirv import opcodes as op
from .numeric import Int, Numeric, Real


def _parts(n: Numeric, magnitude: Int) -> tuple[Int, Int]:
    """Significand and biased exponent, that of subnormals being 1."""
    exponent = magnitude >> n.mantissa
    normal = exponent.ne(0)
    significand = magnitude & ((1 << n.mantissa) - 1)
    return (n.where(normal, significand | (1 << n.mantissa), significand), n.where(normal, exponent, 1))


def remainder(n: Numeric, x: Real, y: Real) -> Real:
    """``x - q y`` for the integer q nearest zero to ``x / y``: exact, with the sign of ``x``; NaN for an infinite ``x``
    or a zero ``y``."""
    size_x, size_y = x.magnitude(), y.magnitude()
    significand_x, exponent_x = _parts(n, size_x)
    significand_y, exponent_y = _parts(n, size_y)
    divisor = n.where(significand_y.eq(0), 1, significand_y)
    distance = n.where(size_x.ult(size_y), 0, exponent_x - exponent_y)
    # A remainder is below the divisor, so this many more bits fit in the integer.
    step = n.integer(n.width - 1 - n.mantissa)

    def modulo(value: Int) -> Int:
        return Int(n, n.f.binary(op.UMod, value.id, divisor.id))

    def body(carried: list[int]) -> list[int]:
        rest, left = Int(n, carried[0]), Int(n, carried[1])
        bits = n.where(left.ult(step), left, step)
        return [modulo(Int(n, n.f.binary(op.ShiftLeftLogical, rest.id, bits.id))).id, (left - bits).id]

    rest = Int(
        n,
        n.f.loop(
            [modulo(significand_x).id, distance.id],
            lambda carried: n.f.compare(op.INotEqual, carried[1], n.integer(0).id),
            body,
        )[0],
    )
    # The conversion is exact, and its exponent is the place of the leading bit.
    leading = (rest.real(signed=False).bits() >> n.mantissa) - n.bias
    wanted, room = n.integer(n.mantissa) - leading, exponent_y - 1
    shift = n.where(room.ult(wanted), room, wanted)
    code = Int(n, n.f.binary(op.ShiftLeftLogical, rest.id, shift.id)) + ((room - shift) << n.mantissa)
    result = n.where(rest.eq(0), 0, code)
    result = n.where(size_x.ult(size_y), size_x, result).as_real().with_sign_of(x)
    defined = x.is_finite() & ~y.is_nan() & size_y.ne(0)
    return n.where(defined, result, n.real(float("nan")))
