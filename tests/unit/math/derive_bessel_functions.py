"""Derives the coefficients of backend/torch/ops/bessel_functions.py, and prints them by their names.

    python tests/unit/math/derive_bessel_functions.py

Each is the polynomial through 48 Chebyshev nodes of the interval, of values of 30 digits, without the Chebyshev
polynomials at its end whose coefficients are below the tolerance. Needs mpmath and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
from numpy.polynomial import chebyshev

mp.mp.dps = 30
_NODES = 48
Real = Any
Function = Callable[[Real], Real]


def sums(function: Function, low: float, high: float, tolerance: float = 6e-9) -> Any:
    """Coefficients of Chebyshev polynomials from low to high."""
    nodes = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    values = [float(function(mp.mpf((low + high) / 2 + (high - low) / 2 * float(t)))) for t in nodes]
    found = chebyshev.chebinterpolate(lambda t: np.interp(-t, -nodes, values), _NODES - 1)
    return found[: max(np.nonzero(np.abs(found) > tolerance * np.abs(values).max())[0]) + 1]


def powers(function: Function, high: float, tolerance: float) -> Any:
    """Coefficients of the powers of x from 0 to high, of a function that is not evaluated at 0 itself."""
    found = chebyshev.cheb2poly(sums(lambda x: function(mp.mpf(max(x, mp.mpf("1e-12")))), 0, high, tolerance))
    return np.poly1d(found[::-1])(np.poly1d([2 / high, -1])).c[::-1]


def of_square(function: Function) -> Any:
    """Coefficients of the powers of x² up to 4."""
    return powers(lambda square: function(mp.sqrt(square)), 4, 1e-9)


def large_k(order: int) -> Function:
    """exp(x) sqrt(x) K of t = 4 / x - 1."""
    return lambda t: (lambda x: mp.besselk(order, x) * mp.exp(x) * mp.sqrt(x))(4 / max(t + 1, mp.mpf("1e-6")))


def zeta_of(x: float) -> float:
    """DLMF 9.7.1."""
    return float(mp.mpf(2) / 3 * mp.mpf(x) ** 1.5)


def airy_above(u: Real) -> Real:
    """Ai's part beside its exponential function, of 1 / zeta."""
    zeta = 1 / max(u, mp.mpf("1e-6"))
    x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * 2 * mp.sqrt(mp.pi) * x**0.25 * mp.exp(zeta)


def airy_below(which: int) -> Function:
    """What Ai's waves are multiplied by, of 1 / zeta²."""

    def part(w: Real) -> Real:
        zeta = 1 / mp.sqrt(max(w, mp.mpf("1e-10")))
        x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
        size, phase = mp.sqrt(mp.pi) * x**0.25, zeta + mp.pi / 4
        a, b, cosine, sine = size * mp.airyai(-x), size * mp.airybi(-x), mp.cos(phase), mp.sin(phase)
        return (a * sine + b * cosine, (b * sine - a * cosine) * zeta)[which]

    return part


I, K = mp.besseli, mp.besselk  # noqa: E741
COEFFICIENTS: dict[str, Callable[[], Any]] = {
    "_I0_NEAR": lambda: of_square(lambda x: I(0, x)),
    "_I1_NEAR": lambda: of_square(lambda x: I(1, x) / x),
    "_K0_NEAR": lambda: of_square(lambda x: K(0, x) + mp.log(x) * I(0, x)),
    "_K1_NEAR": lambda: of_square(lambda x: (K(1, x) - mp.log(x) * I(1, x) - 1 / x) / x),
    "_K0_FAR": lambda: sums(large_k(0), -1, 1, 4e-9),
    "_K1_FAR": lambda: sums(large_k(1), -1, 1, 4e-9),
    "_AI_MIDDLE": lambda: sums(mp.airyai, -5, 2, 4e-9),
    "_AI_ABOVE": lambda: powers(airy_above, 1 / zeta_of(2), 4e-9),
    "_AI_SINE": lambda: powers(airy_below(0), 1 / zeta_of(5) ** 2, 4e-9),
    "_AI_COSINE": lambda: powers(airy_below(1), 1 / zeta_of(5) ** 2, 4e-9),
}


def main() -> None:
    """Prints all of them."""
    for name, derive in COEFFICIENTS.items():
        print(f"{name} = ({', '.join(f'{value:.10g}' for value in derive())})")


if __name__ == "__main__":
    main()
