"""Special functions: error, gamma and Bessel functions. f32 is computed in f64 and rounded; on devices without f64 the
error and gamma functions are computed in f32."""

from __future__ import annotations

import math

from ...spirv import opcodes as op
from .coefficients import POLYNOMIALS
from .elementary import cos, exp, exp_of_sum, log, log1p, sin, sinpi
from .numeric import Int, Numeric, Real

#: Polynomials that are derived for f64 alone → how large their arguments are. In f32 they end where terms are below
#: half a unit in the last place.
RADII = {"ERF": 0.22, "ERFCX": 1.0, "LGAMMA2": 0.5, "GAMMA2": 0.5, "STIRLING": 1 / 64}
#: Nearer to 0 than this, the first term is the function.
TINY = 2.0**-60
#: The least positive number.
LEAST = {32: 2.0**-149, 64: 2.0**-1074}
#: Past the first gamma overflows; before the second it is 0.
GAMMA_RANGE = {32: (35.1, -43.0), 64: (172.0, -186.0)}

#: Past this, erfcx(x) is 1/(x sqrt(pi)) (1 - 1/(2x^2) + 3/(4x^4) - 15/(8x^6) + 105/(16x^8) - 945/(32x^10)) to 2^-53.
ERFCX_TOP = 28.0

#: Below it erf is linear.
ERF_LINEAR = 2.0**-60
#: From here on, erf in f32 is computed from its complement.
ERF_FAR = 0.9
#: From here on, 1 is the f32 nearest to erf.
ERF_TOP = 4.0


def erf_single(n: Numeric, x: Real) -> Real:
    """The error function in f32: a polynomial near 0, beyond it by the fourth root of what it lacks of 1, which is a
    polynomial, too: without an exponential."""
    a = abs(x)
    near = n.poly("ERF_NEAR", x * x)
    if n.fused:
        near = n.fma(a, near, a)
    else:  # a subnormal product by itself is zero on some devices
        near = n.where(a < ERF_LINEAR, a * (2 / math.sqrt(math.pi)), a + a * near)
    root = n.poly("ERFC_ROOT", n.minimum(a, ERF_TOP) - 1.0)
    square = root * root
    far = n.fma(-square, square, 1.0)
    return n.where(a >= ERF_FAR, far, near).with_sign_of(x)  # NaN is near


def _poly(n: Numeric, name: str, x: Real) -> Real:
    """A polynomial of RADII."""
    terms = POLYNOMIALS[name][64]
    if n.width == 32:
        least = 2.0**-26 * max(map(abs, terms))
        terms = terms[: 1 + max(k for k, term in enumerate(terms) if abs(term) * RADII[name] ** k > least)]
    return n.horner(x, terms)


def _erfcx_positive(n: Numeric, a: Real) -> Real:
    """exp(a^2) erfc(a) for a >= 0."""
    b = n.minimum(a, ERFCX_TOP)
    t = (b - 4.0) / (b + 4.0)
    near = _poly(n, "ERFCX", t) / (1.0 + 2.0 * b)
    far = n.maximum(a, ERFCX_TOP)
    u = 1.0 / far
    z = u * u
    tail = n.horner(z, (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125))
    return n.where(a > ERFCX_TOP, u * (1 / math.sqrt(math.pi)) * tail, near)


def _exp_minus_square(n: Numeric, a: Real, factor: float = 1.0) -> Real:
    """exp(-factor a^2), with the square kept exactly; ``factor`` is 1 or 1/2."""
    b = n.minimum(a, 40.0)
    square, error = n.two_product(b, b)
    return exp_of_sum(n, -factor * square, -factor * error)


def erfc(n: Numeric, x: Real) -> Real:
    """1 - erf(x)."""
    a = abs(x)
    small = 1.0 - (x + x * _poly(n, "ERF", x * x))
    # Beside 0 the sum cancels nothing: erf is at most 0.52 there.
    tail = _exp_minus_square(n, a) * _erfcx_positive(n, a)
    large = n.where(x < 0.0, 2.0 - tail, tail)
    value = n.where(a < 0.46875, small, large)
    return n.where(x.is_nan(), x, value)


