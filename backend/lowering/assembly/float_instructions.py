"""PTX's float instructions (PTX ISA, 9.7.3 to 9.7.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ptx.program import PtxError
from ...ptx.types import PtxType
from ..numerics import elementary, native, precise, quotients
from ..numerics.conversions import saturate
from ..numerics.numeric import Bool, Int, Numeric, Real
from .instruction_forms import ROUNDING, Formula, InstructionForm, form
from .registers import Value

_ALL = "f16 f16x2 bf16 bf16x2 f32 f64"
_ROUNDINGS = "rn rz rm rp"


def _mode(modifiers: Sequence[str]) -> str:
    return next((ROUNDING[modifier] for modifier in modifiers if modifier in ROUNDING), "rn")


def flushed(n: Numeric, x: Real) -> Real:
    """Zero, with the sign, instead of a subnormal f32, or bf16, whose exponents are the same."""
    bits = x.bits()
    return n.where(x.magnitude().ult(0x00800000), bits & 0x80000000, bits).as_real()


def _with_modifiers(compute: Callable[..., Real]) -> Formula:
    """``.ftz`` flushes what goes in and out, ``.sat`` clamps to [0, 1]."""

    def formula(n: Numeric, modifiers: Sequence[str], type_: PtxType, *values: Real) -> Real:
        flush = "ftz" in modifiers
        if flush and type_.width != 32 and type_.kind != "bf":
            raise PtxError(f"'.ftz' is translated for f32 and bf16, not for .{type_.name}")
        result = compute(n, modifiers, *(flushed(n, value) if flush else value for value in values))
        if "sat" in modifiers:
            result = saturate(n, result)
        return flushed(n, result) if flush else result

    return formula


def _add(n: Numeric, modifiers: Sequence[str], a: Real, b: Real) -> Real:
    mode = _mode(modifiers)
    return a + b if mode == "rn" else precise.add(n, a, b, mode)


def _subtract(n: Numeric, modifiers: Sequence[str], a: Real, b: Real) -> Real:
    mode = _mode(modifiers)
    return a - b if mode == "rn" else precise.add(n, a, -b, mode)


def _multiply(n: Numeric, modifiers: Sequence[str], a: Real, b: Real) -> Real:
    mode = _mode(modifiers)
    return a * b if mode == "rn" else precise.multiply(n, a, b, mode)


def _divide(n: Numeric, modifiers: Sequence[str], a: Real, b: Real) -> Real:
    return a / b if {"approx", "full"} & set(modifiers) else quotients.divide(n, a, b, _mode(modifiers))


def _reciprocal(n: Numeric, modifiers: Sequence[str], a: Real) -> Real:
    return 1.0 / a if "approx" in modifiers else quotients.divide(n, n.real(1.0), a, _mode(modifiers))


def _root(n: Numeric, modifiers: Sequence[str], a: Real) -> Real:
    return elementary.sqrt(n, a) if "approx" in modifiers else quotients.sqrt(n, a, _mode(modifiers))


def _plain(function: Callable[..., Real]) -> Formula:
    """A function of numbers alone."""
    return _with_modifiers(lambda n, modifiers, *values: function(n, *values))


def _fused_wide(n: Numeric, modifiers: Sequence[str], a: Real, b: Real, c: Real) -> Real:
    return precise.fma(n, a, b, c, _mode(modifiers))


def _fused(n: Numeric, modifiers: Sequence[str], type_: PtxType, a: Real, b: Real, c: Real) -> Value:
    """``a b + c``, rounded once. Products of numbers of 16 bits are exact in f32, and their sums are rounded to odd."""
    compute = _fused_wide if type_.width > 16 else lambda n, modifiers, a, b, c: precise.odd_sum(n, a * b, c)
    return _with_modifiers(compute)(n, modifiers, type_, a, b, c)


def _absolute(n: Numeric, x: Real) -> Real:
    return x.magnitude().as_real()


def _order(n: Numeric, x: Real) -> Int:
    """A signed integer that is in the order of the numbers, -0 before +0."""
    bits = x.bits()
    return bits ^ (bits.sar(n.width - 1) & ((1 << (n.width - 1)) - 1))


def _extreme(largest: bool) -> Callable[..., Real]:
    """min and max: of a NaN and a number the number, or with ``.NaN`` a NaN. ``.xorsign.abs`` compares magnitudes and
    gives the product's sign."""

    def compute(n: Numeric, modifiers: Sequence[str], a: Real, b: Real) -> Real:
        sign = (a.bits() ^ b.bits()) & (1 << (n.width - 1))
        if "abs" in modifiers:
            a, b = _absolute(n, a), _absolute(n, b)
        first, second = _order(n, a), _order(n, b)
        value = n.where(first.sgt(second) if largest else first.slt(second), a, b)
        either, both = a.is_nan() | b.is_nan(), a.is_nan() & b.is_nan()
        nan = n.real(float("nan"))
        if "NaN" in modifiers:
            value = n.where(either, nan, value)
        else:
            value = n.where(both, nan, n.where(a.is_nan(), b, n.where(b.is_nan(), a, value)))
        if "abs" not in modifiers:
            return value
        return n.where(value.is_nan(), value, (value.magnitude() | sign).as_real())

    return compute


