"""GLSL.std.450: the functions of numbers that modules may call."""

from __future__ import annotations

from collections.abc import Callable

from ..spirv.opcodes import Glsl
from .code import suffix
from .decoded_module import ModuleInstruction
from .errors import Untranslatable
from .registry import translates
from .translation import Translation

#: Function → LLVM's intrinsic with the same operands. Minima and maxima give the number where one operand is none. Not
#: minimumnum and maximumnum, which LLVM 22 gets wrong for AVX-512: maximumnum(NaN, -1) is 1.
_INTRINSICS = {
    Glsl.FAbs: "fabs",
    Glsl.Floor: "floor",
    Glsl.Ceil: "ceil",
    Glsl.Trunc: "trunc",
    Glsl.RoundEven: "roundeven",
    Glsl.Sqrt: "sqrt",
    Glsl.Fma: "fma",
    Glsl.NMin: "minnum",
    Glsl.NMax: "maxnum",
    Glsl.FMin: "minnum",
    Glsl.FMax: "maxnum",
    Glsl.Exp: "exp",
    Glsl.Exp2: "exp2",
    Glsl.Log: "log",
    Glsl.Log2: "log2",
    Glsl.Sin: "sin",
    Glsl.Cos: "cos",
    Glsl.SMin: "smin",
    Glsl.SMax: "smax",
    Glsl.UMin: "umin",
    Glsl.UMax: "umax",
}
_ONE = {"half": 0x3C00, "float": 0x3F800000, "double": 0x3FF << 52}


@translates("OpExtInst")
def _function(t: Translation, item: ModuleInstruction) -> None:
    number = item.operands[1]
    if number in _INTRINSICS:
        name = _INTRINSICS[number]
        rule: Callable[[list[str], str, str], str] = lambda values, of, to: t.code.intrinsic(name, to, *values)  # noqa: E731
    elif number in _RULES:
        rule = lambda values, of, to: _RULES[number](t, values, to, t.type_name(t.keys(item.result)[0]))  # noqa: E731
    else:
        raise Untranslatable(t.program.name, f"function {number} of GLSL.std.450", t.where(item))
    operands = [t.keys(operand) for operand in item.operands[2:]]
    for index, key in enumerate(t.keys(item.result)):
        t.compute(key, [found[index] for found in operands], rule)


def _inverse_root(t: Translation, values: list[str], to: str, scalar: str) -> str:
    root = t.code.intrinsic("sqrt", to, values[0])
    return t.code.emit(f"fdiv {to} {t.splat_literal(to, scalar, _ONE[scalar])}, {root}")


def _clamp(t: Translation, values: list[str], to: str, scalar: str) -> str:
    least = t.code.intrinsic("maxnum", to, values[0], values[1])
    return t.code.intrinsic("minnum", to, least, values[2])


def _scaled(t: Translation, values: list[str], to: str, scalar: str) -> str:
    """A number times a power of two whose exponent is an integer of 32 bits."""
    exponent = to.replace(scalar, "i32")
    name = f"llvm.ldexp.{suffix(to)}.{suffix(exponent)}"
    return t.code.call(name, to, [(to, values[0]), (exponent, values[1])])


def _highest(t: Translation, values: list[str], to: str, scalar: str) -> str:
    """The place of the highest bit, -1 of 0."""
    name = f"llvm.ctlz.{suffix(to)}"
    zeros = t.code.call(name, to, [(to, values[0]), ("i1", "false")])
    return t.code.emit(f"sub {to} {t.splat_literal(to, scalar, int(scalar[1:]) - 1)}, {zeros}")


def _lowest(t: Translation, values: list[str], to: str, scalar: str) -> str:
    """The place of the lowest bit, -1 of 0."""
    name = f"llvm.cttz.{suffix(to)}"
    zeros = t.code.call(name, to, [(to, values[0]), ("i1", "false")])
    empty = t.code.emit(f"icmp eq {to} {values[0]}, {t.splat_literal(to, scalar, 0)}")
    mask = to.replace(scalar, "i1")
    return t.code.emit(f"select {mask} {empty}, {to} {t.splat_literal(to, scalar, -1)}, {to} {zeros}")


_RULES: dict[int, Callable[[Translation, list[str], str, str], str]] = {
    Glsl.InverseSqrt: _inverse_root,
    Glsl.Ldexp: _scaled,
    Glsl.NClamp: _clamp,
    Glsl.FClamp: _clamp,
    Glsl.FindUMsb: _highest,
    Glsl.FindILsb: _lowest,
}
