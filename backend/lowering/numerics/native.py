"""Exponentials, and the tangent of them, by the device's own instruction, where that was measured to be exact enough
(NATIVE_MATH); and quotients that need not be exact, or share their divisor.

A GPU computes Exp2 of GLSL.std.450 in one instruction of its special function units, as upstream's CUDA backend does
for ``tl.exp`` and ``tl.exp2``; the polynomials of ``elementary/`` take about 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import or_

from .elementary import exp as exp_by_polynomial
from .elementary import exp2 as exp2_by_polynomial
from .elementary import tanh as tanh_by_polynomial
from .elementary.exponential import LN2, LOG2_E
from .numeric import Numeric, Real
from .quotients import reciprocal_estimate, reciprocal_root_estimate

#: log2(e) in two floats: the nearest one, and what it lacks.
LOG2_E_HIGH = 12102203 * 2.0**-23
LOG2_E_LOW = float(LOG2_E - Fraction(LOG2_E_HIGH))
#: What 1 + r ln2 is between wherever 2^t is neither 0 nor infinite.
FACTORS = 0.5, 2.0
#: The square of a device's InverseSqrt is a reciprocal that is less than this of itself off.
RECIPROCAL_ERROR = 2.0**-20
#: Quotients of numbers below this, by numbers above its reciprocal, are finite.
MODERATE = 2.0**60
#: Arguments of Exp2 are this much larger where the result may be subnormal.
LIFT = 64.0


def native_exp2(n: Numeric) -> bool:
    """Whether f32 exponentials are the device's own."""
    return n.width == 32 and "exp2" in n.emitter.options.native_math


def exp2(n: Numeric, x: Real) -> Real:
    """2^x: natively 2.5 ULP."""
    return _power(n, x, None) if native_exp2(n) else exp2_by_polynomial(n, x)


def exp(n: Numeric, x: Real) -> Real:
    """e^x: natively 4 ULP, as 2^t (1 + r ln2) with t + r = x log2(e). What t loses to rounding is known only where
    products and sums are rounded once. Where 2^t is 0 or infinite, r may be anything, and the factor is bounded."""
    if not native_exp2(n) or not n.fused:
        return exp_by_polynomial(n, x)
    t = x * LOG2_E_HIGH
    minus_r = n.fma(x, -LOG2_E_LOW, n.fma(x, -LOG2_E_HIGH, t))
    return _power(n, t, n.fma(minus_r, -float(LN2), 1.0).bounded(*FACTORS))


def tanh(n: Numeric, x: Real) -> Real:
    """The hyperbolic tangent: natively 4 ULP. An error of e^2a counts 1 / sinh(2a) of itself."""
    if not native_exp2(n):
        return tanh_by_polynomial(n, x)
    a, z = abs(x), x * x
    near, far = a + (a * z) * n.poly("TANH", z), 1.0 - 2.0 * reciprocal(n, (a * (2.0 * float(LOG2_E))).exp2() + 1.0)
    return n.where(a < 0.625, near, far).with_sign_of(x)


def divide(n: Numeric, x: Real, y: Real) -> Real:
    """x / y, 2 ULP for a normal y, as CUDA's __fdividef up to 2^126. Where reciprocals are squares of roots, it is x
    times both roots: the square of a large y's root is subnormal, which the quotient need not be."""
    if n.width != 32 or not n.emitter.capabilities.traits.reciprocal_roots:
        return x / y
    known = n.module.constants.get(x.id)
    if isinstance(known, float) and abs(known) <= 1:  # no less subnormal than the reciprocal
        return x * reciprocal(n, y)
    root = reciprocal_root_estimate(abs(y))
    product = abs(y) * root
    excess = n.fma(n.fma(abs(y), root, -product), root, n.fma(product, root, -1.0))
    return (x * root) * _improved(n, root, excess).with_sign_of(y)


def divide_by_few(n: Numeric, pairs: Sequence[tuple[Real, Real]]) -> list[Real]:
    """x / y of each pair, of which many share a y: half a unit and a bit, by the reciprocal and one exact remainder,
    where Fma rounds once, every x is moderate or small, and every y is moderate and positive. Elsewhere all quotients
    are the device's own."""
    reciprocals: dict[int, Real] = {}
    fast = []
    rare = []
    for x, y in pairs:
        rare.append(~(abs(x) < MODERATE))
        if y.id not in reciprocals:
            reciprocals[y.id] = reciprocal(n, y)
            rare.append(~((y > 1 / MODERATE) & (y < MODERATE)))
        r = reciprocals[y.id]
        q = x * r
        # A quotient of -0 stays one: the remainder's negative is 0, and so is its product with -r.
        fast.append(n.fma(-n.fma(q, y, -x), r, q))
    return n.branch(reduce(or_, rare), lambda: [x / y for x, y in pairs], fast)


def reciprocal(n: Numeric, y: Real) -> Real:
    """1 / y, 2 ULP for an abs(y) from 2^-126 to 2^126, beyond which it may be infinite or 0."""
    r = reciprocal_estimate(n, y)
    if not n.emitter.capabilities.traits.reciprocal_roots:
        return r
    return _improved(n, r, n.fma(y, r, -1.0))


def _improved(n: Numeric, estimate: Real, excess: Real) -> Real:
    """Newton's step: the estimate without so much of itself. Where one of a reciprocal is 0 or infinite, the excess is
    NaN, which is bounded to the lower limit, and the estimate stays."""
    return n.fma(-estimate, excess.bounded(-RECIPROCAL_ERROR, RECIPROCAL_ERROR), estimate)


def _power(n: Numeric, x: Real, factor: Real | None) -> Real:
    """2^x, times a ``factor`` near 1. If the device keeps subnormal numbers but its Exp2 does not give them, they
    are made by a product."""

    def times(value: Real) -> Real:
        return value if factor is None else value * factor

    emitter = n.emitter
    if "exp2_subnormal" in emitter.options.native_math or not emitter.capabilities.has("preserve_denormals32"):
        return times(x.exp2())
    small = x < -126.0
    return times(n.where(small, x + LIFT, x).exp2()) * n.where(small, n.real(2.0**-LIFT), n.real(1.0))
