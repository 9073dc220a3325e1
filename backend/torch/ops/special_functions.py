"""Special functions that generated kernels call and libdevice does not have, in float32.

Each is a series whose terms have one sign, or an asymptotic one that begins where its terms are below float32's
precision, so that only rounding makes errors. tests/device/torch_ops/test_special_functions.py has a bound of each.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def digamma(x):
    """The logarithmic derivative of the gamma function (DLMF 5.5.2, 5.5.4, 5.11.2); NaN at negative integers."""
    reflected = x < 0
    y = tl.where(reflected, 1 - x, x)
    result = tl.where(x == x, 0.0, 0.0).to(x.dtype)
    for _ in tl.static_range(10):
        low = y < 10
        result = tl.where(low, result - 1 / y, result)
        y = tl.where(low, y + 1, y)
    z = 1 / (y * y)
    tail = z * (
        0.08333333333333333 - z * (0.008333333333333333 - z * (0.003968253968253968 - z * 0.004166666666666667))
    )
    result = result + libdevice.log(y) - 0.5 / y - tail
    # pi / tan(pi x), of x without what changes nothing.
    part = x - libdevice.rint(x)
    cotangent = 3.141592653589793 * libdevice.cospi(part) / libdevice.sinpi(part)
    result = tl.where(reflected, result - cotangent, result)
    result = tl.where(reflected & (part == 0), float("nan"), result)
    return tl.where(x == 0, libdevice.copysign(x * 0 + float("inf"), -x), result)


@triton.jit
def _zeta_above(s, q):
    """The Hurwitz zeta function of q > 0, s > 1, by Euler and Maclaurin's formula (DLMF 25.11.5) after ten terms."""
    total = tl.where((s == s) & (q == q), 0.0, 0.0).to(q.dtype)
    for k in range(0, 10):  # once in the kernel's code, as a power is long
        total += libdevice.pow(q + k, -s)
    a = q + 10
    root = libdevice.pow(a, s * -0.5)  # of the power, which may be too small where its product with a is not
    z = 1 / (a * a)
    rest = s * (s + 1) * (s + 2) * z * (-0.001388888888888889 + (s + 3) * (s + 4) * z * 3.306878306878307e-05)
    tail = root * (root * a / (s - 1) + root * (0.5 + (s * 0.08333333333333333 + rest) / a))
    return total + tl.where(root == 0, 0.0, tail)  # the other factor may be an infinity


@triton.jit
def zeta(s, q):
    """The Hurwitz zeta function: the sum of (q + k)^-s over all k from 0. Of negative q, for whole s: the terms of
    either sign are such sums themselves."""
    whole = libdevice.floor(q) == q
    below = -q - libdevice.floor(-q)  # the last negative term's distance from 0
    positive = _zeta_above(s, tl.where(q > 0, q, 1 - below))
    nearest = _zeta_above(s, tl.where(q > 0, q * 0 + 1, below))
    past = _zeta_above(s, tl.where(q > 0, q * 0 + 1, 1 - q))
    odd = libdevice.floor(s / 2) * 2 != s
    both = tl.where(odd, (positive - nearest) + past, (positive + nearest) - past)
    result = tl.where(q > 0, positive, both)
    result = tl.where((q < 0) & (libdevice.floor(s) != s), float("nan"), result)
    result = tl.where((s != s) | (q != q), float("nan"), result)
    result = tl.where((q <= 0) & whole, float("inf"), result)
    return tl.where(s == 1, float("inf"), tl.where(s < 1, float("nan"), result))


@triton.jit
def _bessel_scaled(x, order: tl.constexpr):
    """exp(-x) I_order(x) of x >= 0, for orders 0 and 1: by I_order(x) up to 10, then by the series for large arguments
    (DLMF 10.40.1)."""
    near = libdevice.cyl_bessel_i1(x) if order == 1 else libdevice.cyl_bessel_i0(x)
    term = tl.where(x == x, 1.0, 1.0).to(x.dtype)
    far = term
    for k in tl.static_range(1, 14):
        term = term * ((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * x)
        far += term
    return tl.where(x <= 10, near * libdevice.exp(-x), far * (libdevice.rsqrt(x) * 0.3989422804014327))


@triton.jit
def i0e(x):
    """exp(-|x|) I_0(x)."""
    return _bessel_scaled(tl.abs(x), 0)


@triton.jit
def i1e(x):
    """exp(-|x|) I_1(x)."""
    scaled = _bessel_scaled(tl.abs(x), 1)
    return tl.where(x < 0, -scaled, scaled)


@triton.jit
def log_ndtr(x):
    """The logarithm of the normal distribution's cumulative function."""
    t = x * 0.7071067811865476
    far = libdevice.log(libdevice.erfcx(-t) / 2) - t * t
    return tl.where(x < -1, far, libdevice.log1p(-libdevice.erfc(t) / 2))