def erf(n: Numeric, x: Real) -> Real:
    """The error function in f64."""
    a = abs(x)
    small = a + a * _poly(n, "ERF", x * x)
    value = n.where(a < 1.0, small, 1.0 - _exp_minus_square(n, a) * _erfcx_positive(n, a))
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def erfcx(n: Numeric, x: Real) -> Real:
    """exp(x^2) erfc(x)."""
    a = abs(x)
    positive = _erfcx_positive(n, a)
    b = n.minimum(a, 40.0)
    square, error = n.two_product(b, b)
    growth = exp_of_sum(n, square, error)
    value = n.where(x < 0.0, 2.0 * growth - positive, positive)
    return n.where(x.is_nan(), x, value)


def normcdf(n: Numeric, x: Real) -> Real:
    """The cumulative distribution of the standard normal."""
    a = abs(x)
    b = a * math.sqrt(0.5)
    tail = 0.5 * _exp_minus_square(n, a, 0.5) * _erfcx_positive(n, b)
    value = n.where(x < 0.0, tail, 1.0 - tail)
    return n.where(x.is_nan(), x, value)


def _normal_quantile_tail(n: Numeric, p: Real) -> Real:
    """z > 0 whose upper tail probability erfc(z) is ``p``, for 0 < p <= 1."""
    # Winitzki's closed form, off by less than 1%, then Newton steps on log(erfc), which is nearly quadratic.
    w = log(n, p * (2.0 - p))
    c = 2.0 / (math.pi * 0.147)
    half = c + 0.5 * w
    z = ((half * half - w * (1.0 / 0.147)).sqrt() - half).sqrt()
    z = n.where(z.is_nan(), 0.0, z)
    target = log(n, p)
    for _ in range(4):
        scaled = _erfcx_positive(n, z)
        difference = (log(n, scaled) - z * z) - target
        # d log(erfc) / dz = -2/sqrt(pi) / erfcx(z); Halley's term for the second derivative.
        slope = (-2.0 / math.sqrt(math.pi)) / scaled
        step = difference / slope
        curvature = -(slope + 2.0 * z)
        z = z - step / (1.0 - 0.5 * step * curvature * -1.0)
        z = n.where(z < 0.0, 0.0, z)
    return z


def erfinv(n: Numeric, x: Real) -> Real:
    """The inverse of erf; NaN past 1."""
    a = abs(x)
    tail = _normal_quantile_tail(n, n.maximum(1.0 - a, 2.0**-60))
    # Beside 0: Newton's step on erf itself from the series' first terms.
    y = a * (math.sqrt(math.pi) / 2)
    z = y * y
    y = y * n.horner(z, (1.0, 1 / 3, 7 / 30, 127 / 630, 4369 / 22680))
    for _ in range(2):
        difference = (erf_single if n.width == 32 else erf)(n, y) - a
        step = difference / ((2.0 / math.sqrt(math.pi)) * exp(n, -(y * y)))
        y = y - step / (1.0 + y * step)
    value = n.where(a < 0.5, y, tail)
    value = n.where(a.eq(1.0), float("inf"), n.where(a > 1.0, float("nan"), value))
    # Past the precision of both formats; Newton's steps go wrong where a device flushes the difference.
    value = n.where(a < 2.0**-60, a * (math.sqrt(math.pi) / 2), value)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def erfcinv(n: Numeric, x: Real) -> Real:
    """The inverse of erfc, from 0 to 2."""
    upper = x > 1.0
    p = n.where(upper, 2.0 - x, x)
    tail = _normal_quantile_tail(n, n.maximum(p, LEAST[n.width]))
    inner = erfinv(n, 1.0 - x)
    value = n.where(upper, -tail, tail)
    value = n.where(abs(1.0 - x) < 0.5, inner, value)
    value = n.where(x.eq(0.0), float("inf"), n.where(x.eq(2.0), float("-inf"), value))
    return n.where((x < 0.0) | (x > 2.0), float("nan"), n.where(x.is_nan(), x, value))


