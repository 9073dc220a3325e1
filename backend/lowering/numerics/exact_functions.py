"""Functions with exact results: rounding, exponents, neighbours, remainders."""

from __future__ import annotations

from .numeric import Int, Numeric, Real
from .precise import Parts, pack, unpack
from .remainder import remainder as fmod


def round_away(n: Numeric, x: Real) -> Real:
    """The nearest integer, ties away from 0."""
    a = abs(x)
    whole = a.trunc()
    return n.where(a - whole >= 0.5, whole + 1.0, whole).with_sign_of(x)


def _exponent(n: Numeric, x: Real) -> Int:
    """floor(log2|x|) of a finite number that is not 0, as 32 bits."""
    return unpack(n, x).exponent + 62


def ilogb(n: Numeric, x: Real) -> Int:
    """The exponent; the smallest int for 0 and NaN, the largest for infinities."""
    value = n.where(x.is_zero() | x.is_nan(), -(1 << 31), _exponent(n, x))
    return n.where(x.is_inf(), (1 << 31) - 1, value)


def logb(n: Numeric, x: Real) -> Real:
    """The exponent as a float; -infinity for 0."""
    value = n.where(x.is_zero(), float("-inf"), _exponent(n, x).real())
    return n.where(x.is_finite(), value, abs(x))


def ldexp(n: Numeric, x: Real, exponent: Int) -> Real:
    """x 2^exponent, rounded once."""
    parts = unpack(n, x)
    # Past this every number becomes 0 or infinity.
    exponent = n.where(exponent.sgt(5000), 5000, n.where(exponent.slt(-5000), -5000, exponent))
    value = pack(n, Parts(parts.negative, parts.significand, parts.exponent + exponent), "rn")
    return n.where(x.is_finite(), value, x)


def _signed_magnitude(n: Numeric, x: Real) -> Int:
    """An integer that orders numbers as their values are, both zeros alike."""
    magnitude = x.magnitude()
    return n.where(x.negative(), -magnitude, magnitude)


def next_after(n: Numeric, x: Real, y: Real) -> Real:
    """The next number from x towards y."""
    bits = x.bits()
    # A step up in magnitude where y lies away from 0.
    here, there = _signed_magnitude(n, x), _signed_magnitude(n, y)
    away = there.sgt(here) ^ x.negative()
    moved = n.where(away, bits + 1, bits - 1).as_real()
    smallest = n.integer(1).as_real().with_sign_of(y)
    value = n.where(x.is_zero(), smallest, moved)
    value = n.where(here.eq(there), y, value)
    return n.where(x.is_nan() | y.is_nan(), x + y, value)


def positive_difference(n: Numeric, x: Real, y: Real) -> Real:
    """x - y, or 0 where that is negative."""
    value = n.where(x > y, x - y, 0.0)
    return n.where(x.is_nan() | y.is_nan(), x + y, value)


def remainder(n: Numeric, x: Real, y: Real) -> Real:
    """x - y rint(x/y), exactly. Where y is near the smallest numbers it is found in integers: a device may take
    subnormal numbers for zero in some operations and not in others."""
    bits = y.magnitude()  # not abs(y): an operation on floats may make a subnormal number 0
    b = bits.as_real()
    huge, tiny = b > 2.0 ** (n.bias - 1), bits.ult(4 << n.mantissa)
    twice = n.where(bits.ult(1 << n.mantissa), (bits << 1).as_real(), b + b)
    a = fmod(n, x, n.where(y.is_inf(), y, n.where(huge, b, twice))).magnitude().as_real()
    half = b * 0.5
    first = a > half
    once = n.where(first, a - b, a)
    value = n.where(first & (once >= half), once - b, once)
    value = n.where(huge & first, a - b, value)
    value = n.where(tiny & a.is_finite(), _tiny_remainder(n, a, b), value)
    value = (value.bits() ^ (x.bits() & (1 << (n.width - 1)))).as_real()
    return n.where(y.is_inf() & x.is_finite(), x, value)


def _tiny_remainder(n: Numeric, a: Real, b: Real) -> Real:
    """The nearest to 0 of a, a - b and a - 2b, the even multiple of b where two are, for a < 2b < 2^(4 - bias)."""

    def fixed(value: Real) -> Int:
        """In units of the smallest subnormal number."""
        bits = value.bits()
        exponent = (bits >> n.mantissa) & 7
        return n.where(exponent.eq(0), bits, ((bits & ((1 << n.mantissa) - 1)) | (1 << n.mantissa)) << (exponent - 1))

    left, right = fixed(a), fixed(b)
    first = (left + left).ugt(right)
    once = n.where(first, left - right, left)
    rest = n.where(first & ~(once + once).slt(right), once - right, once)
    negative = rest.slt(0)
    size = n.where(negative, -rest, rest)
    # A whole number of mantissa + 1 bits at most, as a float with the exponent of its unit.
    normal = size.real(signed=False).bits() - ((n.bias - 1 + n.mantissa) << n.mantissa)
    result = n.where(size.ult(1 << n.mantissa), size, normal)
    return n.where(negative, result | (1 << (n.width - 1)), result).as_real()
