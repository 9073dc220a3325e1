"""PTX's moves and conversions: mov, cvt (PTX ISA, 9.7.9)."""

from __future__ import annotations

from ...ptx.program import Instruction, PtxError, Register, Vector
from ...ptx.types import TYPES, PtxType
from ..numerics import precise
from ..numerics.conversions import from_integer, saturate, to_integer
from ..numerics.numeric import Bool, Int, Numeric, Real
from .float_instructions import flushed
from .instruction_forms import ROUNDING, check_count, check_modifiers, type_named
from .narrow_formats import NARROW, convert_pair
from .registers import Registers, Value
from .stochastic import convert_at_random


def move(registers: Registers, instruction: Instruction) -> None:
    """``mov.b32 d, a``, ``mov.b32 d, {a, b}`` and ``mov.b32 {a, b}, d``."""
    check_count(instruction, 2)
    check_modifiers(instruction, instruction.modifiers[:-1], frozenset())
    type_ = type_named(instruction.modifiers[-1], instruction)
    guard = registers.predicate(instruction.guard) if instruction.guard else None
    target, source = instruction.operands
    if isinstance(source, Vector):
        if not isinstance(target, Register):
            raise PtxError(f"'{instruction}' moves parts to parts")
        registers.set_bits(target, _joined(registers, instruction, source, type_), guard)
    elif isinstance(target, Vector):
        if not isinstance(source, Register):
            raise PtxError(f"'{instruction}' takes a constant apart")
        _take_apart(registers, instruction, target, registers.bits(source), type_, guard)
    elif type_.kind == "pred":
        registers.write(target, type_, registers.read(source, type_), guard)
    else:
        bits = TYPES[f"b{type_.bits}"]
        value = (
            registers.read(source, bits)
            if isinstance(source, Register)
            else registers.untyped(registers.read(source, type_), type_)
        )
        registers.write(target, bits, value, guard)


def _parts(instruction: Instruction, vector: Vector, type_: PtxType, registers: Registers) -> int:
    """Bits of each part."""
    count = len(vector.parts)
    width = type_.bits // count
    if count not in (2, 4) or any(part is not None and registers.width(part) != width for part in vector.parts):
        raise PtxError(f"'{instruction}' of .{type_.name} has {count} parts, which are not registers of {width} bits")
    return width


def _joined(registers: Registers, instruction: Instruction, source: Vector, type_: PtxType) -> Int:
    width = _parts(instruction, source, type_, registers)
    container = max(type_.bits, 32)
    result = registers.n.integer(0, container)
    for place, part in enumerate(source.parts):
        if part is None:
            raise PtxError("'_' has no value")
        bits = registers.bits(part)
        wide = bits if bits.width == container else bits.resize(container)
        result = wide if place == 0 else result | (wide << (place * width))
    return result


def _take_apart(
    registers: Registers, instruction: Instruction, target: Vector, bits: Int, type_: PtxType, guard: Bool | None
) -> None:
    width = _parts(instruction, target, type_, registers)
    if bits.width != max(type_.bits, 32):
        raise PtxError(f"'{instruction}' takes a register of {bits.width} bits apart")
    for place, part in enumerate(target.parts):
        if part is not None:
            registers.set_bits(part, bits >> (place * width), guard)


# -- conversions -------------------------------------------------------------------------------------------------
_ROUNDINGS = frozenset(ROUNDING)
_TO_INTEGER = frozenset(f"{name}i" for name in ROUNDING)
_RANGES = frozenset({"ftz", "sat", "satfinite"})


