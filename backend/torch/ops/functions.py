"""Functions that generated kernels call, which Triton's language and libdevice lack or define differently than torch.

``x`` is a tensor of the type that is computed in: float32, float64 or an integer type.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def truth(x):
    """Whether x is not 0, as bool."""
    return x != 0 if x.dtype != tl.int1 else x


@triton.jit
def whole(x):
    """x without its fraction, as int64; a bool as it is."""
    return x.to(tl.int64)


@triton.jit
def maximum(a, b):
    """The greater of two, or NaN where either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller of two, or NaN where either is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def is_infinite(x):
    """Whether x is an infinity."""
    return tl.abs(x) == float("inf")


@triton.jit
def sign(x):
    """-1, 0 or 1; 0 for NaN."""
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


@triton.jit
def divided(x, y):
    """x / y for a y that is 1 or more, of floats within 2 ULP."""
    return x / y if y.dtype == tl.float64 else libdevice.fast_dividef(x, y)


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return divided(1.0, 1 + tl.exp(-x))


@triton.jit
def gated(x, gate):
    """x sigmoid(gate), also where the sigmoid is subnormal."""
    return divided(x, 1 + tl.exp(-gate))


@triton.jit
def tanh(x):
    """The hyperbolic tangent, of floats by the device's own exponential."""
    return libdevice.tanh(x) if x.dtype == tl.float64 else libdevice.fast_tanhf(x)


@triton.jit
def falling(x):
    """1 / (1 + exp(x)), also where it is far below 1."""
    z = tl.exp(-tl.abs(x))
    return divided(tl.where(x < 0, 1.0, z), 1 + z)


@triton.jit
def mish_slope(x):
    """The derivative of x tanh(log(1 + exp(x)))."""
    t = tanh(libdevice.log1p(libdevice.exp(x)))
    return t + gated(x, x) * (1 - t * t)


@triton.jit
def next_half(a, b, infinity):
    """The next number after a towards b, of 16-bit floats that are given as their bits; ``infinity``: its bits."""
    up, down = a & 0x7FFF, b & 0x7FFF
    rising = tl.where(b < 0, -down, down) > tl.where(a < 0, -up, up)
    moved = tl.where(up == 0, tl.where(b < 0, b * 0 - 0x7FFF, b * 0 + 1), tl.where(rising == (a >= 0), a + 1, a - 1))
    same = (a == b) | ((up == 0) & (down == 0))
    return tl.where(up > infinity, a, tl.where(down > infinity, b, tl.where(same, b, moved)))


@triton.jit
def div(a, b):
    """Division, rounded to nearest."""
    return tl.div_rn(a, b) if a.dtype == tl.float32 else a / b


@triton.jit
def reciprocal(x):
    """1 / x, rounded to nearest."""
    return div(tl.where(x == x, 1.0, 1.0).to(x.dtype), x)


@triton.jit
def remainder(a, b):
    """a modulo b with the sign of b, as Python's %."""
    if a.dtype.is_floating():
        r = libdevice.fmod(a, b)
        return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)
    else:
        r = a % b
        return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r) if a.dtype.is_int_signed() else r


@triton.jit
def floor_div(a, b):
    """a divided by b, rounded down."""
    if a.dtype.is_floating():
        r = libdevice.fmod(a, b)
        q = div(a - r, b)
        q = tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1, q)
        f = libdevice.floor(q)
        f = tl.where(q - f > 0.5, f + 1, f)
        f = tl.where(q == 0, libdevice.copysign(q * 0, div(a, b)), f)
        return tl.where(b == 0, div(a, b), f)
    else:
        q = a // b
        return tl.where((a % b != 0) & ((a < 0) != (b < 0)), q - 1, q) if a.dtype.is_int_signed() else q


@triton.jit
def trunc_div(a, b):
    """a divided by b, rounded towards 0."""
    return libdevice.trunc(div(a, b)) if a.dtype.is_floating() else a // b


