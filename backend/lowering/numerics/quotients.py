"""Correctly rounded quotients and square roots in every rounding mode (precise.py), on any device.

Float instructions give only estimates, which the exact remainder corrects.
"""

from __future__ import annotations

from .numeric import Bool, Numeric, Real
from .precise import Parts, all_finite, never, pack, unpack


def quotient_estimate(a: Real, b: Real) -> Real:
    """The device's own quotient, which Vulkan allows to be 2.5 ULP off."""
    return a / b


def root_estimate(x: Real) -> Real:
    """The device's own square root, which Vulkan allows to be a few ULP off."""
    return x.sqrt()


def reciprocal_root_estimate(x: Real) -> Real:
    """The device's own reciprocal of it, which Vulkan allows to be 2 ULP off."""
    return x.inverse_sqrt()


def reciprocal_estimate(n: Numeric, b: Real) -> Real:
    """1 / b, no more than 7 units off for a moderate b: Vulkan allows a reciprocal root to be 2 off."""
    if not n.emitter.capabilities.traits.reciprocal_roots:
        return quotient_estimate(n.real(1.0), b)
    root = reciprocal_root_estimate(abs(b))
    return (root * root).with_sign_of(b)


#: Operands whose exponents are within this of 0 have quotients and roots, and products of those, that are normal.
MODERATE = {32: 45, 64: 400}


def _moderate(n: Numeric, x: Real) -> Bool:
    size = abs(x)
    return (size > 2.0 ** -MODERATE[n.width]) & (size < 2.0 ** MODERATE[n.width])


def _unit(n: Numeric, x: Real, halvings: int) -> Real:
    """The unit in the last place of x, halved; x is moderate."""
    exponent = x.bits() & (((1 << n.width - 1) - 1) ^ ((1 << n.mantissa) - 1))
    return (exponent - ((n.mantissa + halvings) << n.mantissa)).as_real()


def _nudge(n: Numeric, x: Real, error: Real, limit: Real, inclusive: bool) -> Real:
    """x, or its neighbour on the side where ``error`` points (positive: larger magnitude), if that is nearer: where
    the error is past ``limit``, half of that below a power of two."""
    down = error < 0.0
    power_of_two = (x.bits() & ((1 << n.mantissa) - 1)).eq(0)
    reach = n.where(down & power_of_two, limit * 0.5, limit)
    size = abs(error)
    past = size > reach
    if inclusive:
        past = past | (down & (size >= reach))
    step = n.where(down, n.integer(-1), 1)
    return (x.bits() + n.where(past, step, 0)).as_real()


def near_quotient(n: Numeric, a: Real, b: Real) -> Real:
    """a / b of moderate operands, within half a unit and a bit: the device's, and Newton's step where that is not as
    good."""
    q = quotient_estimate(a, b)
    if n.emitter.capabilities.traits.exact_division:
        return q
    product, error = n.two_product(q, b)
    return q + ((a - product) - error) / b


def near_root(n: Numeric, x: Real) -> Real:
    """The square root of a moderate positive number, in the same way."""
    s = root_estimate(x)
    if n.emitter.capabilities.traits.exact_division:
        return s
    product, error = n.two_product(s, s)
    return s + ((x - product) - error) / (s + s)


def _divide_moderate(n: Numeric, a: Real, b: Real) -> Real:
    """a / b to nearest, for moderate operands: the exact remainder decides the last bit."""
    q = near_quotient(n, a, b)
    product, error = n.two_product(q, b)
    rest = (a - product) - error
    # A remainder of the dividend's sign means that the quotient is too small in magnitude; no quotient is a tie.
    rest = n.where(a.negative(), -rest, rest)
    return _nudge(n, q, rest, abs(b) * _unit(n, q, 1), inclusive=False)


def _sqrt_moderate(n: Numeric, x: Real) -> Real:
    """The root to nearest, for moderate positive x, as in _divide_moderate. The exact remainder is a multiple of the
    unit's square, so comparing it with root x unit leaves out the midpoint's square of half a unit."""
    s = near_root(n, x)
    product, error = n.two_product(s, s)
    return _nudge(n, s, (x - product) - error, s * _unit(n, s, 0), inclusive=True)


#: The leading bits of a divisor's significand, all set where _divide_fused may be wrong.
NEARLY_TWO = 0x7FFFF0


def _divide_fused(n: Numeric, a: Real, b: Real) -> Real:
    """a / b to nearest in f32, for moderate operands, where Fma rounds once: the device's reciprocal with a Newton
    step, and the quotient corrected by its exact remainder, twice. Right if the reciprocal is the nearest (P.
    Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM Journal of Research and
    Development 34, 1990). It is the nearest for all but 85 significands of b if the device's is at most seven
    units off. With these, all 2^23 dividends were tried: four quotients are wrong, all of divisors that are
    _nearly_two."""
    r = reciprocal_estimate(n, b)
    r = n.fma(n.fma(-b, r, 1.0), r, r)
    q = a * r
    for _ in range(2):
        q = n.fma(n.fma(-b, q, a), r, q)
    return q


def _nearly_two(b: Real) -> Bool:
    return (b.bits() & NEARLY_TWO).eq(NEARLY_TWO)


