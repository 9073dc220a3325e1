"""coefficients.txt holds what derive_coefficients.py derives."""

from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from triton.backends.spirv.lowering.numerics.coefficients import POLYNOMIALS, TWO_OVER_PI

from tests.unit.math.derive_coefficients import DIGITS, FITS, TOLERANCE, evaluate, fit


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    """Other tests of the process set mpmath's precision, too."""
    with mpmath.workdps(DIGITS):
        yield


def test_the_two_name_the_same_polynomials():
    assert {name: set(what.widths) for name, what in FITS.items()} == {
        name: set(by_width) for name, by_width in POLYNOMIALS.items()
    }


@pytest.mark.parametrize("name", ["EXPM1", "EXP", "EXP2M1", "ERF_NEAR", "ERFC_ROOT", "LOG_S", "SIN", "COS", "ATAN"])
def test_derived_again(name):
    for width, coefficients in POLYNOMIALS[name].items():
        derived = [float(value) for value in fit(FITS[name], width)]
        np.testing.assert_allclose(coefficients, derived, rtol=1e-10 if width == 32 else 1e-15)


@pytest.mark.parametrize("name", sorted(set(FITS) - {"J0_P", "J0_Q", "J1_P", "J1_Q", "I0_LARGE", "I1_LARGE"}))
def test_printed_coefficients_meet_the_tolerance(name):
    what = FITS[name]
    for width, coefficients in POLYNOMIALS[name].items():
        tolerance = TOLERANCE[width] * (1 if what.degree is None else 2)
        rounded = [mpmath.mpf(float(np.float32(value) if width == 32 else value)) for value in coefficients]
        for k in range(1, 12):
            x = what.low + (what.high - what.low) * mpmath.mpf(k) / 12 + mpmath.mpf("1e-6")
            # Rounding the coefficients costs up to half a unit of each.
            slack = sum(abs(value * x**power) for power, value in enumerate(rounded)) * 2 ** (
                -24 if width == 32 else -53
            )
            assert abs(evaluate(rounded, x) - what.target(x)) <= tolerance / what.weight(x) + slack, (name, x)


def test_two_over_pi():
    with mpmath.workdps(400):
        assert int(2 / mpmath.pi * mpmath.mpf(2) ** 1248) == TWO_OVER_PI
