"""Correctly rounded arithmetic in every rounding mode, on any device.

Numbers are taken apart into integers, computed with exactly, and rounded by :func:`pack`, subnormals, overflow and ties
included.

Modes: ``rn`` to nearest, ties to even; ``rz`` towards zero; ``rd`` down; ``ru`` up. In this package also ``odd``:
towards zero, with the last bit of an inexact number made odd, so that a later rounding to fewer bits is the only one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...spirv.opcodes import Glsl
from .numeric import Bool, Int, Numeric, Real, wide_product

MODES = ("rn", "rz", "rd", "ru")


@dataclass(frozen=True)
class Parts:
    """A finite number: (-1)^negative significand 2^exponent, with a 64-bit significand and a 32-bit exponent."""

    negative: Bool
    significand: Int
    exponent: Int


def _leading_zeros(n: Numeric, x: Int) -> Int:
    """The leading zeros of a 64-bit number that is not 0, as 32 bits."""
    high, low = (x >> 32).resize(32), x.resize(32)
    upper = high.ne(0)
    word = n.where(upper, high, low)
    msb = Int(n, n.f.glsl(Glsl.FindUMsb, n.module.u32, word.id))
    return n.where(upper, n.integer(31, 32), 63) - msb


def _right_sticky(n: Numeric, x: Int, count: Int) -> Int:
    """``x >> count`` with what is lost kept as the last bit; any count that is not negative."""
    far = count.ugt(63)
    near = n.where(far, n.integer(63, 32), count).resize(64)
    kept = x >> near
    lost = (x & ((n.integer(1, 64) << near) - 1)).ne(0) | (far & x.ne(0))
    kept = n.where(far, 0, kept)
    return kept | n.where(lost, n.integer(1, 64), 0)


def unpack(n: Numeric, x: Real) -> Parts:
    """The parts of a finite number, its significand normalised to bit 62; that of 0 is 0."""
    bits = x.magnitude()
    exponent = (bits >> n.mantissa).resize(32)
    normal = exponent.ne(0)
    significand = (bits & ((1 << n.mantissa) - 1)).resize(64)
    significand = n.where(normal, significand | (1 << n.mantissa), significand)
    exponent = n.where(normal, exponent, 1) - (n.bias + n.mantissa)
    shift = _leading_zeros(n, significand | 1) - 1
    # A subnormal 1 keeps its bit: only 0 itself is changed by the | 1 above, to another 0.
    return Parts(x.negative(), significand << shift.resize(64), exponent - shift)


def pack(n: Numeric, parts: Parts, mode: str) -> Real:
    """Rounds to the format of ``n``. The significand's last bit may stand for everything below it, where at least two
    bits are between it and the result's last. A significand of 0 gives a zero of the sign."""
    value = parts.significand
    zeros = _leading_zeros(n, value | 1)
    # To bit 62, so that a subnormal's whole significand can be shifted out.
    aligned = value << zeros.resize(64)
    aligned = (aligned >> 1) | (aligned & 1)
    exponent = parts.exponent - zeros + 63
    smallest = 1 - n.bias
    below = smallest - exponent
    tiny = below.sgt(0)
    drop = n.where(tiny, below, 0) + (62 - n.mantissa)
    lost_all = drop.sgt(63)
    drop = n.where(lost_all, 63, drop).resize(64)
    aligned = n.where(lost_all, 1, aligned)
    kept = aligned >> drop
    rest = aligned & ((n.integer(1, 64) << drop) - 1)
    inexact = rest.ne(0)
    if mode == "rn":
        half = n.integer(1, 64) << (drop - 1)
        up = rest.ugt(half) | (rest.eq(half) & (kept & 1).ne(0))
    elif mode in ("rz", "odd"):
        up = None
        kept = kept | n.where(inexact, n.integer(1, 64), 0) if mode == "odd" else kept
    else:
        up = inexact & (parts.negative if mode == "rd" else ~parts.negative)
    code = kept.resize(n.width)
    if up is not None:
        code = code + n.where(up, n.integer(1), 0)
    biased = (exponent + (n.bias - 1)).resize(n.width, signed=True) << n.mantissa
    code = n.where(tiny, code, code + biased)
    largest = n.infinity_bits - 1
    over = n.where(tiny, n.integer(0, 32), exponent).sgt(n.bias) | code.ugt(largest)
    if mode == "rn":
        limit: Int = n.integer(n.infinity_bits)
    elif mode in ("rz", "odd"):
        limit = n.integer(largest)
    else:
        away = parts.negative if mode == "rd" else ~parts.negative
        limit = n.where(away, n.integer(n.infinity_bits), largest)
    code = n.where(over, limit, code)
    code = n.where(value.eq(0), 0, code)
    return (code | n.where(parts.negative, n.integer(1 << (n.width - 1)), 0)).as_real()


