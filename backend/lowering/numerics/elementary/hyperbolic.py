"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from ..numeric import Numeric, Real
from .exponential import LN2, LN2_PARTS, LOG2_E, exponential, log, log1p


def _half_exp(n: Numeric, a: Real) -> Real:
    """e^a / 2, which overflows no sooner than it must."""
    k, m = exponential(n, a, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + m, k - 1)


def sinh(n: Numeric, x: Real) -> Real:
    """Hyperbolic sine."""
    a = abs(x)
    half = _half_exp(n, a)
    z = x * x
    value = n.where(a < 1.0, a + (a * z) * n.poly("SINH", z), half - 0.25 / half)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def cosh(n: Numeric, x: Real) -> Real:
    """Hyperbolic cosine."""
    half = _half_exp(n, abs(x))
    return half + 0.25 / half


def tanh(n: Numeric, x: Real) -> Real:
    """Hyperbolic tangent."""
    a = abs(x)
    half = _half_exp(n, 2.0 * n.minimum(a, 22.0))
    z = x * x
    value = n.where(a < 0.625, a + (a * z) * n.poly("TANH", z), 1.0 - 1.0 / (half + 0.5))
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def asinh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic sine."""
    a = abs(x)
    huge = a > 2.0 ** (n.mantissa // 2 + 2)
    b = n.minimum(a, 2.0 ** (n.mantissa // 2 + 2))
    square = b * b
    near = log1p(n, b + square / (1.0 + (1.0 + square).sqrt()))
    far = log(n, a) + float(LN2)
    value = n.where(huge, far, near)
    value = n.where(a < 2.0 ** -(n.mantissa // 2 + 2), a, value)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def acosh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic cosine; NaN below 1."""
    huge = x > 2.0 ** (n.mantissa // 2 + 2)
    t = n.minimum(x, 2.0 ** (n.mantissa // 2 + 2)) - 1.0
    near = log1p(n, t + (2.0 * t + t * t).sqrt())
    value = n.where(huge, log(n, x) + float(LN2), near)
    return n.where(x < 1.0, float("nan"), value)


def atanh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic tangent; NaN past 1."""
    a = abs(x)
    value = 0.5 * log1p(n, (2.0 * a) / (1.0 - a))
    value = n.where(a < 2.0 ** -(n.mantissa // 2 + 2), a, value)
    return n.where(a > 1.0, float("nan"), n.where(x.is_nan(), x, value.with_sign_of(x)))
