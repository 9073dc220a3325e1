"""Conversions to pairs of numbers of at most 8 bits, and from them (PTX ISA, 9.7.9, cvt).

The first of two f32 becomes the upper half of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ptx.program import Instruction, PtxError
from ...ptx.types import TYPES
from ..numerics.float_formats import format_to_f32, round_to_format
from ..numerics.numeric import Bool, Int, Numeric, Real
from .instruction_forms import check_count
from .registers import Registers


@dataclass(frozen=True)
class Narrow:
    """``bits`` of a number; ``encode`` gives its code for an f32 by the rounding named. ``decode``: the f32 of a code,
    where pairs are converted back."""

    bits: int
    roundings: frozenset[str]
    encode: Callable[[Numeric, Real, str], Int]
    decode: Callable[[Numeric, Int], Real] | None = None


def _fp8(name: str) -> Narrow:
    def encode(n: Numeric, x: Real, mode: str) -> Int:
        return Int(n, n.f.zero_extend(round_to_format(n.emitter, x.id, name), 32))

    def decode(n: Numeric, code: Int) -> Real:
        return Real(n, format_to_f32(n.emitter, code.id, name))

    return Narrow(8, frozenset({"rn"}), encode, decode)


#: Half-way points between the numbers of e2m1, 0, 0.5, 1, 1.5, 2, 3, 4 and 6; whether a tie is rounded up, to even.
_E2M1_TIES = ((0.25, False), (0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True), (5.0, False))


def _e2m1(n: Numeric, x: Real, mode: str) -> Int:
    """To nearest even; past the largest and of a NaN 6."""
    size = x.magnitude().as_real()
    code = n.integer(0, 32)
    for tie, up in _E2M1_TIES:
        code = code + n.where(size >= tie if up else size > tie, n.integer(1, 32), 0)
    return n.where(x.is_nan(), n.integer(7, 32), code | ((x.bits() >> 31) << 3))


def _of_e2m1(n: Numeric, code: Int) -> Real:
    """Exact. Below 1 there are 0 and 0.5; the others have their exponent and significand in the code."""
    size = code & 7
    bits = n.where(size.ult(2), size * 0x3F000000, (size + 2 * 126) << 22)
    return (bits | ((code >> 3) << 31)).as_real()


def _ue8m0(n: Numeric, x: Real, mode: str) -> Int:
    """The power of two 2^(code - 127) next to the magnitude, below (rz) or above (rp); a NaN is 255, and infinity
    254, which is the largest."""
    size = x.magnitude()
    exponent, rest = size >> 23, size & 0x7FFFFF
    if mode == "rp":
        # Of subnormal numbers those up to 2^-127 have code 0.
        exact = n.where(exponent.eq(0), n.integer(0x400000, 32), 0)
        exponent = exponent + n.where(rest.ugt(exact), n.integer(1, 32), 0)
    exponent = n.where(exponent.ugt(254), 254, exponent)
    return n.where(x.is_nan(), n.integer(255, 32), exponent)


#: Pairs by their names in cvt.
NARROW = {
    "e4m3x2": _fp8("f8E4M3FN"),
    "e5m2x2": _fp8("f8E5M2"),
    "e2m1x2": Narrow(4, frozenset({"rn"}), _e2m1, _of_e2m1),
    "ue8m0x2": Narrow(8, frozenset({"rz", "rp"}), _ue8m0),
}


def convert_pair(
    registers: Registers, instruction: Instruction, modifiers: list[str], to: str, of: str, guard: Bool | None
) -> None:
    """``cvt.rn.satfinite.e4m3x2.f32 d, a, b`` and ``cvt.rn.f16x2.e4m3x2 d, a``, also to bf16x2."""
    n = registers.n
    target, source = NARROW.get(to), NARROW.get(of)
    rest = set(modifiers) - {"satfinite"}
    if target and of == "f32" and "satfinite" in modifiers and len(rest) == 1 and rest <= target.roundings:
        check_count(instruction, 3)
        codes = []
        for operand in instruction.operands[1:]:
            value = registers.read(operand, TYPES["f32"])
            assert isinstance(value, Real)
            codes.append(target.encode(n, value, next(iter(rest))))
        registers.write(
            instruction.operands[0], TYPES[f"b{2 * target.bits}"], codes[1] | (codes[0] << target.bits), guard
        )
        return
    if source and source.decode and to in ("f16x2", "bf16x2") and modifiers == ["rn"]:
        check_count(instruction, 2)
        pair = registers.read(instruction.operands[1], TYPES[f"b{2 * source.bits}"])
        assert isinstance(pair, Int)
        mask = (1 << source.bits) - 1
        low, high = (
            registers.untyped(source.decode(n, code), TYPES[to.removesuffix("x2")])
            for code in (pair & mask, (pair >> source.bits) & mask)
        )
        registers.write(instruction.operands[0], TYPES["b32"], low | (high << 16), guard)
        return
    raise PtxError(
        f"'{instruction}' is not translated",
        "for narrow formats, these are: from f32, cvt.rn.satfinite to e4m3x2, e5m2x2 and e2m1x2, and cvt.rz and "
        "cvt.rp.satfinite to ue8m0x2; from e4m3x2, e5m2x2 and e2m1x2, cvt.rn to f16x2 and bf16x2",
    )
