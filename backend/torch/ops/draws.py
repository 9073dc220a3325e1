"""Numbers of distributions from random bits, for generated kernels (``draw``).

A uniform number has 64 bits, and is computed from the end of (0, 1) that it is nearer to. So tails are right down to
2^-65, no number lies outside a distribution's support, and none is 0 or infinite where that has no probability:
Triton's own ``tl.rand`` is 0 once in 2^31 numbers, and ``tl.randn`` never past 5.68.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def unit(high, low):
    """(high + (low + 1/2) / 2^32) / 2^32 of two uint32, rounded: from 2^-65 to 1."""
    return high.to(tl.float32) * 2.3283064365386963e-10 + (low.to(tl.float32) + 0.5) * 5.421010862427522e-20


@triton.jit
def exponential(high, low):
    """-log(u), from 2^-65 to 45.1, where u is the uniform number of the two words."""
    above = high >= 0x80000000
    nearer = unit(tl.where(above, ~high, high), tl.where(above, ~low, low))
    return -tl.where(above, libdevice.log1p(-nearer), libdevice.log(nearer))


@triton.jit
def normal(a, b, c, d):
    """Box and Muller's, up to 9.5: the angle is within a right angle of 0, where its sine has as many digits."""
    below = b >= 0x80000000
    sine = libdevice.sin(unit(tl.where(below, ~b, b), tl.where(below, ~d, d)) * 3.141592653589793)
    return libdevice.sqrt(2 * exponential(a, c)) * tl.where(below, -sine, sine)


@triton.jit
def cauchy(high, low):
    """-cot(pi u), of which each eighth of a turn is computed by itself."""
    above = high >= 0x80000000
    high = tl.where(above, ~high, high)
    low = tl.where(above, ~low, low)
    middle = high >= 0x40000000
    high = tl.where(middle, 0x7FFFFFFF - high, high)
    tangent = libdevice.tan(unit(high, tl.where(middle, ~low, low)) * 3.141592653589793)
    return tl.where(above, 1.0, -1.0) * tl.where(middle, tangent, 1 / tangent)
