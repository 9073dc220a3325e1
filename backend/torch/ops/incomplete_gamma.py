"""The incomplete gamma functions in float32: P(a, x), the share of the gamma function's integral up to x; Q = 1 - P.

Up to x = a + 1 the series of P (DLMF 8.11.4), behind it the continued fraction of Q (DLMF 8.9.2); of small a and x the
series of Q (DLMF 8.7.3); of large a, where x is near it, the uniform expansion (DLMF 8.12.7) with Temme's coefficients.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _log_excess(a, x):
    """t - log(1 + t) of t = (x - a) / a, which near 0 is the difference of two numbers of nearly one size."""
    t = (x - a) / a
    near = tl.abs(t) < 0.5
    r = tl.where(near, t / (2 + t), 0.0)
    z = r * r
    tail = 0.3333333333333333 + z * (
        0.2 + z * (0.14285714285714285 + z * (0.1111111111111111 + z * (0.09090909090909091 + z * 0.07692307692307693)))
    )
    tail += z * z * z * z * z * z * (0.06666666666666667 + z * 0.058823529411764705)
    return tl.where(near, r * (t - 2 * z * tail), t - libdevice.log(x / a))


@triton.jit
def _factor(a, x):
    """x^a exp(-x) / gamma(a + 1)."""
    z = 1 / (a * a)
    stirling = (0.08333333333333333 - z * (0.002777777777777778 - z * 0.0007936507936507937)) / a
    far = libdevice.exp(-a * _log_excess(a, x) - stirling) * (libdevice.rsqrt(a) * 0.3989422804014327)
    low, held = tl.minimum(a, 6.0), tl.minimum(x, 200.0)
    near = libdevice.pow(held, low) * libdevice.exp(-held) / libdevice.tgamma(low + 1)
    return tl.where(a > 5, far, near)


@triton.jit
def _uniform(a, x):
    """(the square of the normal distribution's argument, half of it, what the expansion adds to Q) of large a."""
    half = a * _log_excess(a, x)
    eta = libdevice.sqrt(2 * _log_excess(a, x))
    eta = tl.where(x < a, -eta, eta)
    first = eta * 8.29671134095309e-07 - 1.85406221071516e-06
    first = first * eta - 2.1854485106799922e-06
    first = first * eta + 3.9192631785224378e-05
    first = first * eta - 0.00017875514403292181
    first = first * eta + 0.0003527336860670194
    first = first * eta + 0.0011574074074074074
    first = first * eta - 0.014814814814814815
    first = first * eta + 0.083333333333333333
    first = first * eta - 0.33333333333333333
    second = -0.0018518518518518519 + eta * (
        -0.0034722222222222222
        + eta * (0.0026455026455026455 + eta * (-0.00099022633744855967 + eta * 0.00020576131687242798))
    )
    third = 0.0041335978835978836 - eta * 0.0026813271604938272
    total = first + (second + third / a) / a
    added = libdevice.exp(-half) * (libdevice.rsqrt(a) * 0.3989422804014327) * total
    return eta * libdevice.sqrt(0.5 * a), added


@triton.jit
def _both(a, x):
    """(P, Q) of finite a > 0 and x > 0: each from what is computed of the smaller one, as far as that is known."""
    factor = _factor(a, x)
    # P, by its series.
    term = tl.where(a == a, 1.0, 1.0).to(a.dtype)
    series = term
    for n in range(1, 80):
        term = term * x / (a + n)
        series += term
    lower = factor * series
    # Q, by its continued fraction (Lentz's method).
    past = tl.maximum(x, tl.maximum(a + 1, 1.0))
    b = past + 1 - a
    d = 1 / b
    c = b * 0 + 1e30
    fraction = d
    for n in range(1, 80):
        top = n * (a - n)
        b += 2
        d = 1 / (top * d + b)
        c = b + top / c
        fraction = fraction * d * c
    upper = factor * a * fraction
    behind = x >= tl.maximum(a + 1, 1.1)
    p, q = tl.where(behind, 1 - upper, lower), tl.where(behind, upper, 1 - lower)
    # Q of small a and x, where it is the small difference of large numbers.
    small = (a < 1.1) & (x <= 1.1)
    power = tl.where(small, a, 1.0) * libdevice.log(x) - libdevice.lgamma(1 + tl.where(small, a, 1.0))
    term = tl.where(a == a, 1.0, 1.0).to(a.dtype)
    alternating = term * 0
    for n in range(1, 16):
        term = -term * tl.where(small, x, 0.0) / n
        alternating += term / (a + n)
    q = tl.where(small, -libdevice.expm1(power) - libdevice.exp(power) * a * alternating, q)
    uniform = (a >= 32) & (x > 0.4 * a) & (x < 2.2 * a)
    place, added = _uniform(tl.where(uniform, a, 32.0), tl.where(uniform, x, 32.0))
    p = tl.where(uniform, 0.5 * libdevice.erfc(-place) - added, p)
    return p, tl.where(uniform, 0.5 * libdevice.erfc(place) + added, q)


@triton.jit
def _bounded(share, a, x, at_zero: tl.constexpr):
    """``share`` of a and x inside of their ranges, and what torch's CPU has at their ends; ``at_zero``: what it is of
    x = 0, and 1 - at_zero at infinity."""
    infinite, nothing = float("inf"), float("nan")
    share = tl.where((a != a) | (x != x), nothing, share)
    share = tl.where(x == infinite, 1.0 - at_zero, share)
    share = tl.where(a == infinite, tl.where(x == infinite, nothing, at_zero), share)
    share = tl.where(x == 0, at_zero, share)
    share = tl.where(a == 0, tl.where(x > 0, 1.0 - at_zero, nothing), share)
    return tl.where((a < 0) | (x < 0), nothing, share)


@triton.jit
def _inside(a, x):
    """Numbers of which nothing has to be known, where a or x is none to compute with."""
    usable = (a > 0) & (x > 0) & (a < float("inf")) & (x < float("inf"))
    return tl.where(usable, a, 1.0), tl.where(usable, x, 1.0)


@triton.jit
def lower(a, x):
    """P(a, x)."""
    inner_a, inner_x = _inside(a, x)
    share, _ = _both(inner_a, inner_x)
    return _bounded(share, a, x, 0.0)


@triton.jit
def upper(a, x):
    """Q(a, x)."""
    inner_a, inner_x = _inside(a, x)
    _, share = _both(inner_a, inner_x)
    return _bounded(share, a, x, 1.0)