def normcdfinv(n: Numeric, x: Real) -> Real:
    """The quantile of the standard normal."""
    return erfcinv(n, 2.0 * x) * -math.sqrt(2.0)


# -- gamma -------------------------------------------------------------------------------------------------------
def _shift_to_two(n: Numeric, x: Real) -> tuple[Real, Real]:
    """``(z, product)``: gamma(x) = gamma(2 + z) product, for x from 0.5 to 8.5 up, z within 1/2."""
    product = n.real(1.0)
    y = x
    for _ in range(6):
        large = y > 2.5
        y = n.where(large, y - 1.0, y)
        product = n.where(large, product * y, product)
    small = y < 1.5
    product = n.where(small, product / y, product)
    return n.where(small, y + 1.0, y) - 2.0, product


def _stirling(n: Numeric, x: Real) -> Real:
    """log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2 for x >= 8."""
    u = 1.0 / x
    return u * _poly(n, "STIRLING", u * u)


def lgamma(n: Numeric, x: Real) -> Real:
    """log|gamma(x)|."""
    a = abs(x)
    tiny = a < TINY
    # log(gamma(2 + z)) is z P(z): z is a - 1 and a where gamma is divided by 1 + z, and by (1 + z) z.
    below, middle = a < 0.5, a < 1.5
    shifted, product = _shift_to_two(n, n.minimum(n.maximum(a, 1.5), 8.0))
    z = n.where(below, a, n.where(middle, a - 1.0, shifted))
    factor = log1p(n, n.where(middle, z, product - 1.0))
    log_a = log(n, a)
    near = z * _poly(n, "LGAMMA2", z)
    near = n.where(middle, near - factor, near + factor)
    near = n.where(below, near - log_a, near)
    large = n.maximum(a, 8.0)
    far = (large - 0.5) * (log_a - 1.0) + (0.5 * (math.log(2 * math.pi) - 1.0) + _stirling(n, large))
    positive = n.where(a > 8.0, far, near)
    positive = n.where(tiny, -log_a, positive)
    # Reflection: |gamma(-a)| = pi / (a |sin(pi a)| gamma(a)).
    s = abs(sinpi(n, a)) * a
    negative = math.log(math.pi) - log(n, s) - positive
    value = n.where((x < 0.0) & ~tiny, negative, positive)
    pole = (x <= 0.0) & x.eq(x.floor())
    value = n.where(pole | a.is_inf(), float("inf"), value)
    return n.where(x.is_nan(), x, value)


def tgamma(n: Numeric, x: Real) -> Real:
    """gamma(x)."""
    from .powers import power

    a = abs(x)
    below = a < 0.5
    b = n.where(below, a + 1.0, a)
    z, product = _shift_to_two(n, n.minimum(b, 8.0))
    near = _poly(n, "GAMMA2", z) * product
    largest, least = GAMMA_RANGE[n.width]
    large = n.minimum(n.maximum(a, 8.0), 200.0 if n.width == 64 else -least)
    root = power(n, large, 0.5 * large - 0.25)
    part = root * (exp(n, -large) * (math.sqrt(2 * math.pi) * exp(n, _stirling(n, large))))
    far = root * part  # two halves of the power keep it in range up to gamma(171.6)
    positive = n.where(a > 8.0, far, near)
    positive = n.where(below, positive / a, positive)
    s = sinpi(n, a) * a
    reflected = -math.pi / (s * positive)
    if n.width == 32:  # gamma(a) overflows before the quotient is 0
        reflected = n.where(a > 8.0, -math.pi / (s * part) / root, reflected)
    value = n.where(x < 0.0, reflected, positive)
    value = n.where(a.eq(0.0), n.real(float("inf")).with_sign_of(x), value)
    value = n.where((x < 0.0) & x.eq(x.floor()), float("nan"), value)
    value = n.where(x > largest, float("inf"), value)
    value = n.where((x < least) & x.ne(x.floor()), 0.0, value)
    return n.where(x.is_nan(), x, value)


