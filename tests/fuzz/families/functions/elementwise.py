"""Functions of one element of each operand: arithmetic, math functions, comparisons, conversions."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from tests.device.helpers import accepted, device_capabilities
from tests.device.math.harness import device_bound, exactly
from tests.device.test_casts import to_format
from tests.fuzz.families.functions import drawing, judging
from tests.fuzz.families.functions.drawing import (
    ALL,
    EIGHTS,
    FLOATS,
    INTEGERS,
    LONG,
    NUMBERS,
    WIDE,
    Dtype,
    dtype_of,
    is_float,
)
from tests.fuzz.families.functions.row import Row
from tests.fuzz.families.integers import truncated
from tests.fuzz.steps import TYPES, Array, Judge, Writer

#: Operands, and what they give: arrays of the result's type, or long doubles where it need not be exact.
Definition = Callable[..., Array]
#: Operands for which a function is defined, from any.
Domain = Callable[..., list[Array]]
#: By the operands' type: that of the result.
Result = Callable[[Dtype], Dtype]
#: What is accepted of a function's results, each in several ways, for numbers of a type.
Accepts = Callable[[list[Array], Dtype], Judge]


def _exact(ways: list[Array], dtype: Dtype) -> Judge:
    return judging.exact(*ways)


def _either_zero(ways: list[Array], dtype: Dtype) -> Judge:
    return judging.either_zero(*ways)


def _units(of: Callable[[Dtype], float]) -> Accepts:
    return lambda ways, dtype: judging.close(ways, dtype, of(dtype))


def _row(
    names: str,
    text: str,
    types: tuple[str, ...],
    definition: Definition,
    words: str,
    *,
    operands: int = 1,
    result: Result = lambda dtype: dtype,
    accepts: Accepts = _exact,
    tolerance: str = "none",
    domain: Domain = lambda *values: list(values),
    domain_words: str = "all numbers",
) -> Row:
    """``text`` is the call on ``a``, ``b``, ``c``, and ``T``, the result's type."""

    def write(writer: Writer, dtype: Dtype) -> None:
        shape = drawing.shape_of(writer) if writer.rng.random() < 0.95 else ()
        drawn = [_operand(writer, shape, dtype, index) for index in range(operands)]
        if operands > 1 and writer.rng.random() < 0.5:  # beside each other, or equal
            drawn[1] = np.where(writer.numbers.random(drawn[1].shape) < 0.3, drawn[0], drawn[1])
        with np.errstate(all="ignore"):
            given = [part.astype(dtype) for part in domain(*drawn)]
            into = result(dtype)
            ways = accepted(lambda *parts: np.asarray(definition(*parts)), *given, result=into)
        loaded = [writer.load(part) for part in given]
        names_ = dict(zip("abc", (_truth(value.name, value.array) for value in loaded), strict=False))
        ways = [np.broadcast_to(way, np.broadcast_shapes(*(part.shape for part in given))) for way in ways]
        call = text.format(T=TYPES[into], **names_)
        writer.add_judged(call, (ways[0].astype(into), accepts(ways, into)))

    return Row(names, types, words, write, tolerance, domain_words)


def _operand(writer: Writer, shape: tuple[int, ...], dtype: Dtype, index: int) -> Array:
    """Any numbers; behind the first operand sometimes one number for all elements."""
    return drawing.numbers(writer, () if index and writer.rng.random() < 0.1 else shape, dtype)


def _truth(name: str, array: Array) -> str:
    """Memory holds booleans as bytes."""
    return f"{name}.to(tl.int1)" if array.dtype.kind == "b" else name


def _wide(function: Callable[..., Any]) -> Definition:
    return lambda *parts: function(*(part.astype(np.longdouble) for part in parts))


def _bound(name: str) -> dict[str, Any]:
    """The tolerance of docs/internals/math.md."""
    accepts = _units(lambda dtype: device_bound(name, 8 * dtype.itemsize))
    return {"accepts": accepts, "tolerance": f"ULP: the row {name} of docs/internals/math.md"}


def _quotient_units(dtype: Dtype) -> float:
    """Vulkan allows 2.5 units in a division of f32."""
    loose = dtype == np.float32 and not device_capabilities().traits.exact_division
    return 2.5 if loose else 0.51