@triton.jit
def int_pow(a, b):
    """a to the power b of integers, which wraps; 0 to a negative power, and 1 and -1 to any, are torch's."""
    result = a * 0 + b * 0 + 1  # of the shape that both have together, as the loop carries it
    base = a + b * 0
    left = a * 0 + tl.where(b > 0, b, b * 0)
    for _ in range(8 * (a.dtype.primitive_bitwidth // 8)):
        result = tl.where((left & 1) != 0, result * base, result)
        base = base * base
        left = left >> 1
    if a.dtype.is_int_signed():
        odd = (b & 1) != 0
        negative = tl.where(a == 1, a, tl.where(a == -1, tl.where(odd, a, a * 0 + 1), a * 0))
        result = tl.where(b < 0, negative, result)
    return result


@triton.jit
def gcd(a, b):
    """The greatest common divisor of two integers, by Euclid's algorithm; that of 0 and 0 is 0."""
    x, y = tl.abs(a + b * 0), tl.abs(b + a * 0)
    while tl.max((y != 0).to(tl.int32)) > 0:
        rest = tl.where(y != 0, x % tl.where(y != 0, y, y * 0 + 1), x)
        x, y = tl.where(y != 0, y, x), tl.where(y != 0, rest, y)
    return x


@triton.jit
def lcm(a, b):
    """The least common multiple of two integers; 0 where one is 0."""
    divisor = gcd(a, b)
    return tl.abs(a // tl.where(divisor != 0, divisor, divisor * 0 + 1) * b)


@triton.jit
def log_sigmoid(x):
    """log(sigmoid(x)) without overflow."""
    return tl.where(x < 0, x, 0.0) - libdevice.log1p(libdevice.exp(-tl.abs(x)))


@triton.jit
def softplus(x, beta, threshold):
    """log(1 + exp(beta x)) / beta, and x where beta x is over the threshold."""
    scaled = x * beta
    return tl.where(scaled > threshold, x, libdevice.log1p(libdevice.exp(scaled)) / beta)


@triton.jit
def tanh_gelu_inner(x):
    """sqrt(2 / pi) (x + 0.044715 x³)."""
    return 0.7978845608028654 * (x + 0.044715 * x * x * x)


@triton.jit
def log_add_exp(a, b):
    """log(exp(a) + exp(b)); of two equal infinities that infinity."""
    high, low = maximum(a, b), minimum(a, b)
    total = high + libdevice.log1p(libdevice.exp(low - high))
    return tl.where((a == b) & is_infinite(a), a, total)


@triton.jit
def log_add_exp2(a, b):
    """log2(2^a + 2^b); of two equal infinities that infinity."""
    high, low = maximum(a, b), minimum(a, b)
    total = high + libdevice.log1p(libdevice.exp2(low - high)) * 1.4426950408889634
    return tl.where((a == b) & is_infinite(a), a, total)


@triton.jit
def xlogy(a, b):
    """a log(b): 0 where a is 0, NaN where b is."""
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log(b)))


@triton.jit
def xlog1py(a, b):
    """a log(1 + b): 0 where a is 0, NaN where b is."""
    return tl.where(b != b, b, tl.where(a == 0, 0.0, a * libdevice.log1p(b)))


@triton.jit
def entropy(x):
    """-x log(x): 0 at 0, -inf below, NaN of NaN."""
    return tl.where(x != x, x, tl.where(x > 0, -x * libdevice.log(x), tl.where(x == 0, 0.0, float("-inf"))))


@triton.jit
def shift_left(a, b):
    """a << b; 0 for counts that are negative or past the width."""
    fits = (b >= 0) & (b < a.dtype.primitive_bitwidth)
    return tl.where(fits, a << tl.where(fits, b, b * 0), a * 0)


@triton.jit
def shift_right(a, b):
    """a >> b; a's sign, or 0 of what has none, for counts that are negative or past the width."""
    if a.dtype.is_int_signed():
        last = a.dtype.primitive_bitwidth - 1
        result = a >> tl.where((b >= 0) & (b < last), b, b * 0 + last)
    else:
        fits = b < a.dtype.primitive_bitwidth
        result = tl.where(fits, a >> tl.where(fits, b, b * 0), a * 0)
    return result


@triton.jit
def between(x, low, high):
    """x, or the bound that it is past; NaN where a bound is. Zeros that equal a bound keep their sign."""
    inside = tl.where(x < low, low, tl.where(x > high, high, x))
    return tl.where((low != low) | (high != high), low + high, inside)


@triton.jit
def lerp(start, end, weight):
    """start + weight (end - start), computed from the nearer end."""
    near = tl.abs(weight) < 0.5
    return tl.where(near, start + weight * (end - start), end - (end - start) * (1 - weight))


@triton.jit
def smooth_l1(difference, beta):
    """0.5 d² / beta below beta, d - beta / 2 above, of d = |difference|."""
    d = tl.abs(difference)
    return tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)


