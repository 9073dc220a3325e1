"""Exponentials and logarithms."""

from __future__ import annotations

from fractions import Fraction

from ..numeric import ROUNDER, Bool, Int, Numeric, Real, split_constant

LN2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
LOG2_10 = Fraction("3.32192809488736234787031942948939017586483139302458061205476")
LOG2_E = Fraction("1.44269504088896340735992468100189213742664595415298593413545")
LOG10_E = Fraction("0.43429448190325182765112891891660508229439700580366656611445")

#: Arguments of exp, exp2 and exp10 are clamped to this range of log2 of the result: past it, it is 0 or infinity.
EXPONENT_RANGE = {32: (-151.0, 130.0), 64: (-1077.0, 1026.0)}

LN2_PARTS = {32: split_constant(LN2, 14, 1), 64: split_constant(LN2, 40, 1)}
LOG10_2_PARTS = {32: split_constant(1 / LOG2_10, 14, 1), 64: split_constant(1 / LOG2_10, 40, 1)}


def _lost(n: Numeric, x: Real, per_x: Fraction) -> Bool:
    """Where base^x rounds to 0; not for NaN."""
    return x < float(Fraction(EXPONENT_RANGE[n.width][0]) / per_x)


def _reduced(n: Numeric, x: Real, per_x: Fraction, parts: tuple[float, ...], lost: bool = False) -> tuple[Int, Real]:
    """``(k, r)`` with base^x = 2^k base^r: ``per_x`` is log2 of the base, ``parts`` its inverse. ``lost``: both may be
    anything where the result is 0."""
    low, high = EXPONENT_RANGE[n.width]
    if not lost:
        x = n.maximum(x, float(Fraction(low) / per_x))
    x = n.minimum(x, float(Fraction(high) / per_x))
    shifted = n.fma(x, float(per_x), ROUNDER[n.width])
    count = shifted - ROUNDER[n.width]
    k = shifted.bits() - n.real(ROUNDER[n.width]).bits()
    if parts == (1.0,):
        return k, x - count
    # The first product is exact.
    return k, n.fma(count, -parts[1], n.fma(count, -parts[0], x))


def exponential(n: Numeric, x: Real, per_x: Fraction, parts: tuple[float, ...], name: str) -> tuple[Int, Real]:
    """``(k, m)`` with base^x = 2^k (1 + m): ``per_x`` is log2 of the base, ``parts`` its inverse."""
    k, r = _reduced(n, x, per_x, parts)
    if name == "EXPM1":
        return k, n.fma(r * r, n.poly(name, r), r)
    return k, r * n.poly(name, r)


def exp(n: Numeric, x: Real) -> Real:
    """e^x."""
    if n.width == 32 and n.fused:
        k, r = _reduced(n, x, LOG2_E, LN2_PARTS[32], n.scales)
        return n.scale(n.fma(r, n.fma(r, n.poly("EXP", r), 1.0), 1.0), k, _lost(n, x, LOG2_E))
    k, m = exponential(n, x, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + m, k, _lost(n, x, LOG2_E))


def exp2(n: Numeric, x: Real) -> Real:
    """2^x."""
    k, r = _reduced(n, x, Fraction(1), (1.0,), n.scales)
    return n.scale(n.fma(r, n.poly("EXP2M1", r), 1.0), k, _lost(n, x, Fraction(1)))


def exp10(n: Numeric, x: Real) -> Real:
    """10^x."""
    k, m = exponential(n, x, LOG2_10, LOG10_2_PARTS[n.width], "EXP10M1")
    return n.scale(1.0 + m, k, _lost(n, x, LOG2_10))