_QUOTIENT = {"accepts": _units(_quotient_units), "tolerance": "0.51 ULP; 2.5 in f32 where the device's division is so"}


def _exponential_units(dtype: Dtype) -> float:
    """Of 1 / (1 + e): twice the units of the parts, as a relative error has up to two for each."""
    return 2 * (device_bound("exp", 8 * dtype.itemsize) + 0.5 + _quotient_units(dtype))


# -- domains -----------------------------------------------------------------------------------------------------
def _divisible(a: Array, b: Array) -> list[Array]:
    """No division by zero, nor one whose quotient the type does not have."""
    if is_float(a.dtype):
        return [a, b]
    one = b.dtype.type(1)
    b = np.where(b == 0, one, b)
    if a.dtype.kind == "i":
        b = np.where((a == np.iinfo(a.dtype).min) & (b == -1), one, b)
    return [a, b]


def _shifted(a: Array, b: Array) -> list[Array]:
    return [a, b & b.dtype.type(8 * a.dtype.itemsize - 1)]


def _ordered(a: Array, b: Array, c: Array) -> list[Array]:
    low, high = drawing.without_nan(b), drawing.without_nan(c)
    return [a, np.where(high < low, high, low), np.where(high < low, low, high)]


def _bounded(limit: float) -> Domain:
    """Of magnitudes up to a limit; others, and NaN, are smaller by whole numbers."""

    def domain(a: Array) -> list[Array]:
        wide = a.astype(np.float64)
        inside = np.abs(wide) <= limit
        return [np.where(inside, wide, np.arctan(np.where(np.isnan(wide), 0.0, wide)) * limit / 2).astype(a.dtype)]

    return domain