def convert(registers: Registers, instruction: Instruction) -> None:
    """``cvt.rn.f16.f32 d, a``; ``cvt.rn.f16x2.f32 d, a, b``, with ``a`` in the upper half."""
    if len(instruction.modifiers) < 2:
        raise PtxError(f"'{instruction}' names no two types")
    *modifiers, to, of = instruction.modifiers
    guard = registers.predicate(instruction.guard) if instruction.guard else None
    if "rs" in modifiers:
        convert_at_random(registers, instruction, modifiers, to, of, guard)
        return
    if to in NARROW or of in NARROW:
        convert_pair(registers, instruction, modifiers, to, of, guard)
        return
    target, source = type_named(to, instruction), type_named(of, instruction)
    check_modifiers(instruction, tuple(modifiers), _ROUNDINGS | _TO_INTEGER | _RANGES)
    if "satfinite" in modifiers:
        raise PtxError(f"'.satfinite' of '{instruction}' is translated only for formats of at most 8 bits")
    if target.count == 2:
        check_count(instruction, 3)
        if of != "f32" or "rn" not in modifiers:
            raise PtxError(f"'{instruction}' is translated only from f32, rounded to nearest (.rn)")
        high, low = (
            registers.untyped(
                _converted(registers, instruction, modifiers, source, _half(target), registers.read(operand, source)),
                _half(target),
            )
            for operand in instruction.operands[1:]
        )
        registers.write(instruction.operands[0], TYPES["b32"], low | (high << 16), guard)
        return
    check_count(instruction, 2)
    if "pred" in (to, of) or source.count == 2:
        raise PtxError(f"'{instruction}' is not translated")
    value = _converted(
        registers, instruction, modifiers, source, target, registers.read(instruction.operands[1], source)
    )
    registers.write(instruction.operands[0], target, value, guard)


def _half(type_: PtxType) -> PtxType:
    return TYPES["f16" if type_.kind == "f" else "bf16"]


def _converted(
    registers: Registers, instruction: Instruction, modifiers: list[str], source: PtxType, target: PtxType, value: Value
) -> Value:
    n = registers.numeric(target if target.floating else source)
    mode = next((ROUNDING[modifier.removesuffix("i")] for modifier in modifiers if modifier not in _RANGES), "")
    if isinstance(value, Real):
        if "ftz" in modifiers and source.width == 32:
            value = flushed(value.n, value)
        if not target.floating:
            return (
                to_integer(value.n, value, mode or "rz", max(target.width, 32), target.signed)
                if (target.width >= 32)
                else _narrow(to_integer(value.n, value, mode or "rz", 32, True), target)
            )
        return _float_to_float(n, instruction, modifiers, mode, source, target, value)
    assert isinstance(value, Int)
    if target.floating:
        if target.width == 16:
            raise PtxError(f"'{instruction}' is not translated: convert to f32 first, then to .{target.name}")
        return from_integer(n, value, mode or "rn", source.signed)
    if "sat" in modifiers:
        raise PtxError(f"'.sat' of '{instruction}' is not translated between integers")
    return value.resize(64, source.signed) if target.width == 64 and value.width == 32 else _truncated(value, target)


def _truncated(value: Int, target: PtxType) -> Int:
    """The low bits of an integer, as a number of the target's type."""
    if value.width == 64 and target.width < 64:
        value = value.resize(32)
    if target.width < 32:
        above = 32 - target.width
        return (value << above).sar(above) if target.signed else value & ((1 << target.width) - 1)
    return value


def _narrow(value: Int, target: PtxType) -> Int:
    """An s32 clamped to the range of a narrower type."""
    n = value.n
    low, high = (
        (-(1 << (target.width - 1)), (1 << (target.width - 1)) - 1) if target.signed else (0, (1 << target.width) - 1)
    )
    value = n.where(value.slt(low), low, value)
    return n.where(value.sgt(high), high, value)


def _float_to_float(
    n: Numeric, instruction: Instruction, modifiers: list[str], mode: str, source: PtxType, target: PtxType, value: Real
) -> Real:
    """A float of another format, or of its own as an integer (``.rni``)."""
    rounded = next((modifier for modifier in modifiers if modifier in _TO_INTEGER), None)
    if rounded:
        if source != target:
            raise PtxError(f"'{instruction}' rounds to an integer of another format")
        value = {"rni": value.rint, "rzi": value.trunc, "rmi": value.floor, "rpi": value.ceil}[rounded]()
    elif target.width == 32 and source.width == 64:
        value = precise.convert(n, value, mode or "rn")
    elif target.width == 16:
        if source.width == 64:
            raise PtxError(f"'{instruction}' is not translated: convert to f32 first")
        if source != target and mode != "rn":
            raise PtxError(f"'{instruction}' is translated with rounding to nearest (.rn)")
    else:
        value = n.convert(value)
    if "sat" in modifiers:
        value = saturate(value.n, value)
    return flushed(n, value) if "ftz" in modifiers and target.width == 32 else value