def _add_parts(n: Numeric, a: Parts, b: Parts) -> Parts:
    """The sum of two numbers normalised to bit 62; what falls below the last bit is kept as that bit. Exact where it
    matters: bits are lost only for exponents more than 10 apart, and the difference then cancels one bit at most."""
    a_zero, b_zero = a.significand.eq(0), b.significand.eq(0)
    a_exponent = n.where(a_zero, -100000, a.exponent)
    b_exponent = n.where(b_zero, -100000, b.exponent)
    swap = b_exponent.sgt(a_exponent) | (b_exponent.eq(a_exponent) & b.significand.ugt(a.significand))
    large = n.where(swap, b.significand, a.significand)
    small = n.where(swap, a.significand, b.significand)
    exponent = n.where(swap, b_exponent, a_exponent)
    distance = n.where(swap, b_exponent - a_exponent, a_exponent - b_exponent)
    small = _right_sticky(n, small, distance)
    subtract = a.negative ^ b.negative
    total = n.where(subtract, large - small, large + small)
    negative = (a.negative & ~swap) | (b.negative & swap)
    return Parts(negative, total, exponent)


def never(n: Numeric) -> Bool:
    """False."""
    return Bool(n, n.module.boolean(False))


def all_finite(*values: Real) -> Bool:
    """Whether none of the numbers is infinite or NaN."""
    result = values[0].is_finite()
    for value in values[1:]:
        result = result & value.is_finite()
    return result


def add(n: Numeric, a: Real, b: Real, mode: str = "rn") -> Real:
    """a + b."""
    if mode == "rn":
        return a + b
    pa, pb = unpack(n, a), unpack(n, b)
    total = _exact_zero(n, _add_parts(n, pa, pb), pa.negative, pb.negative, mode)
    return n.where(all_finite(a, b), pack(n, total, mode), a + b)


def _exact_zero(n: Numeric, total: Parts, a_negative: Bool, b_negative: Bool, mode: str) -> Parts:
    zero = total.significand.eq(0)
    sign = (a_negative | b_negative) if mode == "rd" else (a_negative & b_negative)
    return Parts((total.negative & ~zero) | (sign & zero), total.significand, total.exponent)


def _product(n: Numeric, a: Parts, b: Parts) -> tuple[Int, Int]:
    """The 126-bit product of two significands, as high and low 64 bits."""
    return wide_product(a.significand, b.significand)


def multiply(n: Numeric, a: Real, b: Real, mode: str = "rn") -> Real:
    """a b."""
    if mode == "rn":
        return a * b
    pa, pb = unpack(n, a), unpack(n, b)
    high, low = _product(n, pa, pb)
    significand = high | n.where(low.ne(0), n.integer(1, 64), 0)
    parts = Parts(pa.negative ^ pb.negative, significand, pa.exponent + pb.exponent + 64)
    return n.where(all_finite(a, b), pack(n, parts, mode), a * b)


def fma(n: Numeric, a: Real, b: Real, c: Real, mode: str = "rn") -> Real:
    """a b + c, rounded once."""
    if mode == "rn" and n.fused:
        return n.fma(a, b, c)
    pa, pb, pc = unpack(n, a), unpack(n, b), unpack(n, c)
    high, low = _product(n, pa, pb)
    # To bit 126: both factors have their leading bit at 62, so the product's is at 124 or 125.
    zero = (high | low).eq(0)
    twice = high.ult(1 << 61)
    shift = n.where(twice, n.integer(2, 64), 1)
    high, low = (high << shift) | (low >> (64 - shift)), low << shift
    exponent = pa.exponent + pb.exponent - shift.resize(32)
    negative = pa.negative ^ pb.negative
    if n.width == 32:
        # 48 bits count: the product fits the upper word.
        product = Parts(negative, high, exponent + 64)
        total = _add_parts(n, product, pc)
    else:
        total = _add_wide(n, negative, high, low, exponent, zero, pc)
    total = _exact_zero(n, total, negative, pc.negative, mode)
    # The product of finite numbers may overflow, and is finite all the same.
    return n.where(all_finite(a, b), n.where(c.is_finite(), pack(n, total, mode), c), a * b + c)