# -- definitions -------------------------------------------------------------------------------------------------
def _in_single(function: Callable[..., Any]) -> Definition:
    """Arithmetic of 8-bit floats: in f32, and rounded to the format."""

    def definition(*parts: Array) -> Array:
        dtype = parts[0].dtype
        if dtype.itemsize > 1 or not is_float(dtype):
            return np.asarray(function(*parts))
        found = function(*(part.astype(np.float32) for part in parts))
        return judging.rounded(np.asarray(found).astype(np.longdouble), dtype)

    return definition


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a b + c, rounded once."""
    parts = np.broadcast_arrays(a, b, c)
    rows = zip(*(part.ravel().astype(np.float64).tolist() for part in parts), strict=True)
    return np.array([_fused_once(*row, a.dtype.name) for row in rows]).reshape(parts[0].shape).astype(a.dtype)


def _fused_once(x: float, y: float, z: float, dtype: str) -> float:
    if not np.isfinite([x, y]).all():
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    if not np.isfinite(z):
        return z
    value = Fraction(x) * Fraction(y) + Fraction(z)
    if value:
        return float(np.copysign(to_format(value, dtype), 1 if value > 0 else -1))
    return -0.0 if z == 0 and np.signbit(z) and np.signbit(x) != np.signbit(y) else 0.0


def _remainder(a: Array, b: Array) -> Array:
    if is_float(a.dtype):
        return np.fmod(a.astype(np.longdouble), b.astype(np.longdouble)).astype(a.dtype)
    a, b = np.broadcast_arrays(a, b)
    return a - truncated(a, b) * b


def _divided(a: Array, b: Array) -> Array:
    return truncated(*np.broadcast_arrays(a, b))


def _high(a: Array, b: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    unsigned = f"u{a.dtype.itemsize}"
    x, y = (part.astype(unsigned).astype(object) for part in np.broadcast_arrays(a, b))
    return np.asarray((x * y) >> bits, object).astype(np.uint64).astype(a.dtype)


def _larger(a: Array, b: Array) -> Array:
    """Of a number and NaN the number, of whatever kind the NaN is."""
    if not is_float(a.dtype):
        return np.maximum(a, b)
    return np.where(_nan(a), b, np.where(_nan(b), a, np.where(a > b, a, b)))


def _smaller(a: Array, b: Array) -> Array:
    return np.minimum(a, b) if not is_float(a.dtype) else -_larger(-a, -b)


def _largest(a: Array, b: Array) -> Array:
    """Of a number and NaN NaN."""
    return np.where(_nan(a), a, np.where(_nan(b), b, _larger(a, b))) if is_float(a.dtype) else _larger(a, b)


def _smallest(a: Array, b: Array) -> Array:
    return np.where(_nan(a), a, np.where(_nan(b), b, _smaller(a, b))) if is_float(a.dtype) else _smaller(a, b)


def _nan(values: Array) -> Array:
    return np.isnan(values.astype(np.float64))


def _erf(a: Array) -> Array:
    found = exactly(mpmath.erf, np.where(np.isfinite(a), a, 0).ravel()).reshape(a.shape)
    found = np.where(np.isinf(a), np.sign(a), np.where(a == 0, a, found))
    return np.where(np.isnan(a), a, found).astype(np.longdouble)


def _sine(function: Callable[[Array], Array]) -> Definition:
    return _wide(lambda x: np.where(np.isfinite(x), function(np.where(np.isfinite(x), x, 0)), np.nan))


def _bool(dtype: Dtype) -> Dtype:
    return np.dtype(bool)


def _single(dtype: Dtype) -> Dtype:
    return np.dtype(np.float32)


_MANY = NUMBERS + EIGHTS
_COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
             "!=": np.not_equal}  # fmt: skip
_NONZERO = "divisors other than 0, quotients that the type has"

ELEMENTWISE: list[Row] = [
    _row("add", "tl.add({a}, {b})", _MANY, _in_single(np.add), "a + b; integers wrap", operands=2),
    _row("sub", "tl.sub({a}, {b})", _MANY, _in_single(np.subtract), "a - b; integers wrap", operands=2),
    _row("mul", "tl.mul({a}, {b})", _MANY, _in_single(np.multiply), "a b; integers wrap", operands=2),
    _row("", "-{a}", _MANY, _in_single(np.negative), "-a; integers wrap"),
    _row("abs", "tl.abs({a})", _MANY, _in_single(np.abs), "|a|; the least integer stays"),
    _row("", "{a} / {b}", FLOATS, _wide(np.divide), "a / b", operands=2, **_QUOTIENT),
    _row("", "{a} / {b}", EIGHTS, _in_single(np.divide), "a / b in f32, rounded", operands=2,
         accepts=_units(lambda dtype: _quotient_units(np.dtype("float32")) // 2), tolerance="none, or 1 ULP likewise"),
    _row("", "{a} / {b}", INTEGERS,
         lambda a, b: a.astype(np.float32).astype(np.longdouble) / b.astype(np.float32), "a / b in f32",
         operands=2, result=_single, **_QUOTIENT),
    _row("", "{a} // {b}", INTEGERS, _divided, "a / b towards zero", operands=2, domain=_divisible,
         domain_words=_NONZERO),
    _row("", "{a} % {b}", INTEGERS, _remainder, "a minus b times the quotient towards zero", operands=2,
         domain=_divisible, domain_words=_NONZERO),
    _row("", "{a} % {b}", FLOATS, _remainder, "C's fmod", operands=2),
    _row("cdiv", "tl.cdiv({a}, {b})", INTEGERS,
         lambda a, b: _divided(*_divisible(a + (b - b.dtype.type(1)), b)), "(a + (b - 1)) // b",
         operands=2, domain=lambda a, b: [np.where(a == np.iinfo(a.dtype).min, a.dtype.type(1), a), np.maximum(
             b, b.dtype.type(1))],
         domain_words="divisors from 1 on"),
    _row("", "{a} & {b}", INTEGERS, np.bitwise_and, "the bits of both", operands=2),
    _row("", "{a} | {b}", INTEGERS, np.bitwise_or, "the bits of either", operands=2),
    _row("", "{a} ^ {b}", INTEGERS, np.bitwise_xor, "the bits of one alone", operands=2),
    _row("", "~{a}", INTEGERS, np.invert, "the other bits"),
    _row("", "{a} << {b}", INTEGERS, np.left_shift, "a 2^b, wrapped", operands=2, domain=_shifted,
         domain_words="shifts below the width"),
    _row("", "{a} >> {b}", INTEGERS, np.right_shift, "a / 2^b, rounded down", operands=2, domain=_shifted,
         domain_words="shifts below the width"),
    *(_row("", "{a} " + sign + " {b}", _MANY, function, f"a {sign} b; of NaN only != holds", operands=2, result=_bool)
      for sign, function in _COMPARED.items()),
    _row("where", "tl.where({a} < {b}, {b}, {c})", _MANY, lambda a, b, c: np.where(a < b, b, c),
         "b where a < b, else c", operands=3),
    _row("maximum", "tl.maximum({a}, {b})", _MANY, _in_single(_larger), "the larger one; a number rather than NaN",
         operands=2, accepts=_either_zero, tolerance="of zeros either"),
    _row("minimum", "tl.minimum({a}, {b})", _MANY, _in_single(_smaller), "the smaller one; a number rather than NaN",
         operands=2, accepts=_either_zero, tolerance="of zeros either"),
    _row("maximum PropagateNan", "tl.maximum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)", _MANY, _in_single(_largest),
         "the larger one; NaN rather than a number", operands=2, accepts=_either_zero, tolerance="of zeros either"),
    _row("minimum PropagateNan", "tl.minimum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)", _MANY,
         _in_single(_smallest), "the smaller one; NaN rather than a number", operands=2, accepts=_either_zero,
         tolerance="of zeros either"),
    _row("clamp", "tl.clamp({a}, {b}, {c})", _MANY, _in_single(lambda a, b, c: _smaller(_larger(a, b), c)),
         "a between b and c; b for NaN", operands=3, accepts=_either_zero, tolerance="of zeros either",
         domain=_ordered, domain_words="b <= c, neither of them NaN"),
    _row("clamp PropagateNan", "tl.clamp({a}, {b}, {c}, propagate_nan=tl.PropagateNan.ALL)", _MANY,
         _in_single(lambda a, b, c: _smallest(_largest(a, b), c)), "a between b and c; NaN for NaN", operands=3,
         accepts=_either_zero, tolerance="of zeros either", domain=_ordered,
         domain_words="b <= c, neither of them NaN"),
    _row("fma", "tl.fma({a}, {b}, {c})", FLOATS, _fused, "a b + c, rounded once", operands=3),
    _row("umulhi", "tl.umulhi({a}, {b})", WIDE, _high, "the high half of the unsigned product", operands=2),
    _row("floor", "tl.floor({a})", LONG, np.floor, "the whole number below"),
    _row("ceil", "tl.ceil({a})", LONG, np.ceil, "the whole number above"),
    _row("sqrt", "tl.sqrt({a})", LONG, _wide(np.sqrt), "the square root", **_bound("sqrt")),
    _row("sqrt_rn", "tl.sqrt_rn({a})", ("float32",), np.sqrt, "the square root, rounded once"),
    _row("rsqrt", "tl.rsqrt({a})", LONG, _wide(lambda x: 1 / np.sqrt(x)), "1 / sqrt(a)", **_bound("rsqrt")),
    _row("div_rn", "tl.div_rn({a}, {b})", ("float32",), np.divide, "a / b, rounded once", operands=2),
    _row("fdiv", "tl.fdiv({a}, {b})", LONG, _wide(np.divide), "a / b", operands=2, **_QUOTIENT),
    _row("fdiv", "tl.fdiv({a}, {b}, ieee_rounding=True)", ("float32",), np.divide, "a / b, rounded once", operands=2),
    _row("exp", "tl.exp({a})", LONG, _wide(np.exp), "e^a", **_bound("exp")),
    _row("exp2", "tl.exp2({a})", LONG, _wide(np.exp2), "2^a", **_bound("exp2")),
    _row("log", "tl.log({a})", LONG, _wide(np.log), "the natural logarithm", **_bound("log")),
    _row("log2", "tl.log2({a})", LONG, _wide(np.log2), "the logarithm to base 2", **_bound("log2")),
    _row("sin", "tl.sin({a})", LONG, _sine(np.sin), "the sine of radians", **_bound("sin")),
    _row("cos", "tl.cos({a})", LONG, _sine(np.cos), "the cosine of radians", **_bound("cos")),
    _row("erf", "tl.erf({a})", LONG, _erf, "the error function", **_bound("erf")),
    _row("sigmoid", "tl.sigmoid({a})", LONG, _wide(lambda x: 1 / (1 + np.exp(-x))), "1 / (1 + e^-a)",
         accepts=_units(_exponential_units), tolerance="twice the ULP of exp, a sum and a quotient",
         domain=_bounded(80.0), domain_words="magnitudes up to 80"),
]  # fmt: skip


# -- conversions -------------------------------------------------------------------------------------------------
def converted(values: Array, dtype: Dtype) -> Array:
    """What ``to`` gives: floats are cut off to integers, and rounded once to floats."""
    if dtype.kind == "b":
        return values.astype(np.float64) != 0 if is_float(values.dtype) else values != 0
    if is_float(dtype):
        return judging.rounded(values.astype(np.longdouble), dtype)
    return np.trunc(values.astype(np.longdouble)).astype(dtype) if is_float(values.dtype) else values.astype(dtype)


def _fitting(values: Array, dtype: Dtype) -> Array:
    """1 for numbers that the integers do not have: what they become is open."""
    if not is_float(values.dtype) or is_float(dtype) or dtype.kind == "b":
        return values
    info, wide = np.iinfo(dtype), np.trunc(values.astype(np.longdouble))
    return np.where((wide >= info.min) & (wide <= np.longdouble(info.max)), values, values.dtype.type(1))


def _write_cast(writer: Writer, dtype: Dtype) -> None:
    into = dtype_of(writer.rng.choice((*FLOATS, *EIGHTS) if is_float(dtype) and writer.rng.random() < 0.6 else NUMBERS))
    if dtype.name in EIGHTS:
        into = dtype_of(writer.rng.choice(FLOATS))
    elif writer.rng.random() < 0.05:
        into = np.dtype(bool)
    values = _fitting(drawing.numbers(writer, drawing.shape_of(writer), dtype), into)
    with np.errstate(all="ignore"):
        ways = accepted(lambda given: converted(given, into), values, result=into)
    text = f"tl.cast({_truth(writer.load(values).name, values)}, {TYPES[into]})"
    writer.add_judged(text, (ways[0].astype(into), judging.exact(*ways)))


def _write_cut(writer: Writer, dtype: Dtype) -> None:
    narrower = [one for one in (*FLOATS, *EIGHTS) if dtype_of(one).itemsize < dtype.itemsize]
    into = dtype_of(writer.rng.choice(narrower))
    values = drawing.numbers(writer, drawing.shape_of(writer), dtype)
    zero = writer.rng.random() < 0.7
    with np.errstate(all="ignore"):
        ways = accepted(lambda given: judging.rounded(given.astype(np.longdouble), into, zero), values, result=into)
    rounding = "rtz" if zero else "rtne"
    text = f"tl.cast({writer.load(values).name}, {TYPES[into]}, fp_downcast_rounding='{rounding}')"
    writer.add_judged(text, (ways[0].astype(into), judging.exact(*ways)))


def _write_bits(writer: Writer, dtype: Dtype) -> None:
    into = dtype_of(writer.rng.choice([one for one in ALL[1:] if dtype_of(one).itemsize == dtype.itemsize]))
    values = drawing.numbers(writer, drawing.shape_of(writer), dtype)
    text = f"tl.cast({writer.load(values).name}, {TYPES[into]}, bitcast=True)"
    writer.add_judged(text, (np.zeros(values.shape, into), judging.exact(np.ascontiguousarray(values).view(into))))


ELEMENTWISE += [
    Row("cast", ALL, "rounded once to floats, cut off to integers; past the largest f8 that", _write_cast,
        domain="floats to integers: numbers that the type has; 8-bit floats from and to floats"),
    Row("cast", ("float32", "float16", "bfloat16"), "a narrower float, rounded to nearest even or towards zero",
        _write_cut),
    Row("cast", ALL[1:], "a type of the same width, with the same bits", _write_bits),
]  # fmt: skip
