"""Elementary functions in f32 and f64, from range reduction and polynomials of coefficients.py.

GLSL.std.450 has no transcendental function in f64, and its f32 ones are loose: 535,000 ULP for log2 beside 1 and 63 ULP
for exp on Mesa's CPU driver; an absolute error of 2^-11 is allowed for sin. These are the same on every device. Their
error bounds are in docs/math.md, and tests/device/math holds them to those.
"""
from __future__ import annotations

from fractions import Fraction

from ...spirv import opcodes as op
from ...spirv.opcodes import StorageClass
from .coefficients import TWO_OVER_PI
from .numeric import Int, Numeric, Real, split_constant, wide_product
from .precise import near_quotient, near_root

LN2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")
LOG2_10 = Fraction("3.32192809488736234787031942948939017586483139302458061205476")
LOG2_E = Fraction("1.44269504088896340735992468100189213742664595415298593413545")
LOG10_E = Fraction("0.43429448190325182765112891891660508229439700580366656611445")
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211")

#: Arguments of exp, exp2 and exp10 are clamped to this range of log2 of the result: past it, it is 0 or infinity.
EXPONENT_RANGE = {32: (-151.0, 130.0), 64: (-1077.0, 1026.0)}

#: A number whose float sum with a small one rounds that to an integer, held in the low bits (1.5 * 2^mantissa).
ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}

LN2_PARTS = {32: split_constant(LN2, 14, 1), 64: split_constant(LN2, 40, 1)}
LOG10_2_PARTS = {32: split_constant(1 / LOG2_10, 14, 1), 64: split_constant(1 / LOG2_10, 40, 1)}
#: pi/2 in parts whose products with the quadrant are exact, and the largest argument for which they are.
HALF_PI_PARTS = {32: split_constant(PI / 2, 11, 4), 64: split_constant(PI / 2, 33, 3)}
CODY_WAITE_LIMIT = {32: 12000.0, 64: 1.5e6}


# -- exponentials ------------------------------------------------------------------------------------------------
def _exponential(n: Numeric, x: Real, per_x: Fraction, parts: tuple[float, ...], name: str) -> tuple[Int, Real]:
    """``(k, m)`` with base^x = 2^k (1 + m): ``per_x`` is log2 of the base, ``parts`` its inverse."""
    low, high = EXPONENT_RANGE[n.width]
    x = n.minimum(n.maximum(x, float(Fraction(low) / per_x)), float(Fraction(high) / per_x))
    shifted = n.fma(x, float(per_x), ROUNDER[n.width])
    count = shifted - ROUNDER[n.width]
    k = shifted.bits() - n.real(ROUNDER[n.width]).bits()
    r = x - count if parts == (1.0,) else (x - count * parts[0]) - count * parts[1]
    if name == "EXPM1":
        return k, n.fma(r * r, n.poly(name, r), r)
    return k, r * n.poly(name, r)


def exp(n: Numeric, x: Real) -> Real:
    """e^x."""
    k, m = _exponential(n, x, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + m, k)


def exp2(n: Numeric, x: Real) -> Real:
    """2^x."""
    k, m = _exponential(n, x, Fraction(1), (1.0,), "EXP2M1")
    return n.scale(1.0 + m, k)


def exp10(n: Numeric, x: Real) -> Real:
    """10^x."""
    k, m = _exponential(n, x, LOG2_10, LOG10_2_PARTS[n.width], "EXP10M1")
    return n.scale(1.0 + m, k)


