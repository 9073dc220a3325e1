"""Arithmetic written as Python expressions: what the math functions are built with.

``Numeric(emitter, width)`` is f32 or f64 arithmetic. A Real, Int or Bool wraps the id of one scalar; operators emit
instructions. Float arithmetic is decorated NoContraction, so error-free transformations hold; ``fma`` alone may round
once or twice, as the device does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from ...spirv import opcodes as op
from ...spirv.module import float_bits
from ...spirv.opcodes import Glsl
from ..emitter import Emitter
from ..errors import missing
from .coefficients import POLYNOMIALS

#: Bits of the significand after the leading one.
MANTISSA = {32: 23, 64: 52}
BIAS = {32: 127, 64: 1023}
#: A number whose float sum with a small one rounds that to an integer, held in the low bits (1.5 * 2^mantissa).
ROUNDER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}


def round_bits(value: Fraction, bits: int) -> float:
    """``value`` truncated to ``bits`` significant bits."""
    exponent = 0
    while abs(value) >= 1 << bits:
        value, exponent = value / 2, exponent + 1
    while abs(value) < 1 << (bits - 1):
        value, exponent = value * 2, exponent - 1
    return float(int(value) * Fraction(2) ** exponent)


def split_constant(value: Fraction, bits: int, count: int) -> tuple[float, ...]:
    """``count`` floats of at most ``bits`` bits, and a last one that is the rest."""
    parts = []
    for _ in range(count):
        parts.append(round_bits(value, bits))
        value -= Fraction(parts[-1])
    return (*parts, float(value))


class Bool:
    """A boolean."""

    __slots__ = ("id", "n")

    def __init__(self, n: Numeric, id_: int) -> None:
        self.n, self.id = n, id_

    def __and__(self, other: Bool) -> Bool:
        return Bool(self.n, self.n.f.logical_and(self.id, other.id))

    def __or__(self, other: Bool) -> Bool:
        return Bool(self.n, self.n.f.logical_or(self.id, other.id))

    def __xor__(self, other: Bool) -> Bool:
        return Bool(self.n, self.n.f.emit(op.LogicalNotEqual, self.n.module.bool, self.id, other.id))

    def __invert__(self) -> Bool:
        return Bool(self.n, self.n.f.logical_not(self.id))


def _whole(opcode: int) -> Callable[[Int, Int | int], Int]:
    return lambda self, other: self._binary(opcode, other)


def _whole_compared(opcode: int) -> Callable[[Int, Int | int], Bool]:
    return lambda self, other: self._compare(opcode, other)


def _real(opcode: int) -> Callable[[Real, Real | float], Real]:
    return lambda self, other: self._binary(opcode, other)


def _real_compared(opcode: int) -> Callable[[Real, Real | float], Bool]:
    return lambda self, other: self._compare(opcode, other)


class Int:
    """An integer; ``<`` and the like are methods that say whether they are signed."""

    __slots__ = ("id", "n")

    def __init__(self, n: Numeric, id_: int) -> None:
        self.n, self.id = n, id_

    @property
    def width(self) -> int:
        """Bits."""
        return self.n.module.kinds[self.n.f.type_of(self.id)][1]

    def _of(self, other: Int | int) -> int:
        return other.id if isinstance(other, Int) else self.n.module.uint(other, self.width)

    def _binary(self, opcode: int, other: Int | int) -> Int:
        return Int(self.n, self.n.f.binary(opcode, self.id, self._of(other)))

    __add__ = _whole(op.IAdd)
    __sub__ = _whole(op.ISub)

    def __rsub__(self, other: int) -> Int:
        return Int(self.n, self.n.f.sub(self._of(other), self.id))

    __mul__ = _whole(op.IMul)
    __and__ = _whole(op.BitwiseAnd)
    __or__ = _whole(op.BitwiseOr)
    __xor__ = _whole(op.BitwiseXor)
    __lshift__ = _whole(op.ShiftLeftLogical)
    __rshift__ = _whole(op.ShiftRightLogical)  # logical

    def __neg__(self) -> Int:
        return 0 - self

    def __invert__(self) -> Int:
        return self ^ -1

    sar = _whole(op.ShiftRightArithmetic)  # arithmetic shift right

    def _compare(self, opcode: int, other: Int | int) -> Bool:
        return Bool(self.n, self.n.f.compare(opcode, self.id, self._of(other)))

    eq = _whole_compared(op.IEqual)  # ==
    ne = _whole_compared(op.INotEqual)  # !=
    slt = _whole_compared(op.SLessThan)  # Signed <
    sgt = _whole_compared(op.SGreaterThan)  # Signed >
    ult = _whole_compared(op.ULessThan)  # Unsigned <
    ugt = _whole_compared(op.UGreaterThan)  # Unsigned >

    def resize(self, width: int, signed: bool = False) -> Int:
        """To another width."""
        f = self.n.f
        return Int(self.n, f.sign_extend(self.id, width) if signed else f.zero_extend(self.id, width))

    def real(self, signed: bool = True) -> Real:
        """The number as a float, rounded."""
        return Real(self.n, self.n.f.integer_to_float(self.n.type_id, self.id, signed))

    def as_real(self) -> Real:
        """The bits as a float."""
        return Real(self.n, self.n.f.bitcast(self.id, self.n.type_id))


class Real:
    """A float of the arithmetic's width."""

    __slots__ = ("id", "n")

    def __init__(self, n: Numeric, id_: int) -> None:
        self.n, self.id = n, id_

    def _of(self, other: Real | float) -> int:
        return other.id if isinstance(other, Real) else self.n.module.real(other, self.n.width)

    def _binary(self, opcode: int, other: Real | float) -> Real:
        return Real(self.n, self.n.f.emit(opcode, self.n.type_id, self.id, self._of(other)))

    def _reverse(self, opcode: int, other: float) -> Real:
        return Real(self.n, self.n.f.emit(opcode, self.n.type_id, self._of(other), self.id))

    __add__ = _real(op.FAdd)
    __radd__ = __add__

    __sub__ = _real(op.FSub)

    def __rsub__(self, other: float) -> Real:
        return self._reverse(op.FSub, other)

    __mul__ = _real(op.FMul)
    __rmul__ = __mul__

    __truediv__ = _real(op.FDiv)

    def __rtruediv__(self, other: float) -> Real:
        return self._reverse(op.FDiv, other)

    def __neg__(self) -> Real:
        return (self.bits() ^ (1 << (self.n.width - 1))).as_real()

    def __abs__(self) -> Real:
        return self._glsl(Glsl.FAbs)

    def _compare(self, opcode: int, other: Real | float) -> Bool:
        return Bool(self.n, self.n.f.emit(opcode, self.n.module.bool, self.id, self._of(other)))

    __lt__ = _real_compared(op.FOrdLessThan)
    __le__ = _real_compared(op.FOrdLessThanEqual)
    __gt__ = _real_compared(op.FOrdGreaterThan)
    __ge__ = _real_compared(op.FOrdGreaterThanEqual)
    eq = _real_compared(op.FOrdEqual)  # Ordered ==
    ne = _real_compared(op.FUnordNotEqual)  # Unordered !=

    def is_nan(self) -> Bool:
        """Whether it is a NaN."""
        return self.magnitude().ugt(self.n.infinity_bits)

    def is_inf(self) -> Bool:
        """Whether it is an infinity."""
        return self.magnitude().eq(self.n.infinity_bits)

    def is_finite(self) -> Bool:
        """Whether it is neither an infinity nor a NaN."""
        return self.magnitude().ult(self.n.infinity_bits)

    def is_zero(self) -> Bool:
        """Whether it is a zero: by its bits, since some devices compare subnormal numbers as zeros."""
        return self.magnitude().eq(0)

    def negative(self) -> Bool:
        """Whether the sign bit is set."""
        return self.bits().slt(0)

    def _glsl(self, number: int, *others: Real) -> Real:
        return Real(self.n, self.n.f.glsl(number, self.n.type_id, self.id, *(other.id for other in others)))

    def floor(self) -> Real:
        """Largest integer not above."""
        return self._glsl(Glsl.Floor)

    def ceil(self) -> Real:
        """Smallest integer not below."""
        return self._glsl(Glsl.Ceil)

    def trunc(self) -> Real:
        """Towards zero."""
        if self._is_rounded_by_the_driver():
            return self._glsl(Glsl.Trunc)
        size = abs(self)
        near = size._nearest()
        return near.n.where(near > size, near - 1.0, near).with_sign_of(self)

    def rint(self) -> Real:
        """Nearest integer, ties to even."""
        if self._is_rounded_by_the_driver():
            return self._glsl(Glsl.RoundEven)
        return abs(self)._nearest().with_sign_of(self)

    def _is_rounded_by_the_driver(self) -> bool:
        return self.n.width == 32 or self.n.emitter.capabilities.traits.rounds_doubles

    def _nearest(self) -> Real:
        """The integer nearest to a number without a sign: from 2^52 on all are integers, and a sum with it is."""
        integers = 2.0**self.n.mantissa
        return self.n.where(self < integers, (self + integers) - integers, self)

    def sqrt(self) -> Real:
        """The device's own square root."""
        return self._glsl(Glsl.Sqrt)

    def exp2(self) -> Real:
        """The device's own 2^x."""
        return self._glsl(Glsl.Exp2)

    def bounded(self, low: float, high: float) -> Real:
        """The nearest number from ``low`` to ``high``, both included; one of these two for NaN."""
        return self._glsl(Glsl.NClamp, self.n.real(low), self.n.real(high))

    def inverse_sqrt(self) -> Real:
        """The device's own 1/sqrt(x)."""
        return self._glsl(Glsl.InverseSqrt)

    def bits(self) -> Int:
        """The bits as an integer."""
        return Int(self.n, self.n.f.bitcast(self.id, self.n.int_id))

    def magnitude(self) -> Int:
        """The bits without the sign."""
        return self.bits() & ((1 << (self.n.width - 1)) - 1)

    def to_int(self, width: int = 0, signed: bool = True) -> Int:
        """Towards zero; undefined where it does not fit."""
        type_id = self.n.module.int(width or self.n.width)
        return Int(self.n, self.n.f.emit(op.ConvertFToS if signed else op.ConvertFToU, type_id, self.id))

    def with_sign_of(self, other: Real) -> Real:
        """copysign."""
        return (self.magnitude() | (other.bits() & (1 << (self.n.width - 1)))).as_real()


