"""Derives every polynomial of backend/lowering/numerics/coefficients.txt, and prints that file.

    python tests/unit/math/derive_coefficients.py > backend/lowering/numerics/coefficients.txt

Each is the interpolating polynomial through Chebyshev nodes of the stated interval, computed with 80 digits, of the
lowest degree whose error, weighted by the part it has in the result, stays below 2^-27 (f32) or 2^-58 (f64), and
rounded to the format. Where a degree is given, it is the polynomial of that degree whose largest weighted error is the
least, here below twice as much. Needs mpmath.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
from mpmath import mpf

DIGITS = 80
mpmath.mp.dps = DIGITS
TOLERANCE = {32: mpf(2) ** -27, 64: mpf(2) ** -58}
Real = Any


@dataclass(frozen=True)
class Fit:
    """``target(x)`` on [low, high]; its error counts ``weight(x)`` in the result relative to the result. ``degree``: of
    the polynomial, None for the lowest that is precise enough."""

    meaning: str
    target: Callable[[Real], Real]
    low: Real
    high: Real
    weight: Callable[[Real], Real]
    widths: tuple[int, ...] = (32, 64)
    degree: int | None = None


def interpolate(function: Callable[[Real], Real], low: Real, high: Real, degree: int) -> list[Real]:
    """Monomial coefficients, lowest first, through the degree + 1 Chebyshev nodes."""
    count = degree + 1
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count)) for k in range(count)
    ]
    # Newton's divided differences, expanded.
    table = [function(x) for x in nodes]
    for level in range(1, count):
        for i in range(count - 1, level - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (nodes[i] - nodes[i - level])
    polynomial: list[Real] = [mpf(0)]
    for i in range(count - 1, -1, -1):
        shifted = [mpf(0), *polynomial]
        polynomial = [
            shifted[k] - nodes[i] * (polynomial[k] if k < len(polynomial) else 0) for k in range(len(shifted))
        ]
        polynomial[0] += table[i]
    return polynomial[:count]


def least_error(what: Fit, degree: int) -> list[Real]:
    """Coefficients, lowest first, of the polynomial whose largest weighted error is the least (Remez' exchange)."""
    count, low, high = degree + 2, mpf(what.low), mpf(what.high)
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mpmath.cos(mpmath.pi * k / 600) for k in range(601)]
    known = [(x, what.target(x), what.weight(x)) for x in grid]
    chosen = [round(600 * mpf(k) / (count - 1)) for k in range(count)]
    polynomial: list[Real] = []
    for _ in range(12):
        rows, sums = mpmath.matrix(count, count), mpmath.matrix(count, 1)
        for row, index in enumerate(chosen):
            x, y, weight = known[index]
            for power in range(degree + 1):
                rows[row, power] = x**power
            rows[row, degree + 1] = (-1) ** row / max(weight, mpf(10) ** -30)
            sums[row] = y
        polynomial = list(mpmath.lu_solve(rows, sums))[: degree + 1]
        errors = [(evaluate(polynomial, x) - y) * weight for x, y, weight in known]
        # Of each run of errors of one sign the largest, and of these as many neighbours as are needed.
        peaks: list[int] = []
        for index, error in enumerate(errors):
            if peaks and errors[peaks[-1]] * error > 0:
                peaks[-1] = max(peaks[-1], index, key=lambda place: abs(errors[place]))
            else:
                peaks.append(index)
        while len(peaks) > count:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < count or peaks == chosen:
            break
        chosen = peaks
    return polynomial


def evaluate(polynomial: list[Real], x: Real) -> Real:
    """Horner's rule."""
    result = mpf(0)
    for coefficient in reversed(polynomial):
        result = result * x + coefficient
    return result


