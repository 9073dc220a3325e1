"""x^y from a logarithm of twice the bits: in f64, and in f32 on devices without f64."""

from __future__ import annotations

from fractions import Fraction

from .coefficients import POLYNOMIALS
from .elementary.exponential import LN2, decompose, exp_of_sum
from .numeric import Int, Numeric, Real, split_constant

#: By width: a product of the first part with an exponent is exact.
LN2_PARTS = {32: split_constant(LN2, 15, 1), 64: split_constant(LN2, 40, 1)}
THIRD = {32: split_constant(Fraction(1, 3), 24, 1), 64: split_constant(Fraction(1, 3), 53, 1)}

#: Terms of the logarithm's last polynomial; the next one is below 2^-39 of the logarithm.
_TERMS = {32: 5, 64: 8}


def _log_twice(n: Numeric, x: Real) -> tuple[Real, Real]:
    """log(x) of positive finite x as high + low, to about 2^-65 in f64 and 2^-36 in f32."""
    ln2, third_parts = LN2_PARTS[n.width], THIRD[n.width]
    k, m = decompose(n, x)
    # s = (m - 1)/(m + 1), high + low; m + 1 is rounded, m - 1 is exact.
    f = m - 1.0
    d, d_error = n.two_sum(m, n.real(1.0))
    s = f / d
    product, error = n.two_product(s, d)
    s_low = (((f - product) - error) - s * d_error) / d
    z, z_error = n.two_product(s, s)
    z_low = z_error + 2.0 * s * s_low
    # log(m) = 2s (1 + z/3 + z^2 Q(z)): the bracket less 1 as u + u_low.
    third, third_error = n.two_product(z, n.real(third_parts[0]))
    third_low = third_error + (z * third_parts[1] + z_low * third_parts[0])
    u, u_low = n.quick_two_sum(third, (z * z) * n.horner(z, POLYNOMIALS["LOG_S5"][64][: _TERMS[n.width]]))
    u_low = u_low + third_low
    # 2s + 2s u.
    t, t_low = n.two_product(s, u)
    t_low = t_low + (s * u_low + s_low * u)
    high, low = n.quick_two_sum(s, t)
    low = low + (t_low + s_low)
    count = k.real()
    total, error = n.two_sum(count * ln2[0], 2.0 * high)
    return n.quick_two_sum(total, error + (2.0 * low + count * ln2[1]))


def power(n: Numeric, x: Real, y: Real, y_low: Real | None = None) -> Real:
    """x^(y + y_low) with the special cases of IEEE 754's pow; with ``y_low``, both are whole numbers."""
    a = abs(x)
    safe = n.where(a.is_finite() & a.ne(0.0), a, 1.0)
    high, low = _log_twice(n, safe)
    # Past this the result is 0, 1 or infinity whatever x is; it keeps the product finite.
    bounded = n.where(abs(y) > 2.0**70, n.real(2.0**70).with_sign_of(y), y)
    product, error = n.two_product(high, bounded)
    error = error + low * bounded
    if y_low is not None:
        error = error + high * y_low
    total, rest = n.quick_two_sum(product, error)
    huge = abs(total) > 1000.0
    total, rest = n.where(huge, n.real(1000.0).with_sign_of(total), total), n.where(huge, 0.0, rest)
    value = exp_of_sum(n, total, rest)
    # Zero and infinity for x: a power of them by the sign of y.
    zero_or_inf = n.where(a.eq(0.0) ^ (y < 0.0), n.real(0.0), float("inf"))
    value = n.where(a.is_finite() & a.ne(0.0), value, zero_or_inf)
    y_is_integer = y.eq(y.trunc())
    half = y * 0.5
    y_is_odd = y_is_integer & half.ne(half.trunc()) & y.is_finite()
    if y_low is not None:
        half = y_low * 0.5
        y_is_odd = y_is_odd ^ half.ne(half.trunc())
    value = n.where(x.negative() & y_is_odd, -value, value)
    value = n.where((x < 0.0) & ~y_is_integer & x.is_finite(), float("nan"), value)
    # Infinite y.
    grows = (a > 1.0) ^ y.negative()
    at_infinity = n.where(a.eq(1.0), 1.0, n.where(grows, n.real(float("inf")), 0.0))
    value = n.where(y.is_inf(), at_infinity, value)
    value = n.where(x.is_nan() | y.is_nan(), x + y, value)
    return n.where(x.eq(1.0) | y.eq(0.0), 1.0, value)


def power_any(n: Numeric, x: Real, y: Real | Int) -> Real:
    """x^y, in f64 where the device has it; an integer ``y`` of up to 32 bits is exact."""
    if n.width == 32 and not n.emitter.capabilities.has("float64"):
        if isinstance(y, Real):
            return power(n, x, y)
        return power(n, x, *n.quick_two_sum((y.sar(12) << 12).real(), (y & 0xFFF).real()))
    wide = n if n.width == 64 else Numeric(n.emitter, 64)
    exponent = Int(wide, y.id).real() if isinstance(y, Int) else wide.convert(y)
    return n.convert(power(wide, wide.convert(x), exponent))