def wide_product(a: Int, b: Int) -> tuple[Int, Int]:
    """The high and low 64 bits of a product of unsigned 64-bit numbers."""
    mask = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & mask, a >> 32, b & mask, b >> 32
    low = a_low * b_low
    middle = a_high * b_low + (low >> 32)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> 32) + (other >> 32), a * b


class Numeric:
    """f32 or f64 arithmetic in the function that ``emitter`` builds."""

    def __init__(self, emitter: Emitter, width: int) -> None:
        self.emitter, self.width = emitter, width
        self.f, self.module = emitter.f, emitter.module
        if width == 64 and not emitter.capabilities.has("float64"):
            raise missing(
                emitter.capabilities.driver, "has no float64 arithmetic, which this function needs", "float64"
            )
        self.type_id, self.int_id = emitter.module.float(width), emitter.module.int(width)
        self.mantissa, self.bias = MANTISSA[width], BIAS[width]
        self.infinity_bits = float_bits(float("inf"), width)
        #: Whether ``fma`` rounds once.
        self.fused = emitter.capabilities.traits.fused
        #: Whether ``scale`` is one instruction. Then what is ``lost`` is 0 whatever its factors are, NaN included.
        self.scales = width == 32 and emitter.capabilities.scales

    def real(self, value: float) -> Real:
        """A constant."""
        return Real(self, self.module.real(value, self.width))

    def wrap(self, id_: int) -> Real:
        """A Real of an id of this width."""
        return Real(self, id_)

    def integer(self, value: int, width: int = 0) -> Int:
        """A constant, of the float's width by default."""
        return Int(self, self.module.uint(value, width or self.width))

    def convert(self, value: Real) -> Real:
        """A float of another width as one of this."""
        return value if value.n.width == self.width else Real(self, self.f.emit(op.FConvert, self.type_id, value.id))

    def fma(self, a: Real | float, b: Real | float, c: Real | float) -> Real:
        """``a * b + c``, rounded once or twice."""
        ids = (x.id if isinstance(x, Real) else self.module.real(x, self.width) for x in (a, b, c))
        return Real(self, self.f.glsl(Glsl.Fma, self.type_id, *ids))

    def where(self, condition: Bool, true: Any, false: Any) -> Any:
        """``condition ? true : false`` of two Reals, or two Ints; one may be a Python number."""
        typed = true if isinstance(true, (Real, Int)) else false
        kind = type(typed)
        ids = [value.id if isinstance(value, (Real, Int)) else typed._of(value) for value in (true, false)]
        return kind(self, self.f.select(condition.id, *ids))

    def minimum(self, a: Real, b: Real | float) -> Real:
        """The smaller; ``a`` where it is NaN."""
        return self.where(a > b, b, a)

    def maximum(self, a: Real, b: Real | float) -> Real:
        """The larger; ``a`` where it is NaN."""
        return self.where(a < b, b, a)

    def horner(self, x: Real, coefficients: Sequence[float]) -> Real:
        """The polynomial with these coefficients, lowest power first."""
        result: Real | float = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(x, result, coefficient)
        assert isinstance(result, Real)
        return result

    def poly(self, name: str, x: Real) -> Real:
        """The polynomial of that name in coefficients.py."""
        return self.horner(x, POLYNOMIALS[name][self.width])

    def pow2(self, exponent: Int) -> Real:
        """2^exponent for a normal result."""
        return ((exponent + self.bias) << self.mantissa).as_real()

    def scale(self, x: Real, exponent: Int, lost: Bool | None = None) -> Real:
        """x 2^exponent, rounded once, for any exponent whose half is that of a normal number and normal ``x`` of
        moderate size. ``lost``: where that is 0, which processors with slow underflow are spared: masked lanes of a
        softmax are exp(-inf) (a row of 781 in a block of 1,024: 6.9 instead of 3.0 µs)."""
        spared = lost if self.emitter.capabilities.slow_underflow else None
        if self.scales:
            scaled = Real(self, self.f.glsl(Glsl.Ldexp, self.type_id, x.id, exponent.id))
            return scaled if spared is None else self.where(spared, 0.0, scaled)
        half = exponent.sar(1)
        first = self.pow2(half) if spared is None else self.where(spared, 0.0, self.pow2(half))
        return x * first * self.pow2(exponent - half)

    def branch(self, condition: Bool, then: Callable[[], Sequence[Any]], defaults: Sequence[Any]) -> list[Any]:
        """The values of ``then()`` where the condition holds, else ``defaults``; skipped if no lane needs it."""
        results = self.f.if_(
            condition.id, lambda: [value.id for value in then()], defaults=[value.id for value in defaults]
        )
        return [type(default)(default.n, result) for default, result in zip(defaults, results, strict=True)]

    # -- error-free transformations --------------------------------------------------------------------------------
    def two_sum(self, a: Real, b: Real) -> tuple[Real, Real]:
        """``a + b`` and its rounding error, exactly (Knuth)."""
        s = a + b
        t = s - a
        return s, (a - (s - t)) + (b - t)

    def quick_two_sum(self, a: Real, b: Real) -> tuple[Real, Real]:
        """two_sum for |a| >= |b| (Dekker)."""
        s = a + b
        return s, b - (s - a)

    def two_product(self, a: Real, b: Real) -> tuple[Real, Real]:
        """``a * b`` and its rounding error, exactly, unless something under- or overflows (Veltkamp, Dekker)."""
        p = a * b
        if self.fused:
            return p, self.fma(a, b, -p)
        splitter = float((1 << (self.mantissa // 2 + 1)) + 1)

        def split(x: Real) -> tuple[Real, Real]:
            t = x * splitter
            high = t - (t - x)
            return high, x - high

        a_high, a_low = split(a)
        b_high, b_low = split(b)
        return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
