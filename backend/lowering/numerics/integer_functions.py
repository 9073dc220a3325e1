"""Bit counting, byte selection and averages of integers."""

from __future__ import annotations

from ...spirv import opcodes as op
from ...spirv.opcodes import Glsl
from .numeric import Int, Numeric, wide_product


def _halves(n: Numeric, x: Int) -> list[Int]:
    """The halves of a 64-bit number, low first; a 32-bit one is its only half."""
    return [x] if x.width == 32 else [x.resize(32), (x >> 32).resize(32)]


def _bit_function(n: Numeric, number: int, x: Int) -> Int:
    return Int(n, n.f.glsl(number, n.module.u32, x.id))


def clz(n: Numeric, x: Int) -> Int:
    """Leading zeros."""
    low, *high = _halves(n, x)
    # FindUMsb of 0 is -1.
    count = 31 - _bit_function(n, Glsl.FindUMsb, low)
    if high:
        count = n.where(high[0].eq(0), count + 32, 31 - _bit_function(n, Glsl.FindUMsb, high[0]))
    return count


def ffs(n: Numeric, x: Int) -> Int:
    """Position of the lowest set bit from 1; 0 for 0."""
    low, *high = _halves(n, x)
    count = _bit_function(n, Glsl.FindILsb, low) + 1
    if high:
        upper = _bit_function(n, Glsl.FindILsb, high[0]) + 33
        count = n.where(low.eq(0), n.where(high[0].eq(0), 0, upper), count)
    return count


def popc(n: Numeric, x: Int) -> Int:
    """Set bits."""
    counts = [Int(n, n.f.emit(op.BitCount, n.module.u32, half.id)) for half in _halves(n, x)]
    return counts[0] if len(counts) == 1 else counts[0] + counts[1]


def brev(n: Numeric, x: Int) -> Int:
    """Bits in reverse."""
    reversed_ = [Int(n, n.f.emit(op.BitReverse, n.module.u32, half.id)) for half in _halves(n, x)]
    if len(reversed_) == 1:
        return reversed_[0]
    return (reversed_[0].resize(64) << 32) | reversed_[1].resize(64)


def byte_perm(n: Numeric, x: Int, y: Int, selector: Int) -> Int:
    """Byte i of the result is the byte of (y, x) that the low three bits of nibble i of ``selector`` name."""
    pool = x.resize(64) | (y.resize(64) << 32)
    result = n.integer(0, 32)
    for position in range(4):
        amount = ((selector >> (4 * position)) & 7) << 3
        result = result | (((pool >> amount.resize(64)) & 0xFF).resize(32) << (8 * position))
    return result


def mulhi(n: Numeric, a: Int, b: Int, signed: bool) -> Int:
    """The upper half of the product."""
    if a.width == 32:
        return ((a.resize(64, signed) * b.resize(64, signed)) >> 32).resize(32)
    high, _ = wide_product(a, b)
    return high - (a.sar(63) & b) - (b.sar(63) & a) if signed else high


def mul24(n: Numeric, a: Int, b: Int, signed: bool) -> Int:
    """The product of the low 24 bits."""
    if signed:
        return (a << 8).sar(8) * (b << 8).sar(8)
    return (a & 0xFFFFFF) * (b & 0xFFFFFF)


def sad(n: Numeric, a: Int, b: Int, c: Int, signed: bool) -> Int:
    """|a - b| + c."""
    return n.where(a.slt(b) if signed else a.ult(b), b - a, a - b) + c


def hadd(n: Numeric, a: Int, b: Int, signed: bool) -> Int:
    """(a + b) / 2 rounded down, without overflow."""
    half = a ^ b
    return (a & b) + (half.sar(1) if signed else half >> 1)


def rhadd(n: Numeric, a: Int, b: Int, signed: bool) -> Int:
    """(a + b + 1) / 2 rounded down, without overflow."""
    half = a ^ b
    return (a | b) - (half.sar(1) if signed else half >> 1)


def power(n: Numeric, base: Int, exponent: Int) -> Int:
    """base^exponent modulo 2^width, by squaring. A negative exponent gives the inverse of 1 and -1, else 0."""
    f, width = n.f, base.width
    negative = exponent.slt(0)
    start = [n.integer(1, width).id, base.id, n.where(negative, 0, exponent).id]

    def body(carried: list[int]) -> list[int]:
        result, square, left = (Int(n, value) for value in carried)
        return [n.where((left & 1).ne(0), result * square, result).id, (square * square).id, (left >> 1).id]

    zero = n.integer(0, exponent.width).id
    result = Int(n, f.loop(start, lambda carried: f.compare(op.INotEqual, carried[2], zero), body)[0])
    unit = base.eq(1) | base.eq(-1)
    sign = n.where(base.eq(1) | (exponent & 1).eq(0), n.integer(1, width), -1)
    return n.where(negative, n.where(unit, sign, 0), result)
