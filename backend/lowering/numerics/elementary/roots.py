"""Roots and Euclidean norms."""

from __future__ import annotations

from ....spirv import opcodes as op
from ..numeric import Int, Numeric, Real
from ..quotients import near_quotient, near_root


def sqrt(n: Numeric, x: Real) -> Real:
    """The device's own square root."""
    return x.sqrt()


def rsqrt(n: Numeric, x: Real) -> Real:
    """1/sqrt(x)."""
    if n.width == 32:
        return x.inverse_sqrt()
    return 1.0 / x.sqrt()


def rsqrt_corrected(n: Numeric, x: Real) -> Real:
    """1/sqrt(x) in f32, within 0.5001 units: a step on the residual of twice the bits is added to the device's own."""
    small, large = x < 2.0**-60, x > 2.0**60
    m = n.where(small, x * 2.0**64, n.where(large, x * 2.0**-64, x))
    y = m.inverse_sqrt()
    square, square_error = n.two_product(y, y)
    product, product_error = n.two_product(m, square)
    residual = ((1.0 - product) - product_error) - m * square_error
    corrected = y + y * (residual * n.fma(residual, 0.375, 0.5))
    corrected = corrected * n.where(small, n.real(2.0**32), n.where(large, n.real(2.0**-32), 1.0))
    return n.where(y.is_finite() & y.ne(0.0), corrected, x.inverse_sqrt())


def cbrt(n: Numeric, x: Real) -> Real:
    """Cube root."""
    a = abs(x)
    # Cubes of roots far from the ends of the exponent range neither over- nor underflow, and nor do their errors.
    third = 2 * (n.mantissa + 5) // 3
    tiny, huge = a < 2.0 ** (1 - n.bias + 3 * n.mantissa), a > 2.0 ** (n.bias - n.mantissa)
    lift = n.where(tiny, n.real(2.0 ** (3 * third)), n.where(huge, n.real(2.0 ** (-3 * third)), 1.0))
    lifted = a * lift
    # A third of the exponent, and a linear guess at the root of the rest, within 6%.
    bits = lifted.bits()
    sixteenths = (bits >> (n.mantissa - 4)).resize(32)
    magic = int((n.bias - 0.1009678121) * 2 * 16 / 3)
    guess_bits = Int(n, n.f.emit(op.UDiv, n.module.u32, sixteenths.id, n.module.uint(3))) + magic
    y = (guess_bits.resize(n.width) << (n.mantissa - 4)).as_real()
    for _ in range(2 if n.width == 32 else 3):
        # Halley's step: the error is cubed.
        cube = y * y * y
        y = y - y * ((cube - lifted) / (2.0 * cube + lifted))
    # A last Newton step on the exact residual.
    square, square_error = n.two_product(y, y)
    cube, cube_error = n.two_product(square, y)
    residual = (lifted - cube) - (cube_error + square_error * y)
    y = y + residual / (3.0 * square)
    y = y * n.where(tiny, n.real(2.0**-third), n.where(huge, n.real(2.0**third), 1.0))
    # Zero, infinity and NaN stay; so does a subnormal number that the device takes for zero.
    y = n.where(lifted.is_finite() & lifted.ne(0.0), y, lifted)
    return y.with_sign_of(x)


def rcbrt(n: Numeric, x: Real) -> Real:
    """1/cbrt(x)."""
    return 1.0 / cbrt(n, x)


def norm(n: Numeric, *values: Real) -> tuple[Real, Real, Real]:
    """``(root, scale, unscale)``: the Euclidean norm is root x unscale; ``scale`` is a power of two, ``unscale`` its
    reciprocal."""
    magnitudes = [abs(value) for value in values]
    largest = magnitudes[0]
    for magnitude in magnitudes[1:]:
        largest = n.where(magnitude > largest, magnitude, largest)
    exponent = largest.bits() >> n.mantissa
    exponent = n.where(exponent.ugt(2 * n.bias - 1), 2 * n.bias - 1, exponent)
    exponent = n.where(exponent.ult(2), n.integer(2), exponent)
    scale = ((2 * n.bias - exponent) << n.mantissa).as_real()
    unscale = (exponent << n.mantissa).as_real()
    total = None
    for magnitude in magnitudes:
        scaled = magnitude * scale
        total = scaled * scaled if total is None else n.fma(scaled, scaled, total)
    assert total is not None
    # The root of a total of 0 is 0, which Newton's step would make NaN.
    return n.where(total > 0.0, near_root(n, total), total), scale, unscale


def _norm_specials(n: Numeric, values: tuple[Real, ...], value: Real, at_infinity: float) -> Real:
    any_nan, any_inf = values[0].is_nan(), values[0].is_inf()
    for other in values[1:]:
        any_nan, any_inf = any_nan | other.is_nan(), any_inf | other.is_inf()
    return n.where(any_inf, at_infinity, n.where(any_nan, float("nan"), value))


def hypot(n: Numeric, *values: Real) -> Real:
    """The Euclidean norm of 2 to 4 numbers, without overflow on the way."""
    root, _, unscale = norm(n, *values)
    return _norm_specials(n, values, root * unscale, float("inf"))


def rhypot(n: Numeric, *values: Real) -> Real:
    """1 over the Euclidean norm."""
    root, scale, _ = norm(n, *values)
    inverse = n.where(root > 0.0, near_quotient(n, n.real(1.0), root) * scale, float("inf"))
    return _norm_specials(n, values, inverse, 0.0)