def _tested(n: Numeric, modifiers: Sequence[str], type_: PtxType, x: Real) -> Bool:
    smallest = 1 << n.mantissa
    tests: dict[str, Callable[[], Bool]] = {
        "finite": x.is_finite,
        "infinite": x.is_inf,
        "number": lambda: ~x.is_nan(),
        "notanumber": x.is_nan,
        "normal": lambda: x.is_finite() & ~x.magnitude().ult(smallest),
        "subnormal": lambda: x.magnitude().ult(smallest) & ~x.is_zero(),
    }
    return tests[modifiers[0]]()


_TESTS = "finite infinite number notanumber normal subnormal"

#: Instruction → what it computes on floats.
FLOATS: dict[str, InstructionForm] = {
    "add": form(_with_modifiers(_add), _ALL, modifiers=f"{_ROUNDINGS} ftz sat"),
    "sub": form(_with_modifiers(_subtract), _ALL, modifiers=f"{_ROUNDINGS} ftz sat"),
    "mul": form(_with_modifiers(_multiply), _ALL, modifiers=f"{_ROUNDINGS} ftz sat"),
    "fma": form(_fused, _ALL, "t t t", modifiers=f"{_ROUNDINGS} ftz sat"),
    "mad": form(_fused, "f32 f64", "t t t", modifiers=f"{_ROUNDINGS} ftz sat"),
    "div": form(_with_modifiers(_divide), "f32 f64", modifiers=f"{_ROUNDINGS} approx full ftz"),
    "rcp": form(_with_modifiers(_reciprocal), "f32 f64", "t", modifiers=f"{_ROUNDINGS} approx ftz"),
    "sqrt": form(_with_modifiers(_root), "f32 f64", "t", modifiers=f"{_ROUNDINGS} approx ftz"),
    "rsqrt": form(_plain(elementary.rsqrt), "f32 f64", "t", modifiers="approx ftz"),
    "ex2": form(_plain(native.exp2), "f16 f16x2 bf16 bf16x2 f32", "t", modifiers="approx ftz"),
    "lg2": form(_plain(elementary.log2), "f32", "t", modifiers="approx ftz"),
    "sin": form(_plain(elementary.sin), "f32", "t", modifiers="approx ftz"),
    "cos": form(_plain(elementary.cos), "f32", "t", modifiers="approx ftz"),
    "tanh": form(_plain(elementary.tanh), "f16 f16x2 bf16 bf16x2 f32", "t", modifiers="approx"),
    "abs": form(_plain(_absolute), _ALL, "t", modifiers="ftz"),
    "neg": form(_plain(lambda n, x: -x), _ALL, "t", modifiers="ftz"),
    "copysign": form(_plain(lambda n, x, y: y.with_sign_of(x)), "f32 f64"),
    "min": form(_with_modifiers(_extreme(largest=False)), _ALL, modifiers="ftz NaN xorsign abs"),
    "max": form(_with_modifiers(_extreme(largest=True)), _ALL, modifiers="ftz NaN xorsign abs"),
    "testp": form(_tested, "f32 f64", "t", "pred", _TESTS),
}
