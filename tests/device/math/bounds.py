"""What every function is held to: reference, error bounds in ULP for f32 and f64, and where it is sampled.

``docs/internals/math.md`` states the same bounds; a test compares the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

Samples = Callable[[np.random.Generator, int, int], np.ndarray]


@dataclass(frozen=True)
class Bound:
    """``single`` and ``double``: ULP. ``samples(rng, count, width)`` gives arguments."""

    reference: Callable[[Any], Any]
    single: float
    double: float
    samples: Samples


def uniform(low: float, high: float) -> Samples:
    """Evenly spread; the ends may be given a width as (f32, f64)."""
    return lambda rng, count, width: rng.uniform(low, high, count)


def by_width(single: Samples, double: Samples) -> Samples:
    """Different ranges for the two formats."""
    return lambda rng, count, width: (single if width == 32 else double)(rng, count, width)


def magnitudes(low: float, high: float, signed: bool = True) -> Samples:
    """Evenly spread logarithms, of both signs."""

    def draw(rng: np.random.Generator, count: int, width: int) -> np.ndarray:
        values = np.exp(rng.uniform(np.log(low), np.log(high), count))
        return values * rng.choice([-1, 1], count) if signed else values

    return draw


def both(*parts: Samples) -> Samples:
    """As many from each."""
    return lambda rng, count, width: np.concatenate([part(rng, count, width) for part in parts])


POSITIVE = by_width(magnitudes(1e-44, 3e38, False), magnitudes(1e-310, 1e308, False))
SMALL = by_width(magnitudes(1e-40, 1), magnitudes(1e-300, 1))
ANY = by_width(magnitudes(1e-40, 3e38), magnitudes(1e-300, 1e308))
ANGLES = both(uniform(-4, 4), uniform(-3200, 3200), ANY)
UNIT = both(uniform(-1, 1), SMALL)


def reflected(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An odd function's reference for both signs."""
    return lambda x: function(x) if x >= 0 else -function(-x)


#: Bounds of f32 where the device's own exponentials are used (capabilities.NATIVE_MATH).
NATIVE = {"exp": 4, "exp2": 2.5, "fast_tanhf": 4}