def _sqrt_fused(n: Numeric, x: Real) -> Real:
    """The root to nearest in f32, for moderate positive x, where Fma rounds once: the device's reciprocal root, a step
    that brings the root within a unit, and its exact remainder. Tried for all significands and both parities of the
    exponent (tests/device/math/test_rounding.py)."""
    r = reciprocal_root_estimate(x)
    s, half = x * r, r * 0.5
    error = n.fma(-half, s, 0.5)
    s, half = n.fma(s, error, s), n.fma(half, error, half)
    return n.fma(n.fma(-s, s, x), half, s)


def divide(n: Numeric, a: Real, b: Real, mode: str = "rn") -> Real:
    """a / b."""
    if mode != "rn":
        return _divide_exactly(n, a, b, mode)
    if n.emitter.capabilities.traits.exact_division:
        return a / b
    rare, short = ~(_moderate(n, a) & _moderate(n, b)), _divide_moderate
    if n.fused and n.width == 32:
        rare, short = rare | _nearly_two(b), _divide_fused
    return n.branch(rare, lambda: [_divide_exactly(n, a, b, mode)], [short(n, a, b)])[0]


def sqrt(n: Numeric, x: Real, mode: str = "rn") -> Real:
    """The square root."""
    if mode != "rn":
        return _sqrt_exactly(n, x, mode)
    if n.emitter.capabilities.traits.exact_division:
        return x.sqrt()
    short = _sqrt_fused if n.fused and n.width == 32 else _sqrt_moderate
    return n.branch(~_moderate(n, x) | x.negative(), lambda: [_sqrt_exactly(n, x, mode)], [short(n, x)])[0]


def _divide_exactly(n: Numeric, a: Real, b: Real, mode: str) -> Real:
    """a / b of any operands, by an integer quotient."""
    pa, pb = unpack(n, a), unpack(n, b)
    # Significands of mantissa + 1 bits; the quotient gets four more, and the remainder the last bit.
    extra = n.mantissa + 4
    drop = 62 - n.mantissa
    x, y = pa.significand >> drop, pb.significand >> drop
    y = n.where(y.eq(0), 1, y)
    real_y = y.real(signed=False)
    scale = 2.0**extra
    quotient = (x.real(signed=False) / real_y * scale).to_int(64)
    # |x 2^extra - quotient y| is far below 2^63, so 64 bits hold it though neither term fits.
    target = x << extra
    for _ in range(2):
        remainder = target - quotient * y
        quotient = quotient + (remainder.real() / real_y).to_int(64)
    remainder = target - quotient * y
    for _ in range(2):
        under = remainder.slt(0)
        quotient, remainder = (n.where(under, quotient - 1, quotient), n.where(under, remainder + y, remainder))
    for _ in range(2):
        over = ~remainder.slt(0) & ~remainder.ult(y)
        quotient, remainder = (n.where(over, quotient + 1, quotient), n.where(over, remainder - y, remainder))
    significand = (quotient << 1) | n.where(remainder.ne(0), n.integer(1, 64), 0)
    parts = Parts(pa.negative ^ pb.negative, significand, pa.exponent - pb.exponent - (extra + 1))
    regular = all_finite(a, b) & ~b.is_zero()
    return n.where(regular, pack(n, parts, mode), _divide_specials(n, a, b))


def _divide_specials(n: Numeric, a: Real, b: Real) -> Real:
    """a / b where an operand is infinite or NaN, or b is 0."""
    negative = a.negative() ^ b.negative()
    signed_infinity = n.where(negative, n.real(float("-inf")), float("inf"))
    signed_zero = n.where(negative, n.real(-0.0), 0.0)
    value = n.where(b.is_inf(), signed_zero, signed_infinity)
    invalid = (a.is_inf() & b.is_inf()) | (a.is_zero() & b.is_zero()) | a.is_nan() | b.is_nan()
    return n.where(invalid, float("nan"), value)


def _sqrt_exactly(n: Numeric, x: Real, mode: str) -> Real:
    """The square root of any operand, by an integer root."""
    p = unpack(n, x)
    # significand 2^exponent with mantissa + 2 or + 1 bits and an even exponent.
    drop = 61 - n.mantissa
    odd = (p.exponent + drop) & 1
    significand = (p.significand >> drop) >> odd.resize(64)
    exponent = p.exponent + drop + odd
    extra = n.mantissa + 5
    extra += extra & 1
    root = (significand.real(signed=False).sqrt() * 2.0 ** (extra // 2)).to_int(64)
    target = significand << extra
    root = n.where(root.eq(0), 1, root)
    for _ in range(2):
        remainder = target - root * root
        root = root + (remainder.real() / (2.0 * root.real(signed=False))).to_int(64)
    remainder = target - root * root
    for _ in range(2):
        under = remainder.slt(0)
        remainder = n.where(under, remainder + (root << 1) - 1, remainder)
        root = n.where(under, root - 1, root)
    for _ in range(2):
        over = remainder.sgt(root << 1)
        remainder = n.where(over, remainder - (root << 1) - 1, remainder)
        root = n.where(over, root + 1, root)
    result = (root << 1) | n.where(remainder.ne(0), n.integer(1, 64), 0)
    parts = Parts(never(n), result, (exponent - extra).sar(1) - 1)
    value = pack(n, parts, mode)
    value = n.where(x.is_zero() | x.is_nan(), x, n.where(x.negative(), float("nan"), value))
    return n.where(x.eq(float("inf")), x, value)