def fit(what: Fit, width: int) -> list[Real]:
    """The lowest degree that meets the tolerance, or the one that is given."""
    if what.degree is not None:
        return least_error(what, what.degree)
    samples = [what.low + (what.high - what.low) * mpf(2 * k + 1) / 82 for k in range(41)]
    wanted = [(x, what.target(x), what.weight(x)) for x in samples]
    for degree in range(1, 60):
        polynomial = interpolate(what.target, mpf(what.low), mpf(what.high), degree)
        if max(abs(evaluate(polynomial, x) - y) * w for x, y, w in wanted) < TOLERANCE[width]:
            return polynomial
    raise ArithmeticError(f"no polynomial of degree below 60 for {what.meaning}")


def taylor_safe(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """``function`` kept away from 0, where its form is 0/0; the interpolation nodes are never closer than this."""
    return lambda x: function(x if abs(x) > mpf(10) ** -24 else mpf(10) ** -24)


sqrt, exp, log, sin, cos = mpmath.sqrt, mpmath.exp, mpmath.log, mpmath.sin, mpmath.cos
HALF_LN2 = mpf("0.3467")
QUARTER_PI = mpf("0.7855")
ERFCX_TOP = mpf(28)


def bessel_phase(order: int, part: str) -> Callable[[Real], Real]:
    """P or Q of Hankel's form at u = (8/x)^2: J = sqrt(2/(pi x)) (P cos(w) - Q sin(w)), Y with sin and cos exchanged,
    where w = x - order pi/2 - pi/4; Q is divided by 8/x."""

    def value(u: Real) -> Real:
        x = 8 / sqrt(u)
        w = x - order * mpmath.pi / 2 - mpmath.pi / 4
        scale = sqrt(mpmath.pi * x / 2)
        j, y = mpmath.besselj(order, x), mpmath.bessely(order, x)
        if part == "P":
            return scale * (j * cos(w) + y * sin(w))
        return scale * (y * cos(w) - j * sin(w)) / sqrt(u)

    return lambda u: value(u if u > mpf(10) ** -6 else mpf(10) ** -6)


def odd(meaning: str, function: Callable[[Real], Real], high: str | Real) -> Fit:
    """(f(x) - x) / x^3 at z = x^2, of a function that is odd."""
    return Fit(meaning, taylor_safe(lambda z: (function(sqrt(z)) / sqrt(z) - 1) / z), mpf(0), mpf(high), lambda z: z)


def to_8(meaning: str, function: Callable[[Real], Real], weight: int) -> Fit:
    """Of x from 0 to 8."""
    place = f"{meaning} at z = x^2/32 - 1, x to 8"
    target = lambda z: function(sqrt(abs((z + 1) * 32)) + mpf(10) ** -20)  # noqa: E731
    return Fit(place, target, mpf(-1), mpf("1.0001"), lambda z: weight, (64,))


def from_8(meaning: str, function: Callable[[Real], Real], weight: int) -> Fit:
    """Of x from 8 on."""
    place = f"{meaning} at t = 16/x - 1, x from 8"
    target = lambda t: function(16 / max(t + 1, mpf("0.001")))  # noqa: E731
    return Fit(place, target, mpf(-1), mpf("1.0001"), lambda t: weight, (64,))


FITS = {
    "EXPM1": Fit(
        "(exp(r) - 1 - r) / r^2",
        taylor_safe(lambda r: (mpmath.expm1(r) - r) / r**2),
        -HALF_LN2,
        HALF_LN2,
        lambda r: abs(r),
    ),
    "EXP": Fit(
        "(exp(r) - 1 - r) / r^2, for exp(r) alone",
        taylor_safe(lambda r: (mpmath.expm1(r) - r) / r**2),
        -HALF_LN2,
        HALF_LN2,
        lambda r: r**2 / exp(r),
        (32,),
        4,
    ),
    "EXP2M1": Fit(
        "(2^r - 1) / r",
        taylor_safe(lambda r: mpmath.expm1(r * log(2)) / r),
        mpf("-0.5001"),
        mpf("0.5001"),
        lambda r: abs(r),
    ),
    "EXP10M1": Fit(
        "(10^r - 1) / r",
        taylor_safe(lambda r: mpmath.expm1(r * log(10)) / r),
        mpf("-0.1506"),
        mpf("0.1506"),
        lambda r: abs(r),
    ),
    "LOG_F": Fit(
        "(log(1 + f) - f + f^2/2) / f^3",
        taylor_safe(lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3),
        mpf("-0.2930"),
        mpf("0.4143"),
        lambda f: f * f / (1 if f > 0 else 1),
        (32,),
    ),
    "LOG_S": Fit(
        "(log((1 + s)/(1 - s)) - 2s) / s^3 at z = s^2",
        taylor_safe(lambda z: (2 * mpmath.atanh(sqrt(abs(z))) / sqrt(abs(z)) - 2) / abs(z)),
        mpf(0),
        mpf("0.02945"),
        lambda z: z / 2,
        (64,),
    ),
    "LOG_S5": Fit(
        "(log((1 + s)/(1 - s)) / 2s - 1 - z/3) / z^2 at z = s^2",
        lambda z: (mpmath.atanh(sqrt(z)) / sqrt(z) - 1 - z / 3) / z**2 if z > mpf(10) ** -8 else mpf(1) / 5 + z / 7,
        mpf(0),
        mpf("0.02945"),
        lambda z: z * z * 1024,
        (64,),
    ),
    "SIN": odd("(sin(r) - r) / r^3 at z = r^2", sin, QUARTER_PI**2),
    "COS": Fit(
        "(cos(r) - 1 + r^2/2) / r^4 at z = r^2",
        lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(10) ** -12 else mpf(1) / 24,
        mpf(0),
        QUARTER_PI**2,
        lambda z: z * z * sqrt(2),
    ),
    "TANH": odd("(tanh(x) - x) / x^3 at z = x^2", mpmath.tanh, "0.3907"),
    "SINH": odd("(sinh(x) - x) / x^3 at z = x^2", mpmath.sinh, "1.001"),
    "ASIN": odd("(asin(x) - x) / x^3 at z = x^2", mpmath.asin, "0.2501"),
    "ATAN": odd("(atan(x) - x) / x^3 at z = x^2", mpmath.atan, "0.1717"),
    "ERF": Fit(
        "(erf(x) - x) / x at z = x^2",
        taylor_safe(lambda z: mpmath.erf(sqrt(z)) / sqrt(z) - 1),
        mpf(0),
        mpf("1.001"),
        lambda z: mpf("1.1"),
        (64,),
    ),
    "ERF_NEAR": Fit(
        "(erf(x) - x) / x at z = x^2, x to 0.9",
        taylor_safe(lambda z: mpmath.erf(sqrt(z)) / sqrt(z) - 1),
        mpf(0),
        mpf("0.81"),
        taylor_safe(lambda z: sqrt(z) / mpmath.erf(sqrt(z))),
        (32,),
        5,
    ),
    "ERFC_ROOT": Fit(
        "erfc(x)^(1/4) at t = x - 1, x from 0.9 to 4",
        lambda t: mpmath.erfc(t + 1) ** mpf("0.25"),
        mpf("-0.1"),
        mpf(3),
        lambda t: 4 * mpmath.erfc(t + 1) ** mpf("0.75") / mpmath.erf(t + 1),
        (32,),
        8,
    ),
    "ERFCX": Fit(
        "(1 + 2x) exp(x^2) erfc(x) at t = (x - 4)/(x + 4), x from 0 to 28",
        lambda t: (
            (1 + 2 * (4 + 4 * t) / (1 - t)) * exp(((4 + 4 * t) / (1 - t)) ** 2) * mpmath.erfc((4 + 4 * t) / (1 - t))
        ),
        mpf(-1),
        (ERFCX_TOP - 4) / (ERFCX_TOP + 4),
        lambda t: 1,
        (64,),
    ),
    "LGAMMA2": Fit(
        "log(gamma(2 + z)) / z",
        taylor_safe(lambda z: mpmath.loggamma(2 + z) / z),
        mpf("-0.501"),
        mpf("0.501"),
        lambda z: 3,
        (64,),
    ),
    "GAMMA2": Fit("gamma(2 + z)", lambda z: mpmath.gamma(2 + z), mpf("-0.501"), mpf("0.501"), lambda z: 1, (64,)),
    "STIRLING": Fit(
        "x (log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2) at u = 1/x^2, x from 8",
        lambda u: (
            (
                mpmath.loggamma(1 / sqrt(u))
                - (1 / sqrt(u) - mpf(1) / 2) * log(1 / sqrt(u))
                + 1 / sqrt(u)
                - log(2 * mpmath.pi) / 2
            )
            / sqrt(u)
            if u > mpf(10) ** -12
            else mpf(1) / 12
        ),
        mpf(0),
        mpf("0.01563"),
        lambda u: mpf(1) / 8,
        (64,),
    ),
    "J0": to_8("J0(x)", lambda x: mpmath.besselj(0, x), 1),
    "J1": to_8("J1(x)/x", lambda x: mpmath.besselj(1, x) / x, 4),
    "Y0": to_8(
        "Y0(x) - 2/pi log(x) J0(x)", lambda x: mpmath.bessely(0, x) - 2 / mpmath.pi * log(x) * mpmath.besselj(0, x), 1
    ),
    "Y1": to_8(
        "(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x",
        lambda x: (mpmath.bessely(1, x) - 2 / mpmath.pi * (log(x) * mpmath.besselj(1, x) - 1 / x)) / x,
        4,
    ),
    **{
        f"J{order}_{part}": Fit(
            f"{part} of Hankel's form of order {order}{', over 8/x,' if part == 'Q' else ''} at u = (8/x)^2",
            *(bessel_phase(order, part), mpf(0), mpf("1.0001"), lambda u: 1, (64,)),
        )
        for order in (0, 1)
        for part in "PQ"
    },
    "I0": to_8("I0(x) exp(-x^2/16)", lambda x: mpmath.besseli(0, x) * exp(-(x**2) / 16), 1),
    "I1": to_8("I1(x)/x exp(-x^2/16)", lambda x: mpmath.besseli(1, x) / x * exp(-(x**2) / 16), 4),
    "I0_LARGE": from_8("I0(x) exp(-x) sqrt(x)", lambda x: mpmath.besseli(0, x) * exp(-x) * sqrt(x), 3),
    "I1_LARGE": from_8("I1(x) exp(-x) sqrt(x)", lambda x: mpmath.besseli(1, x) * exp(-x) * sqrt(x), 3),
}

HEADER = """\
# Coefficients of the polynomials of the math functions, lowest power first, by name and width of float; coefficients.py
# reads them. Written by tests/unit/math/derive_coefficients.py, which states how each is derived. Do not edit.
"""


def main() -> None:
    """Prints coefficients.txt."""
    import sys

    print(HEADER, end="")
    for name, what in FITS.items():
        try:
            fits = {width: fit(what, width) for width in what.widths}
        except ArithmeticError as error:
            print(error, file=sys.stderr)
            continue
        print(name, {w: len(p) for w, p in fits.items()}, file=sys.stderr)
        print(f"\n# {what.meaning}, from {mpmath.nstr(what.low, 5)} to {mpmath.nstr(what.high, 5)}")
        for width, polynomial in fits.items():
            print(name, width)
            digits = 11 if width == 32 else 18
            texts = [mpmath.nstr(c, digits, min_fixed=0, max_fixed=0) for c in polynomial]
            for start in range(0, len(texts), 4):
                print("   ", *texts[start : start + 4])


if __name__ == "__main__":
    main()