BOUNDS: dict[str, Bound] = {
    "exp": Bound(mp.exp, 1, 1, by_width(uniform(-104, 89), uniform(-746, 710))),
    "exp2": Bound(lambda x: mp.mpf(2) ** x, 1.25, 1.25, by_width(uniform(-150, 128), uniform(-1075, 1024))),
    "exp10": Bound(lambda x: mp.mpf(10) ** x, 1.25, 1.25, by_width(uniform(-45, 39), uniform(-320, 309))),
    "expm1": Bound(mp.expm1, 1.6, 2, both(by_width(uniform(-100, 89), uniform(-700, 710)), UNIT)),
    "log": Bound(mp.log, 1, 1, both(POSITIVE, uniform(0.5, 2))),
    "log2": Bound(lambda x: mp.log(x, 2), 1, 1, both(POSITIVE, uniform(0.5, 2), uniform(0.999, 1.001))),
    "log10": Bound(mp.log10, 1, 1, both(POSITIVE, uniform(0.5, 2))),
    "log1p": Bound(mp.log1p, 1, 1, both(POSITIVE, uniform(-0.999, 1))),
    "sin": Bound(mp.sin, 2, 1.75, ANGLES),
    "cos": Bound(mp.cos, 2, 1.75, ANGLES),
    "tan": Bound(mp.tan, 3.5, 3.5, ANGLES),
    "sinpi": Bound(mp.sinpi, 1, 1, both(uniform(-4, 4), SMALL, magnitudes(1, 1e9))),
    "cospi": Bound(mp.cospi, 1, 1, both(uniform(-4, 4), SMALL, magnitudes(1, 1e9))),
    "asin": Bound(mp.asin, 1.5, 1.5, UNIT),
    "acos": Bound(mp.acos, 1.5, 1.5, UNIT),
    "atan": Bound(mp.atan, 2, 1.5, both(uniform(-5, 5), ANY)),
    "sinh": Bound(mp.sinh, 2, 2, both(uniform(-5, 5), by_width(uniform(-90, 90), uniform(-711, 711)), SMALL)),
    "cosh": Bound(mp.cosh, 2, 2, both(uniform(-5, 5), by_width(uniform(-90, 90), uniform(-711, 711)))),
    "tanh": Bound(mp.tanh, 1.5, 1.5, both(uniform(-20, 20), UNIT)),
    "asinh": Bound(reflected(mp.asinh), 2, 2, both(uniform(-5, 5), ANY)),
    "acosh": Bound(
        mp.acosh, 2.5, 2.5, both(uniform(1, 5), by_width(magnitudes(1, 3e38, False), magnitudes(1, 1e308, False)))
    ),
    "atanh": Bound(mp.atanh, 2, 2, both(uniform(-0.9999, 0.9999), SMALL)),
    "sqrt": Bound(mp.sqrt, 0.5, 0.5, POSITIVE),
    "rsqrt": Bound(lambda x: 1 / mp.sqrt(x), 2, 1.5, POSITIVE),
    "cbrt": Bound(reflected(mp.cbrt), 0.51, 0.51, ANY),
    "rcbrt": Bound(reflected(lambda x: 1 / mp.cbrt(x)), 1.5, 1.5, ANY),
    "erf": Bound(mp.erf, 2, 2, both(uniform(-6, 6), SMALL)),
    "erfc": Bound(mp.erfc, 0.51, 4, both(by_width(uniform(-4, 10), uniform(-6, 26.5)), SMALL)),
    "erfcx": Bound(lambda x: mp.exp(x * x) * mp.erfc(x), 0.51, 8, both(uniform(-9, 60), SMALL)),
    "erfinv": Bound(mp.erfinv, 0.51, 5, both(uniform(-0.9999, 0.9999), SMALL)),
    "erfcinv": Bound(lambda x: mp.erfinv(1 - x), 0.51, 5, uniform(1e-6, 1.999)),
    "normcdf": Bound(mp.ncdf, 0.51, 5, by_width(uniform(-13, 6), uniform(-37, 8))),
    "normcdfinv": Bound(lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), 0.51, 6, uniform(1e-6, 0.9999)),
    "lgamma": Bound(
        lambda x: mp.log(abs(mp.gamma(x))),
        0.51,
        8,
        by_width(magnitudes(1e-40, 1e36, False), both(uniform(0, 12), magnitudes(1e-300, 1e300, False))),
    ),
    "tgamma": Bound(mp.gamma, 0.51, 10, by_width(uniform(-20, 35), uniform(-20, 171))),
    "cyl_bessel_i0": Bound(lambda x: mp.besseli(0, x), 0.51, 6, by_width(uniform(-80, 80), uniform(-700, 700))),
    "cyl_bessel_i1": Bound(lambda x: mp.besseli(1, x), 0.51, 6, by_width(uniform(-80, 80), uniform(-700, 700))),
}

#: Functions with zeros away from simple places: absolute errors, for arguments to 100.
ABSOLUTE: dict[str, tuple[Callable[[Any], Any], float, float, Samples]] = {
    "j0": (lambda x: mp.besselj(0, x), 1e-7, 1e-15, uniform(-100, 100)),
    "j1": (lambda x: mp.besselj(1, x), 1e-7, 1e-15, uniform(-100, 100)),
    "y0": (lambda x: mp.bessely(0, x), 1e-7, 1e-15, uniform(0.1, 100)),
    "y1": (lambda x: mp.bessely(1, x), 1e-6, 5e-15, uniform(0.1, 100)),
}

#: Functions of two arguments: reference, bounds, samples of each argument.
BINARY: dict[str, tuple[Callable[[Any, Any], Any], float, float, Samples, Samples]] = {
    "atan2": (mp.atan2, 2, 2, magnitudes(1e-12, 1e12), magnitudes(1e-12, 1e12)),
    "hypot": (mp.hypot, 1.5, 1.5, magnitudes(1e-12, 1e12), magnitudes(1e-12, 1e12)),
    "rhypot": (lambda x, y: 1 / mp.hypot(x, y), 2, 2, magnitudes(1e-12, 1e12), magnitudes(1e-12, 1e12)),
    "pow": (mp.power, 0.51, 1.5, magnitudes(1e-3, 1e3, False), by_width(uniform(-12, 12), uniform(-100, 100))),
}