#: Functions that are computed in f32 where there is no f64.
IN_SINGLE = (erfc, erfcx, erfinv, erfcinv, normcdf, normcdfinv, lgamma, tgamma)


# -- Bessel functions --------------------------------------------------------------------------------------------
def _near(n: Numeric, name: str, a: Real) -> Real:
    b = n.minimum(a, 8.0)
    return n.poly(name, b * b * (1 / 32) - 1.0)


def _hankel(n: Numeric, order: int, a: Real, second: bool) -> Real:
    """J (or Y, ``second``) of a >= 8: sqrt(2/(pi a)) (P cos(w) - Q sin(w)), w = a - (2 order + 1) pi/4."""
    b = n.maximum(a, 8.0)
    u = 8.0 / b
    p, q = n.poly(f"J{order}_P", u * u), u * n.poly(f"J{order}_Q", u * u)
    s, c = sin(n, b), cos(n, b)
    # sqrt(2) cos(w) and sqrt(2) sin(w) by the addition theorems.
    cos_w, sin_w = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    value = p * sin_w + q * cos_w if second else p * cos_w - q * sin_w
    value = value / (b * math.pi).sqrt()
    return n.where(a.is_inf(), 0.0, value)


def j0(n: Numeric, x: Real) -> Real:
    """Bessel function of the first kind, order 0."""
    a = abs(x)
    value = n.where(a < 8.0, _near(n, "J0", a), _hankel(n, 0, a, second=False))
    return n.where(x.is_nan(), x, value)


def j1(n: Numeric, x: Real) -> Real:
    """Bessel function of the first kind, order 1."""
    a = abs(x)
    value = n.where(a < 8.0, a * _near(n, "J1", a), _hankel(n, 1, a, second=False))
    value = (value.bits() ^ (x.bits() & (1 << 63))).as_real()
    return n.where(x.is_nan(), x, value)


def _second_kind(n: Numeric, x: Real, value: Real) -> Real:
    value = n.where(x.eq(0.0), float("-inf"), value)
    return n.where(x < 0.0, float("nan"), n.where(x.is_nan(), x, value))


def y0(n: Numeric, x: Real) -> Real:
    """Bessel function of the second kind, order 0."""
    near = _near(n, "Y0", x) + (2 / math.pi) * log(n, x) * _near(n, "J0", x)
    return _second_kind(n, x, n.where(x < 8.0, near, _hankel(n, 0, x, second=True)))


def y1(n: Numeric, x: Real) -> Real:
    """Bessel function of the second kind, order 1."""
    near = x * _near(n, "Y1", x) + (2 / math.pi) * (log(n, x) * (x * _near(n, "J1", x)) - 1.0 / x)
    return _second_kind(n, x, n.where(x < 8.0, near, _hankel(n, 1, x, second=True)))


def _modified(n: Numeric, order: int, a: Real) -> Real:
    b = n.minimum(a, 8.0)
    near = _near(n, f"I{order}", a) * exp(n, b * b * (1 / 16))
    large = n.maximum(a, 8.0)
    # e^a is split in two, because it overflows before I does.
    half = exp(n, 0.5 * n.minimum(large, 800.0))
    far = half * (half * (n.poly(f"I{order}_LARGE", 16.0 / large - 1.0) / large.sqrt()))
    far = n.where(a > 720.0, float("inf"), far)
    return n.where(a < 8.0, near * a if order else near, far)


