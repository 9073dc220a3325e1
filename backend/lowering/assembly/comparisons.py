"""PTX's comparisons and choices: setp, set, selp, slct (PTX ISA, 9.7.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ptx.program import Instruction, PtxError
from ...ptx.types import TYPES, PtxType
from ..numerics.numeric import Bool, Int, Real
from .float_instructions import flushed
from .instruction_forms import check_count, check_modifiers, resolve, type_named
from .ptx_integers import less
from .registers import Registers, Value, chosen

_ORDERED: dict[str, Callable[[Any, Any], Bool]] = {
    "eq": lambda a, b: a.eq(b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
#: The unsigned comparisons' own names.
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_JOINED: dict[str, Callable[[Bool, Bool], Bool]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _of_floats(name: str, a: Real, b: Real) -> Bool | None:
    """A comparison; those that end in ``u`` hold of NaN, too."""
    unordered = a.is_nan() | b.is_nan()
    if name in ("num", "nan"):
        return ~unordered if name == "num" else unordered
    if name == "ne":
        return ~unordered & ~a.eq(b)
    if name == "neu":
        return a.ne(b)
    if name in _ORDERED:
        return _ORDERED[name](a, b)
    if name.endswith("u") and name[:-1] in _ORDERED:
        return _ORDERED[name[:-1]](a, b) | unordered
    return None


def _of_integers(name: str, type_: PtxType, a: Int, b: Int) -> Bool | None:
    if name in ("eq", "ne"):
        return a.eq(b) if name == "eq" else a.ne(b)
    if type_.kind == "b" or (name in _UNSIGNED and type_.signed):
        return None
    name = _UNSIGNED.get(name, name)
    if name in ("lt", "ge"):
        return less(type_, a, b) if name == "lt" else ~less(type_, a, b)
    if name in ("gt", "le"):
        return less(type_, b, a) if name == "gt" else ~less(type_, b, a)
    return None


def _compared(registers: Registers, instruction: Instruction, type_: PtxType) -> tuple[Bool, Bool]:
    """What the operands after the first compare as, and the opposite; each joined with a predicate where the
    instruction says so."""
    name, *rest = instruction.modifiers
    joined = next((modifier for modifier in rest if modifier in _JOINED), None)
    check_count(instruction, 4 if joined else 3)
    a, b = (registers.read(operand, type_) for operand in instruction.operands[1:3])
    found = None
    if isinstance(a, Real) and isinstance(b, Real):
        if "ftz" in rest and type_.width == 32:
            a, b = flushed(a.n, a), flushed(b.n, b)
        found = _of_floats(name, a, b)
    elif isinstance(a, Int) and isinstance(b, Int):
        found = _of_integers(name, type_, a, b)
    if found is None:
        raise PtxError(f"'{instruction}' is not a comparison")
    opposite = ~found
    if joined:
        other = registers.read(instruction.operands[3], TYPES["pred"])
        assert isinstance(other, Bool)
        return _JOINED[joined](found, other), _JOINED[joined](opposite, other)
    return found, opposite


def _guard(registers: Registers, instruction: Instruction) -> Bool | None:
    return registers.predicate(instruction.guard) if instruction.guard else None


def set_predicate(registers: Registers, instruction: Instruction) -> None:
    """``setp.lt.f32 p|q, a, b``."""
    type_ = type_named(instruction.modifiers[-1], instruction)
    if len(instruction.modifiers) < 2 or type_.count > 1:
        raise PtxError(f"'{instruction}' is not a comparison of single numbers")
    check_modifiers(instruction, instruction.modifiers[1:-1], frozenset({"ftz", *_JOINED}))
    found, opposite = _compared(registers, instruction, type_)
    guard = _guard(registers, instruction)
    registers.write(instruction.operands[0], TYPES["pred"], found, guard)
    if instruction.second is not None:
        registers.write(instruction.second, TYPES["pred"], opposite, guard)


def set_number(registers: Registers, instruction: Instruction) -> None:
    """``set.lt.u32.f32 d, a, b``: all bits, or 1.0, where it holds."""
    if len(instruction.modifiers) < 3:
        raise PtxError(f"'{instruction}' names no two types")
    result = type_named(instruction.modifiers[-2], instruction)
    type_ = type_named(instruction.modifiers[-1], instruction)
    if result.bits != 32 or result.count > 1 or type_.count > 1:
        raise PtxError(f"'{instruction}' is not a comparison of single numbers")
    check_modifiers(instruction, instruction.modifiers[1:-2], frozenset({"ftz", *_JOINED}))
    found, _ = _compared(registers, instruction, type_)
    n = registers.n
    true = n.integer(0x3F800000 if result.floating else -1)
    registers.write(instruction.operands[0], TYPES["b32"], n.where(found, true, 0), _guard(registers, instruction))


def _choice(condition: Bool, sources: Sequence[Value], registers: Registers, instruction: Instruction) -> None:
    type_ = type_named(instruction.modifiers[-1 if instruction.name == "selp" else -2], instruction)
    value = chosen(registers.numeric(type_), condition, *sources)
    registers.write(instruction.operands[0], resolve("t", type_), value, _guard(registers, instruction))


def select(registers: Registers, instruction: Instruction) -> None:
    """``selp.b32 d, a, b, p``."""
    type_ = type_named(instruction.modifiers[-1], instruction)
    check_modifiers(instruction, instruction.modifiers[:-1], frozenset())
    check_count(instruction, 4)
    condition = registers.read(instruction.operands[3], TYPES["pred"])
    assert isinstance(condition, Bool)
    _choice(condition, [registers.read(source, type_) for source in instruction.operands[1:3]], registers, instruction)


def select_by_sign(registers: Registers, instruction: Instruction) -> None:
    """``slct.b32.s32 d, a, b, c``: ``a`` where ``c`` is not negative; of a NaN ``b``."""
    if len(instruction.modifiers) < 2:
        raise PtxError(f"'{instruction}' names no two types")
    type_, other = (type_named(name, instruction) for name in instruction.modifiers[-2:])
    check_modifiers(instruction, instruction.modifiers[:-2], frozenset({"ftz"}))
    check_count(instruction, 4)
    sign = registers.read(instruction.operands[3], other)
    if isinstance(sign, Real):
        condition = (flushed(sign.n, sign) if "ftz" in instruction.modifiers else sign) >= 0.0
    elif isinstance(sign, Int):
        condition = ~sign.slt(0)
    else:
        raise PtxError(f"'{instruction}' chooses by a number")
    _choice(condition, [registers.read(source, type_) for source in instruction.operands[1:3]], registers, instruction)