def _add_wide(n: Numeric, negative: Bool, high: Int, low: Int, exponent: Int, zero: Bool, c: Parts) -> Parts:
    """A 128-bit product (high, low) 2^exponent, its leading bit at 126, plus ``c``; 64 bits with a sticky one."""
    c_zero = c.significand.eq(0)
    p_exponent = n.where(zero, -100000, exponent)
    c_exponent = n.where(c_zero, -100000, c.exponent - 64)
    swap = c_exponent.sgt(p_exponent) | (c_exponent.eq(p_exponent) & (c.significand.ugt(high)))
    large_high, large_low = n.where(swap, c.significand, high), n.where(swap, 0, low)
    small_high, small_low = n.where(swap, high, c.significand), n.where(swap, low, 0)
    top = n.where(swap, c_exponent, p_exponent)
    distance = n.where(swap, c_exponent - p_exponent, p_exponent - c_exponent)
    # Shift right by up to 127, what is lost kept as the last bit.
    distance = n.where(distance.ugt(127), 127, distance)
    words = distance.ugt(63)
    fallen = n.where(words & small_low.ne(0), n.integer(1, 64), 0)
    small_low = n.where(words, small_high, small_low)
    small_high = n.where(words, 0, small_high)
    bits = (distance & 63).resize(64)
    moved = n.where(bits.eq(0), 0, small_high << ((64 - bits) & 63))
    lost = (small_low & ((n.integer(1, 64) << bits) - 1)).ne(0)
    small_low = (small_low >> bits) | moved | fallen | n.where(lost, n.integer(1, 64), 0)
    small_high = small_high >> bits
    subtract = negative ^ c.negative
    sum_low = large_low + small_low
    sum_high = large_high + small_high + n.where(sum_low.ult(large_low), n.integer(1, 64), 0)
    difference_low = large_low - small_low
    difference_high = large_high - small_high - n.where(large_low.ult(small_low), n.integer(1, 64), 0)
    total_high, total_low = n.where(subtract, difference_high, sum_high), n.where(subtract, difference_low, sum_low)
    # Equal exponents and leading words but a larger product, or the other way round: the difference may be negative.
    wrong = subtract & total_high.slt(0)
    flipped_low = 0 - total_low
    flipped_high = ~total_high + n.where(flipped_low.eq(0), n.integer(1, 64), 0)
    total_high = n.where(wrong, flipped_high, total_high)
    total_low = n.where(wrong, flipped_low, total_low)
    # Normalise into the upper word.
    empty = total_high.eq(0)
    upper = n.where(empty, total_low, total_high)
    lower = n.where(empty, 0, total_low)
    top = n.where(empty, top - 64, top)
    zeros = _leading_zeros(n, upper | 1)
    shift = zeros.resize(64)
    upper = (upper << shift) | n.where(shift.eq(0), 0, lower >> ((64 - shift) & 63))
    lower = lower << shift
    significand = upper | n.where(lower.ne(0), n.integer(1, 64), 0)
    sign = ((negative & ~swap) | (c.negative & swap)) ^ wrong
    return Parts(sign, significand, top - zeros + 64)


def odd_sum(n: Numeric, a: Real, b: Real) -> Real:
    """a + b in f32 with the last bit of an inexact sum made odd, so that a later rounding is the only one."""
    total, error = n.two_sum(a, b)
    bits = total.bits()
    inexact = error.ne(0.0) & total.is_finite() & error.is_finite()
    even = (bits & 1).eq(0)
    # The neighbour on the error's side; a sum with an error is not 0.
    away = ~(error.negative() ^ total.negative())
    moved = n.where(away, bits + 1, bits - 1)
    return n.where(inexact & even, moved, bits).as_real()


def convert(n: Numeric, x: Real, mode: str = "rn") -> Real:
    """A float of a wider format rounded to that of ``n``."""
    wide = x.n
    if mode == "rn":
        return n.convert(x)
    p = unpack(wide, x)
    rounded = pack(n, Parts(p.negative, p.significand, p.exponent), mode)
    return n.where(x.is_finite(), rounded, n.convert(x))


def from_int(n: Numeric, x: Int, signed: bool, mode: str = "rn") -> Real:
    """An integer of 32 or 64 bits rounded to the format of ``n``."""
    if mode == "rn" or (x.width == 32 and n.width == 64):
        return x.real(signed)
    wide = x.resize(64, signed)
    negative = wide.slt(0) if signed else never(n)
    magnitude = n.where(negative, 0 - wide, wide) if signed else wide
    # An integer that is 0 is +0 in every mode.
    return pack(n, Parts(negative, magnitude, n.integer(0, 32)), mode)