def cyl_bessel_i0(n: Numeric, x: Real) -> Real:
    """Modified Bessel function of the first kind, order 0."""
    return n.where(x.is_nan(), x, _modified(n, 0, abs(x)))


def cyl_bessel_i1(n: Numeric, x: Real) -> Real:
    """Modified Bessel function of the first kind, order 1."""
    return n.where(x.is_nan(), x, _modified(n, 1, abs(x)).with_sign_of(x))


def yn(n: Numeric, order: Int, x: Real) -> Real:
    """Bessel function of the second kind of integer order, by the upward recurrence."""
    f, module = n.f, n.module
    count = n.where(order.slt(0), 0 - order, order)
    first, second = y0(n, x), y1(n, x)

    def body(carried: list[int]) -> list[int]:
        k, low, high = Int(n, carried[0]), Real(n, carried[1]), Real(n, carried[2])
        following = (k + k).real() / x * high - low
        # Once infinite it stays so.
        following = n.where(high.eq(float("-inf")), high, following)
        return [(k + 1).id, high.id, following.id]

    _, _, result = f.loop(
        [module.uint(1), first.id, second.id], lambda carried: f.compare(op.SLessThan, carried[0], count.id), body
    )
    value = n.where(count.eq(0), first, Real(n, result))
    value = n.where(x.eq(float("inf")), 0.0, value)
    odd = order.slt(0) & (order & 1).ne(0)
    return n.where(odd, -value, value)


def jn(n: Numeric, order: Int, x: Real) -> Real:
    """Bessel function of the first kind of integer order: the upward recurrence where the order is below |x|, else the
    downward one (Miller), scaled by J0 or J1, whichever is larger."""
    f, module = n.f, n.module
    count = n.where(order.slt(0), 0 - order, order)
    a = abs(x)
    first, second = j0(n, a), j1(n, a)
    safe = n.maximum(n.where(a.is_finite(), a, 1.0), 1e-300)
    upward = count.real() < safe
    limit = n.where(upward, count, 0)

    def up(carried: list[int]) -> list[int]:
        k, low, high = Int(n, carried[0]), Real(n, carried[1]), Real(n, carried[2])
        return [(k + 1).id, high.id, ((k + k).real() / safe * high - low).id]

    _, _, above = f.loop(
        [module.uint(1), first.id, second.id], lambda carried: f.compare(op.SLessThan, carried[0], limit.id), up
    )
    # Start far enough above the order that the arbitrary start has died away.
    margin = (count.real() * 40.0).sqrt().to_int(32) + 30
    start = n.where(upward, 0, ((count + margin) >> 1) << 1)
    zero, one = n.real(0.0), n.real(1e-300)

    def down(carried: list[int]) -> list[int]:
        k, high, current, kept = Int(n, carried[0]), *(Real(n, value) for value in carried[1:])
        lower = (k + k).real() / safe * current - high
        large = abs(lower) > 1e200
        factor = n.where(large, n.real(1e-200), 1.0)
        kept = n.where((k - 1).eq(count), lower, kept) * factor
        return [(k - 1).id, (current * factor).id, (lower * factor).id, kept.id]

    _, one_value, zero_value, kept = f.loop(
        [start.id, zero.id, one.id, zero.id],
        lambda carried: f.compare(op.SGreaterThan, carried[0], module.uint(0)),
        down,
    )
    below_one, below_zero = Real(n, one_value), Real(n, zero_value)
    by_zero = abs(first) > abs(second)
    below = Real(n, kept) * (n.where(by_zero, first, second) / n.where(by_zero, below_zero, below_one))
    below = n.where((a < 1e-290), 0.0, below)
    value = n.where(upward, Real(n, above), below)
    value = n.where(count.eq(0), first, n.where(count.eq(1), second, value))
    value = n.where(a.is_inf(), 0.0, value)
    odd = (order & 1).ne(0) & (order.slt(0) ^ x.negative())
    value = n.where(odd, -value, value)
    return n.where(x.is_nan(), x, value)
