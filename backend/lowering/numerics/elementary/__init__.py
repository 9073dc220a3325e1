"""Elementary functions in f32 and f64, from range reduction and polynomials of coefficients.py.

GLSL.std.450 has no transcendental function in f64, and its f32 ones are loose: 535,000 ULP for log2 near 1 and 63 ULP
for exp on Mesa's CPU driver; an absolute error of 2^-11 is allowed for sin. These are the same on every device. Their
error bounds are in docs/internals/math.md, and tests/device/math holds them to those.
"""

# ruff: noqa: F401 - this is where callers find them.
from __future__ import annotations

from .exponential import exp, exp2, exp10, exp_of_sum, expm1, log, log1p, log2, log10
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .roots import cbrt, hypot, norm, rcbrt, rhypot, rsqrt, rsqrt_corrected, sqrt
from .trigonometric import acos, asin, atan, atan2, cos, cospi, reduce_half_pi, sin, sinpi, tan