def expm1(n: Numeric, x: Real) -> Real:
    """e^x - 1, without cancellation near 0."""
    k, m = exponential(n, x, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    one_less = n.where(k.sgt(n.bias - 1), n.bias - 1, k)
    power = n.pow2(n.where(one_less.slt(-n.mantissa - 9), -n.mantissa - 9, one_less))
    near = power * m + (power - 1.0)
    near = n.where(k.sgt(n.mantissa + 2), n.scale(1.0 + m, k, _lost(n, x, LOG2_E)), near)
    return n.where(abs(x) < 2.0 ** (-n.mantissa - 2), x, near)


def exp_of_sum(n: Numeric, high: Real, low: Real) -> Real:
    """e^(high + low) for a small ``low``."""
    k, m = exponential(n, high, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + (m + low * (1.0 + m)), k, _lost(n, high, LOG2_E))


def decompose(n: Numeric, x: Real) -> tuple[Int, Real]:
    """``(k, m)`` with x = 2^k m, m from sqrt(1/2) to sqrt(2), for positive finite x."""
    tiny = x < 2.0 ** (1 - n.bias)
    lift = n.mantissa + 2
    bits = n.where(tiny, x * 2.0**lift, x).bits()
    half_sqrt = n.real(0.70710678118654752).bits()
    offset = bits - half_sqrt
    k = offset.sar(n.mantissa)
    m = ((offset & ((1 << n.mantissa) - 1)) + half_sqrt).as_real()
    return n.where(tiny, k - lift, k), m


def _log1p_tail(n: Numeric, f: Real, h: Real) -> Real:
    """log(1 + f) - f + h with h = f^2/2, for f from sqrt(1/2) - 1 to sqrt(2) - 1."""
    if n.width == 32:
        return f * (f * f) * n.poly("LOG_F", f)
    s = f / (2.0 + f)
    z = s * s
    return s * (h + z * n.poly("LOG_S", z))


def _log_parts(n: Numeric, x: Real) -> tuple[Real, Real, Real]:
    """``(k, high, low)`` with log(x) = k ln2 + high + low; ``high`` has half the bits of a float."""
    k, m = decompose(n, x)
    f = m - 1.0
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    keep = -1 << (n.mantissa + 1) // 2
    high = ((f - h).bits() & keep).as_real()
    return k.real(), high, ((f - high) - h) + tail


def _log_specials(n: Numeric, x: Real, result: Real) -> Real:
    """The logarithm of numbers that are not positive and finite."""
    result = n.where(x.magnitude().ult(n.infinity_bits), result, abs(x))
    result = n.where(x.eq(0.0), float("-inf"), result)
    return n.where(x < 0.0, float("nan"), result)


def log(n: Numeric, x: Real) -> Real:
    """Natural logarithm."""
    k, m = decompose(n, x)
    f = m - 1.0
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    high, low = LN2_PARTS[n.width]
    count = k.real()
    return _log_specials(n, x, count * high + (f - (h - (tail + count * low))))


def _log_base(n: Numeric, x: Real, per_log: Fraction, per_k: tuple[float, ...]) -> Real:
    """The logarithm to the base whose log_base(e) is ``per_log`` and log_base(2) is the sum of ``per_k``."""
    k, high, low = _log_parts(n, x)
    c_high, c_low = split_constant(per_log, (n.mantissa + 1) // 2, 1)
    rest = low * float(per_log) + high * c_low
    leading = high * c_high
    if len(per_k) == 2:
        rest = rest + k * per_k[1]
    total, error = n.quick_two_sum(k * per_k[0], leading)
    # Where k is 0 the sum is the leading product itself and the error 0.
    return _log_specials(n, x, total + (rest + error))


def log2(n: Numeric, x: Real) -> Real:
    """Binary logarithm."""
    return _log_base(n, x, LOG2_E, (1.0,))


def log10(n: Numeric, x: Real) -> Real:
    """Decimal logarithm."""
    return _log_base(n, x, LOG10_E, LOG10_2_PARTS[n.width])


def log1p(n: Numeric, x: Real) -> Real:
    """log(1 + x), without cancellation near 0."""
    # What rounding lost of 1 + x, as a part of it: log(u + e) = log(u) + e/u.
    u, lost = n.two_sum(x, n.real(1.0))
    lost = n.where(abs(x) > 2.0 ** (n.mantissa + 2), 0.0, lost)
    k, m = decompose(n, u)
    f = m - 1.0
    # The lost part moves into f, in units of 2^k; k is small enough wherever it counts.
    bounded = n.where(k.sgt(n.bias - 2), n.bias - 2, k)
    correction = lost * n.pow2(-bounded)
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    high, low = LN2_PARTS[n.width]
    count = k.real()
    correction = correction * (1.0 / m)
    result = count * high + (f - (h - (tail + (count * low + correction))))
    result = _log_specials(n, u, result)
    return n.where(abs(x) < 2.0 ** (-n.mantissa - 1), x, result)
