"""Modified Bessel functions K of orders 0 and 1, and Airy's function Ai, for generated kernels, in float32.

K of arguments up to 2 is a polynomial in their square, beside a logarithm (DLMF 10.31); Ai in the middle is a sum of
Chebyshev polynomials; elsewhere both have their own asymptotic form (DLMF 10.40, 9.7) with polynomials for its series.
tests/unit/math/derive_bessel_functions.py derives the coefficients, to 1e-8 of the largest value.
tests/device/torch_ops/test_special_functions.py has a bound of each.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


def _coefficients(*values: float) -> Any:
    return tl.constexpr(values)


# Polynomials in x² up to 2: I of order 0, of order 1 divided by x, and what K has beside its logarithm.
_I0_NEAR: tl.constexpr = _coefficients(
    0.999999999, 0.2500000181, 0.0156249474, 0.0004340836754, 6.754904654e-06, 7.369224507e-08
)
_I1_NEAR: tl.constexpr = _coefficients(
    0.4999999999, 0.06250000128, 0.002604162938, 5.425743614e-05, 6.762678808e-07, 6.069037509e-09
)
_K0_NEAR: tl.constexpr = _coefficients(
    *(0.1159315157, 0.2789828786, 0.02524893128, 0.0008460330669, 1.491615985e-05, 1.621854016e-07), 1.30281035e-09
)
_K1_NEAR: tl.constexpr = _coefficients(
    -0.3079657576, -0.08537072312, -0.004642172906, -0.0001125465515, -1.55426492e-06, -1.513352074e-08
)
# Chebyshev's polynomials in 4 / x - 1 past 2: exp(x) sqrt(x) K.
_K0_FAR: tl.constexpr = _coefficients(
    *(1.220151541, -0.03144810131, 0.001569883886, -0.0001284954958, 1.394981372e-05, -1.831755523e-06),
    *(2.766813638e-07, -4.660489898e-08, 8.574033661e-09),
)
_K1_FAR: tl.constexpr = _coefficients(
    *(1.360313095, 0.1039237366, -0.00285781686, 0.0001952155185, -1.936197974e-05, 2.406484948e-06),
    *(-3.501960605e-07, 5.741084121e-08, -1.034576283e-08),
)
# Ai: Chebyshev's polynomials from -5 to 2; past that polynomials in 1 / zeta, before it in 1 / zeta² (DLMF 9.7).
_AI_MIDDLE: tl.constexpr = _coefficients(
    *(0.1516894763, -0.005228692408, -0.007183007563, -0.2750085825, 0.1526728565, 0.112997229, -0.1293016352),
    *(0.02171795042, 0.0249118507, -0.01433585742, 0.0006966894516, 0.001974398934, -0.0007230393972),
    *(-1.611241453e-05, 8.133273673e-05, -2.077536581e-05, -1.605476268e-06, 2.056015825e-06, -3.825520518e-07),
    *(-4.913870622e-08, 3.514168651e-08, -4.846385342e-09),
)
_AI_ABOVE: tl.constexpr = _coefficients(
    *(0.9999999988, -0.06944404309, 0.03711142148, -0.0375098423, 0.05204634133, -0.0759374193, 0.09039405119),
    *(-0.06960652738, 0.02466502989),
)
_AI_SINE: tl.constexpr = _coefficients(0.9999999986, -0.03713083592, 0.0568692064, -0.2134958423)
_AI_COSINE: tl.constexpr = _coefficients(
    0.06944444442, -0.03799294019, 0.1160169735, -0.8561726205, 9.595417018, -83.16094553
)


@triton.jit
def _polynomial(x, coefficients: tl.constexpr):
    """A polynomial of rising powers, by Horner's rule."""
    total = x * 0 + coefficients[len(coefficients) - 1]
    for k in tl.static_range(2, len(coefficients) + 1):
        total = total * x + coefficients[len(coefficients) - k]
    return total


@triton.jit
def _chebyshev(t, coefficients: tl.constexpr):
    """The sum of Chebyshev polynomials of t in [-1, 1], by Clenshaw's recurrence."""
    total, before = t * 0, t * 0
    for k in tl.static_range(1, len(coefficients)):
        total, before = 2 * t * total - before + coefficients[len(coefficients) - k], total
    return t * total - before + coefficients[0]


@triton.jit
def _k0(x, scaled: tl.constexpr):
    square = x * x
    near = _polynomial(square, _K0_NEAR) - libdevice.log(x) * _polynomial(square, _I0_NEAR)
    far = _chebyshev(4 / tl.maximum(x, 2.0) - 1, _K0_FAR) * libdevice.rsqrt(x)
    return _of_two(x, near, far, scaled)


@triton.jit
def _k1(x, scaled: tl.constexpr):
    square = x * x
    near = 1 / x + x * (_polynomial(square, _K1_NEAR) + libdevice.log(x) * _polynomial(square, _I1_NEAR))
    far = _chebyshev(4 / tl.maximum(x, 2.0) - 1, _K1_FAR) * libdevice.rsqrt(x)
    return _of_two(x, near, far, scaled)


@triton.jit
def _of_two(x, near, far, scaled: tl.constexpr):
    """K of small arguments or exp(x) K of others, as one of these; inf at 0, NaN below."""
    if scaled:
        result = tl.where(x <= 2, near * libdevice.exp(x), far)
    else:
        result = tl.where(x <= 2, near, far * libdevice.exp(-x))
    result = tl.where(x == float("inf"), 0.0, result)
    return tl.where(x == 0, float("inf"), result)


@triton.jit
def k0(x):
    """The modified Bessel function K_0."""
    return _k0(x, False)


@triton.jit
def k0_scaled(x):
    """exp(x) K_0(x)."""
    return _k0(x, True)


@triton.jit
def k1(x):
    """The modified Bessel function K_1."""
    return _k1(x, False)


@triton.jit
def k1_scaled(x):
    """exp(x) K_1(x)."""
    return _k1(x, True)


@triton.jit
def airy(x):
    """Airy's function Ai; NaN of infinities, as torch has it."""
    size = tl.abs(x)
    # zeta = 2/3 size^1.5, and what it lacks: a wave's phase.
    root = libdevice.sqrt(size)
    power = size * root
    low = tl.fma(size, root, -power) + size * tl.fma(-root, root, size) / (2 * root)
    third = size * 0 + 0.6666666865348816
    zeta = power * third
    low = tl.where(zeta < 1e36, tl.fma(power, third, -zeta) - power * 1.9868215e-08 + low * third, 0.0)
    part = 1 / tl.maximum(zeta, 1.8)
    quarter = libdevice.rsqrt(libdevice.sqrt(size)) * 0.5641895835477563
    above = 0.5 * quarter * libdevice.exp(-zeta) * (1 - low) * _polynomial(part, _AI_ABOVE)
    past = 1 / tl.maximum(zeta, 7.4)
    square = past * past
    sine, cosine = libdevice.sin(zeta), libdevice.cos(zeta)
    sine, cosine = sine + low * cosine, cosine - low * sine
    in_phase = _polynomial(square, _AI_SINE) * (sine + cosine)
    below = (in_phase - past * _polynomial(square, _AI_COSINE) * (cosine - sine)) * (quarter * 0.7071067811865476)
    between = _chebyshev((tl.minimum(tl.maximum(x, -5.0), 2.0) + 1.5) / 3.5, _AI_MIDDLE)
    result = tl.where(x > 2, above, tl.where(x < -5, below, between))
    return tl.where((size == float("inf")) | (x != x), float("nan"), result)