@triton.jit
def huber(difference, delta):
    """0.5 d² up to delta, delta (d - delta / 2) above, of d = |difference|."""
    d = tl.abs(difference)
    return tl.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


@triton.jit
def plus(a, b):
    """The sum."""
    return a + b


@triton.jit
def later_greater(value, place, next_value, next_place):
    """The greater of two numbers with their places, NaN before all, and of equal ones the later."""
    keep = (value > next_value) | ((value != value) & (next_value == next_value))
    return tl.where(keep, value, next_value), tl.where(keep, place, next_place)


@triton.jit
def later_smaller(value, place, next_value, next_place):
    """The smaller of two numbers, as later_greater gives the greater."""
    keep = (value < next_value) | ((value != value) & (next_value == next_value))
    return tl.where(keep, value, next_value), tl.where(keep, place, next_place)


@triton.jit
def row_sum(x, mask):
    """The sum of each row of a tile, of what the mask has."""
    return tl.sum(tl.where(mask, x, tl.zeros_like(x)), 1)[:, None]


@triton.jit
def row_greatest(x, mask):
    """The greatest number of each row of a tile, of what the mask has; not NaN where there is another number."""
    return tl.max(tl.where(mask, x, float("-inf")), 1)[:, None]


@triton.jit
def last_column(x):
    """The last column of a tile of rows."""
    columns: tl.constexpr = x.shape[1]
    return tl.sum(tl.where((tl.arange(0, columns) == columns - 1)[None, :], x, tl.zeros_like(x)), 1)


@triton.jit
def times(a, b):
    """The product."""
    return a * b


@triton.jit
def moments_of_both(mean, squares, count, other_mean, other_squares, other_count):
    """Mean, sum of squares of the distances from it, and count of two sets of numbers (Chan, Golub, LeVeque 1979)."""
    total = count + other_count
    share = tl.where(other_count > 0, other_count / tl.where(total > 0, total, total * 0 + 1), total * 0)
    apart = tl.where((count > 0) & (other_count > 0), other_mean - mean, total * 0)
    joined = tl.where(count > 0, mean + apart * share, other_mean)
    return joined, squares + other_squares + apart * apart * count * share, total


@triton.jit
def with_one_more(mean, squares, count, x, mask):
    """The moments of a set and one number more (Welford 1962), where the mask has one."""
    total = count + mask.to(count.dtype)
    apart = x - mean
    new = tl.where(mask, mean + apart / tl.where(total > 0, total, total * 0 + 1), mean)
    return new, tl.where(mask, squares + apart * (x - new), squares), total


@triton.jit
def either(a, b):
    """Bits of either."""
    return a | b


@triton.jit
def both(a, b):
    """Bits of both."""
    return a & b


@triton.jit
def lowest(x):
    """A tile like x of what no element is below."""
    if x.dtype.is_floating():
        return x * 0 + float("-inf")
    else:
        bits: tl.constexpr = x.dtype.primitive_bitwidth
        return x * 0 + (-(2 ** (bits - 1)) if x.dtype.is_int_signed() else 0)


@triton.jit
def highest(x):
    """A tile like x of what no element is above."""
    if x.dtype.is_floating():
        return x * 0 + float("inf")
    else:
        bits: tl.constexpr = x.dtype.primitive_bitwidth
        return x * 0 + (2 ** (bits - 1) - 1 if x.dtype.is_int_signed() else 2**bits - 1)