def expm1(n: Numeric, x: Real) -> Real:
    """e^x - 1, without cancellation beside 0."""
    k, m = _exponential(n, x, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    one_less = n.where(k.sgt(n.bias - 1), n.bias - 1, k)
    power = n.pow2(n.where(one_less.slt(-n.mantissa - 9), -n.mantissa - 9, one_less))
    near = power * m + (power - 1.0)
    near = n.where(k.sgt(n.mantissa + 2), n.scale(1.0 + m, k), near)
    return n.where(abs(x) < 2.0 ** (-n.mantissa - 2), x, near)


def exp_of_sum(n: Numeric, high: Real, low: Real) -> Real:
    """e^(high + low) for a small ``low``."""
    k, m = _exponential(n, high, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + (m + low * (1.0 + m)), k)


# -- logarithms --------------------------------------------------------------------------------------------------
def _decompose(n: Numeric, x: Real) -> tuple[Int, Real]:
    """``(k, m)`` with x = 2^k m, m from sqrt(1/2) to sqrt(2), for positive finite x."""
    tiny = x < 2.0 ** (1 - n.bias)
    lift = n.mantissa + 2
    bits = n.where(tiny, x * 2.0**lift, x).bits()
    half_sqrt = n.real(0.70710678118654752).bits()
    offset = bits - half_sqrt
    k = offset.sar(n.mantissa)
    m = ((offset & ((1 << n.mantissa) - 1)) + half_sqrt).as_real()
    return n.where(tiny, k - lift, k), m


def _log1p_tail(n: Numeric, f: Real, h: Real) -> Real:
    """log(1 + f) - f + h with h = f^2/2, for f from sqrt(1/2) - 1 to sqrt(2) - 1."""
    if n.width == 32:
        return f * (f * f) * n.poly("LOG_F", f)
    s = f / (2.0 + f)
    z = s * s
    return s * (h + z * n.poly("LOG_S", z))


def _log_parts(n: Numeric, x: Real) -> tuple[Real, Real, Real]:
    """``(k, high, low)`` with log(x) = k ln2 + high + low; ``high`` has half the bits of a float."""
    k, m = _decompose(n, x)
    f = m - 1.0
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    keep = -1 << (n.mantissa + 1) // 2
    high = ((f - h).bits() & keep).as_real()
    return k.real(), high, ((f - high) - h) + tail


def _log_specials(n: Numeric, x: Real, result: Real) -> Real:
    """The logarithm of numbers that are not positive and finite."""
    result = n.where(x.magnitude().ult(n.infinity_bits), result, abs(x))
    result = n.where(x.eq(0.0), float("-inf"), result)
    return n.where(x < 0.0, float("nan"), result)


def log(n: Numeric, x: Real) -> Real:
    """Natural logarithm."""
    k, m = _decompose(n, x)
    f = m - 1.0
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    high, low = LN2_PARTS[n.width]
    count = k.real()
    return _log_specials(n, x, count * high + (f - (h - (tail + count * low))))


def _log_base(n: Numeric, x: Real, per_log: Fraction, per_k: tuple[float, ...]) -> Real:
    """The logarithm to the base whose log_base(e) is ``per_log`` and log_base(2) is the sum of ``per_k``."""
    k, high, low = _log_parts(n, x)
    c_high, c_low = split_constant(per_log, (n.mantissa + 1) // 2, 1)
    rest = low * float(per_log) + high * c_low
    leading = high * c_high
    if len(per_k) == 2:
        rest = rest + k * per_k[1]
    total, error = n.quick_two_sum(k * per_k[0], leading)
    # Where k is 0 the sum is the leading product itself and the error 0.
    return _log_specials(n, x, total + (rest + error))


def log2(n: Numeric, x: Real) -> Real:
    """Binary logarithm."""
    return _log_base(n, x, LOG2_E, (1.0,))


def log10(n: Numeric, x: Real) -> Real:
    """Decimal logarithm."""
    return _log_base(n, x, LOG10_E, LOG10_2_PARTS[n.width])


def log1p(n: Numeric, x: Real) -> Real:
    """log(1 + x), without cancellation beside 0."""
    # What rounding lost of 1 + x, as a part of it: log(u + e) = log(u) + e/u.
    u, lost = n.two_sum(x, n.real(1.0))
    lost = n.where(abs(x) > 2.0 ** (n.mantissa + 2), 0.0, lost)
    k, m = _decompose(n, u)
    f = m - 1.0
    # The lost part moves into f, in units of 2^k; k is small enough wherever it counts.
    bounded = n.where(k.sgt(n.bias - 2), n.bias - 2, k)
    correction = lost * n.pow2(-bounded)
    h = 0.5 * f * f
    tail = _log1p_tail(n, f, h)
    high, low = LN2_PARTS[n.width]
    count = k.real()
    correction = correction * (1.0 / m)
    result = count * high + (f - (h - (tail + (count * low + correction))))
    result = _log_specials(n, u, result)
    return n.where(abs(x) < 2.0 ** (-n.mantissa - 1), x, result)


# -- trigonometry ------------------------------------------------------------------------------------------------
def _window(n: Numeric, word_bits: int, start: Int, count: int) -> list[Int]:
    """``count`` words of 2/pi, most significant first, from bit ``start`` of TWO_OVER_PI after one zero word."""
    total = 1248 // word_bits if word_bits == 64 else 12
    digits = TWO_OVER_PI >> (1248 - total * word_bits)
    words = [0] + [digits >> (word_bits * (total - 1 - i)) & ((1 << word_bits) - 1) for i in range(total)]
    module, f = n.module, n.f
    word_type = module.int(word_bits)
    table_type = module.array(word_type, len(words))
    table = f.variable(table_type, module.composite(table_type, [module.uint(word, word_bits) for word in words]))
    pointer = module.pointer(StorageClass.Function, word_type)
    index, shift = start >> (5 if word_bits == 32 else 6), (start & (word_bits - 1)).resize(word_bits)
    loaded = [Int(n, f.load(word_type, f.access(pointer, table, (index + i).id))) for i in range(count + 1)]
    return [(a << shift) | n.where(shift.eq(0), 0, b >> ((word_bits - shift) & (word_bits - 1)))
            for a, b in zip(loaded, loaded[1:], strict=False)]


def _payne_hanek(n: Numeric, x: Real) -> tuple[Int, Real, Real]:
    """Quadrant and remainder (high + low) of any finite |x| from the bits of 2/pi that count (Payne and Hanek)."""
    bits = x.magnitude()
    exponent = (bits >> n.mantissa).resize(32) - (n.bias + n.mantissa)
    significand = (bits & ((1 << n.mantissa) - 1)) | (1 << n.mantissa)
    word = n.width
    # Bits of 2/pi above 2^(1 - exponent) give multiples of 4 in the product, so the window starts there.
    window = _window(n, word, exponent - 2 + word, 3)
    half_pi = split_constant(PI / 2, n.mantissa + 1, 1)
    if n.width == 32:
        wide = [part.resize(64) for part in (significand, *window)]
        low = wide[0] * wide[3]
        middle = wide[0] * wide[2] + (low >> 32)
        product = ((wide[0] * wide[1] + (middle >> 32)) << 32) | (middle & 0xFFFFFFFF)
        quadrant = (product + (1 << 61)) >> 62
        rest = product - (quadrant << 62)
        sign = rest.sar(63)
        # Normalise before converting: the remainder of a large argument may be as small as 2^-30.
        magnitude = (rest ^ sign) - sign
        top = (magnitude >> 32).resize(32).real(signed=False) * 2.0**-30
        bottom = magnitude.resize(32).real(signed=False) * 2.0**-62
        value = top + bottom
        value = (value.bits() ^ (sign.resize(32) & 0x80000000)).as_real()
        return quadrant.resize(32), value * half_pi[0], value * half_pi[1]
    high0, _ = wide_product(significand, window[2])
    high1, low1 = wide_product(significand, window[1])
    second = low1 + high0
    carry = n.where(second.ult(low1), n.integer(1), 0)
    first = significand * window[0] + high1 + carry
    quadrant = (first + (1 << 61)) >> 62
    first = first - (quadrant << 62)
    sign = first.sar(63)
    # Two's complement negation of the pair, up to its last bit.
    first, second = first ^ sign, second ^ sign
    mask = 0xFFFFFFFF
    pieces = [(first >> 32).real() * 2.0**-30, (first & mask).real() * 2.0**-62, (second >> 32).real() * 2.0**-94,
              (second & mask).real() * 2.0**-126]
    small, smaller = n.quick_two_sum(pieces[2], pieces[3])
    total, error = n.two_sum(pieces[0], pieces[1])
    total, error2 = n.two_sum(total, small)
    total, error = n.quick_two_sum(total, error + (error2 + smaller))
    product_high, product_low = n.two_product(total, n.real(half_pi[0]))
    product_low = product_low + (total * half_pi[1] + error * half_pi[0])
    flip = sign & (1 << 63)
    return (quadrant.resize(32), (product_high.bits() ^ flip).as_real(), (product_low.bits() ^ flip).as_real())


def reduce_half_pi(n: Numeric, x: Real) -> tuple[Int, Real, Real]:
    """``(q, r, e)`` with x = q pi/2 + r + e, |r| at most pi/4 and a little; q is right modulo 4."""
    shifted = n.fma(x, float(2 / PI), ROUNDER[n.width])
    count = shifted - ROUNDER[n.width]
    parts = HALF_PI_PARTS[n.width]
    value = x
    for part in parts[:-2]:
        value = value - count * part
    # The last two products: what rounding loses is kept.
    product = count * parts[-2]
    r1, e1 = n.two_sum(value, -product)
    r, e = n.two_sum(r1, -(count * parts[-1]))
    e = e + e1
    quadrant = shifted.bits().resize(32)

    def large() -> list[Int | Real]:
        q, high, low = _payne_hanek(n, x)
        sign = x.bits() & (1 << (n.width - 1))
        q = n.where(x.negative(), -q, q)
        return [q, (high.bits() ^ sign).as_real(), (low.bits() ^ sign).as_real()]

    quadrant, r, e = n.branch((abs(x) > CODY_WAITE_LIMIT[n.width]) & x.is_finite(), large, [quadrant, r, e])
    return quadrant, r, e


def _sin_kernel(n: Numeric, r: Real, e: Real | None) -> Real:
    z = r * r
    tail = (r * z) * n.poly("SIN", z)
    if e is not None:
        tail = tail + (e - e * (0.5 * z))
    return r + tail


def _cos_kernel(n: Numeric, r: Real, e: Real | None) -> Real:
    z = r * r
    half = 0.5 * z
    leading = 1.0 - half
    lost = (1.0 - leading) - half
    tail = (z * z) * n.poly("COS", z)
    if e is not None:
        tail = tail - r * e
    return leading + (lost + tail)


def _sin_cos(n: Numeric, x: Real) -> tuple[Int, Real, Real]:
    q, r, e = reduce_half_pi(n, x)
    return q, _sin_kernel(n, r, e), _cos_kernel(n, r, e)


def _quadrant_value(n: Numeric, q: Int, s: Real, c: Real) -> Real:
    """sin of quadrant ``q``: s, c, -s or -c."""
    value = n.where((q & 1).ne(0), c, s)
    flip = (q & 2).resize(n.width) << (n.width - 2)
    return (value.bits() ^ flip).as_real()


def sin(n: Numeric, x: Real) -> Real:
    """Sine of any finite argument; NaN of an infinity."""
    q, s, c = _sin_cos(n, x)
    value = n.where(abs(x) < 2.0 ** -(n.mantissa // 2 + 1), x, _quadrant_value(n, q, s, c))
    return n.where(x.is_finite(), value, x - x)


def cos(n: Numeric, x: Real) -> Real:
    """Cosine of any finite argument; NaN of an infinity."""
    q, s, c = _sin_cos(n, x)
    return n.where(x.is_finite(), _quadrant_value(n, q + 1, s, c), x - x)


def tan(n: Numeric, x: Real) -> Real:
    """Tangent."""
    q, s, c = _sin_cos(n, x)
    odd = (q & 1).ne(0)
    value = n.where(odd, -c, s) / n.where(odd, s, c)
    value = n.where(abs(x) < 2.0 ** -(n.mantissa // 2 + 1), x, value)
    return n.where(x.is_finite(), value, x - x)


def _pi_multiple(n: Numeric, x: Real) -> tuple[Int, Real, Real]:
    """Quadrant and remainder of pi x."""
    count = (2.0 * x).rint()
    rest = x - 0.5 * count
    # Past 2^mantissa every number is an even integer, or close enough: the count modulo 4 is what counts.
    quarter = count - 4.0 * (0.25 * count).floor()
    high, low = split_constant(PI, n.mantissa + 1, 1)
    product, error = n.two_product(rest, n.real(high))
    return quarter.to_int(32), product, error + rest * low


def sinpi(n: Numeric, x: Real) -> Real:
    """sin(pi x)."""
    q, r, e = _pi_multiple(n, x)
    value = _quadrant_value(n, q, _sin_kernel(n, r, e), _cos_kernel(n, r, e))
    value = n.where(x.eq(x.trunc()), n.real(0.0).with_sign_of(x), value)
    value = n.where(abs(x) < 2.0 ** -(n.bias - n.mantissa - 4), x * float(PI), value)
    return n.where(x.is_finite(), value, x - x)


def cospi(n: Numeric, x: Real) -> Real:
    """cos(pi x)."""
    q, r, e = _pi_multiple(n, x)
    value = _quadrant_value(n, q + 1, _sin_kernel(n, r, e), _cos_kernel(n, r, e))
    value = n.where((x - 0.5).eq((x - 0.5).trunc()) & (abs(x) < 2.0**n.mantissa), 0.0, value)
    return n.where(x.is_finite(), value, x - x)


# -- inverse trigonometry ----------------------------------------------------------------------------------------
def atan(n: Numeric, x: Real) -> Real:
    """Arc tangent."""
    a = abs(x)
    big, middle = a > 2.414213562373095, a > 0.4142135623730950
    numerator = n.where(big, -1.0, n.where(middle, a - 1.0, a))
    denominator = n.where(big, a, n.where(middle, a + 1.0, 1.0))
    t = n.where(middle, numerator / denominator, a)
    z = t * t
    core = (t * z) * n.poly("ATAN", z)
    high, low = split_constant(PI / 4, n.mantissa + 1, 1)
    base = n.where(big, n.real(2 * high), n.where(middle, n.real(high), 0.0))
    base_low = n.where(big, n.real(2 * low), n.where(middle, n.real(low), 0.0))
    value = n.where(middle, base + (t + (core + base_low)), t + core)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def atan2(n: Numeric, y: Real, x: Real) -> Real:
    """The angle of the point (x, y), from -pi to pi."""
    ax, ay = abs(x), abs(y)
    swap = ay > ax
    large, small = n.where(swap, ay, ax), n.where(swap, ax, ay)
    both_infinite = y.is_inf() & x.is_inf()
    # Keep the quotient away from the ends of the exponent range; a power of two changes nothing else.
    shift = n.where(large > 2.0 ** (n.bias - 3), n.real(2.0 ** -(n.mantissa + 3)),
                    n.where(large < 2.0 ** -(n.bias - n.mantissa - 4), n.real(2.0 ** (n.mantissa + 3)), 1.0))
    ratio = (small * shift) / (large * shift)
    ratio = n.where(both_infinite, 1.0, n.where(large.is_inf(), 0.0, n.where(large.eq(0.0), 0.0, ratio)))
    middle = ratio > 0.4142135623730950
    t = n.where(middle, (ratio - 1.0) / (ratio + 1.0), ratio)
    z = t * t
    core = (t * z) * n.poly("ATAN", z)
    high, low = split_constant(PI / 4, n.mantissa + 1, 1)
    # Octants are added up in quarters of pi, exactly, before the arc tangent: angle = base + sign * atan(t).
    negate = swap ^ x.negative()
    octants = n.where(middle, n.real(1.0), 0.0)
    octants = n.where(swap, 2.0 - octants, octants)
    octants = n.where(x.negative(), 4.0 - octants, octants)
    # base = high * octants + low * octants; the products with 0 to 4 are exact but for 3.
    product, error = n.two_product(octants, n.real(high))
    signed_t = n.where(negate, -t, t)
    signed_core = n.where(negate, -core, core)
    value = product + (signed_t + (signed_core + (error + octants * low)))
    value = n.where(octants.eq(0.0), signed_t + signed_core, value).with_sign_of(y)
    return n.where(x.is_nan() | y.is_nan(), x + y, value)


def _asin_core(n: Numeric, t: Real) -> Real:
    z = t * t
    return (t * z) * n.poly("ASIN", z)


def _half_root(n: Numeric, a: Real) -> tuple[Real, Real]:
    """sqrt((1 - a)/2) as high + low."""
    w = 0.5 * (1.0 - a)
    root = w.sqrt()
    product, error = n.two_product(root, root)
    low = ((w - product) - error) / (2.0 * root)
    return root, n.where(root > 0.0, low, 0.0)


def asin(n: Numeric, x: Real) -> Real:
    """Arc sine; NaN past 1."""
    a = abs(x)
    root, low = _half_root(n, a)
    large = a > 0.5
    t = n.where(large, root, a)
    core = _asin_core(n, t)
    high, rest = split_constant(PI / 2, n.mantissa + 1, 1)
    value = n.where(large, high - (2.0 * root - (rest - 2.0 * (core + low))), t + core)
    return n.where(a > 1.0, float("nan"), n.where(x.is_nan(), x, value.with_sign_of(x)))


def acos(n: Numeric, x: Real) -> Real:
    """Arc cosine; NaN past 1."""
    a = abs(x)
    root, low = _half_root(n, a)
    large = a > 0.5
    t = n.where(large, root, x)
    core = _asin_core(n, t)
    high, rest = split_constant(PI / 2, n.mantissa + 1, 1)
    positive = 2.0 * (root + (core + low))
    negative = 2.0 * high - (2.0 * root - (2.0 * rest - 2.0 * (core + low)))
    value = n.where(large, n.where(x < 0.0, negative, positive), high - (x - (rest - core)))
    return n.where(a > 1.0, float("nan"), n.where(x.is_nan(), x, value))


# -- hyperbolic functions ----------------------------------------------------------------------------------------
def _half_exp(n: Numeric, a: Real) -> Real:
    """e^a / 2, which overflows no sooner than it must."""
    k, m = _exponential(n, a, LOG2_E, LN2_PARTS[n.width], "EXPM1")
    return n.scale(1.0 + m, k - 1)


def sinh(n: Numeric, x: Real) -> Real:
    """Hyperbolic sine."""
    a = abs(x)
    half = _half_exp(n, a)
    z = x * x
    value = n.where(a < 1.0, a + (a * z) * n.poly("SINH", z), half - 0.25 / half)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def cosh(n: Numeric, x: Real) -> Real:
    """Hyperbolic cosine."""
    half = _half_exp(n, abs(x))
    return half + 0.25 / half


def tanh(n: Numeric, x: Real) -> Real:
    """Hyperbolic tangent."""
    a = abs(x)
    half = _half_exp(n, 2.0 * n.minimum(a, 22.0))
    z = x * x
    value = n.where(a < 0.625, a + (a * z) * n.poly("TANH", z), 1.0 - 1.0 / (half + 0.5))
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def asinh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic sine."""
    a = abs(x)
    huge = a > 2.0 ** (n.mantissa // 2 + 2)
    b = n.minimum(a, 2.0 ** (n.mantissa // 2 + 2))
    square = b * b
    near = log1p(n, b + square / (1.0 + (1.0 + square).sqrt()))
    far = log(n, a) + float(LN2)
    value = n.where(huge, far, near)
    value = n.where(a < 2.0 ** -(n.mantissa // 2 + 2), a, value)
    return n.where(x.is_nan(), x, value.with_sign_of(x))


def acosh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic cosine; NaN below 1."""
    huge = x > 2.0 ** (n.mantissa // 2 + 2)
    t = n.minimum(x, 2.0 ** (n.mantissa // 2 + 2)) - 1.0
    near = log1p(n, t + (2.0 * t + t * t).sqrt())
    value = n.where(huge, log(n, x) + float(LN2), near)
    return n.where(x < 1.0, float("nan"), value)


def atanh(n: Numeric, x: Real) -> Real:
    """Inverse hyperbolic tangent; NaN past 1."""
    a = abs(x)
    value = 0.5 * log1p(n, (2.0 * a) / (1.0 - a))
    value = n.where(a < 2.0 ** -(n.mantissa // 2 + 2), a, value)
    return n.where(a > 1.0, float("nan"), n.where(x.is_nan(), x, value.with_sign_of(x)))


# -- roots and norms ---------------------------------------------------------------------------------------------
def sqrt(n: Numeric, x: Real) -> Real:
    """The device's own square root."""
    return x.sqrt()


def rsqrt(n: Numeric, x: Real) -> Real:
    """1/sqrt(x)."""
    if n.width == 32:
        return x.inverse_sqrt()
    return 1.0 / x.sqrt()


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

