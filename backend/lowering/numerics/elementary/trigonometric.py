"""Trigonometric functions and their inverses."""

from __future__ import annotations

from fractions import Fraction

from ....spirv.opcodes import StorageClass
from ..coefficients import TWO_OVER_PI
from ..numeric import ROUNDER, Int, Numeric, Real, split_constant, wide_product

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211")

#: pi/2 in parts whose products with the quadrant are exact, and the largest argument for which they are.
HALF_PI_PARTS = {32: split_constant(PI / 2, 11, 4), 64: split_constant(PI / 2, 33, 3)}
CODY_WAITE_LIMIT = {32: 12000.0, 64: 1.5e6}


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
    return [
        (a << shift) | n.where(shift.eq(0), 0, b >> ((word_bits - shift) & (word_bits - 1)))
        for a, b in zip(loaded, loaded[1:], strict=False)
    ]


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
    pieces = [
        (first >> 32).real() * 2.0**-30,
        (first & mask).real() * 2.0**-62,
        (second >> 32).real() * 2.0**-94,
        (second & mask).real() * 2.0**-126,
    ]
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
    shift = n.where(
        large > 2.0 ** (n.bias - 3),
        n.real(2.0 ** -(n.mantissa + 3)),
        n.where(large < 2.0 ** -(n.bias - n.mantissa - 4), n.real(2.0 ** (n.mantissa + 3)), 1.0),
    )
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
    # base = high * octants + low * octants; the products with 0 to 4 are exact except for 3.
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
