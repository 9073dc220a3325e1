"""What one instruction is: its types, the modifiers that it may have, and what it computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ptx.program import Instruction, PtxError
from ...ptx.types import TYPES, PtxType
from ..numerics.numeric import Numeric
from .registers import Registers, Value

#: PTX's rounding modes → the modes of numerics/precise.py.
ROUNDING = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}

#: ``formula(n, modifiers, type, *arguments)``.
Formula = Callable[..., Value]


@dataclass(frozen=True)
class InstructionForm:
    """``arguments``: the type of each, "t" for the instruction's own, "w" for twice its width; ``result`` likewise.
    ``modifiers``: what may stand before the type."""

    formula: Formula
    types: frozenset[str]
    arguments: tuple[str, ...]
    result: str = "t"
    modifiers: frozenset[str] = frozenset()


def form(
    formula: Formula, types: str, arguments: str = "t t", result: str = "t", modifiers: str = ""
) -> InstructionForm:
    """A row of a table, with names apart by spaces."""
    return InstructionForm(
        formula, frozenset(types.split()), tuple(arguments.split()), result, frozenset(modifiers.split())
    )


def type_named(name: str, instruction: Instruction) -> PtxType:
    """The type of that name. Raises PtxError."""
    if name not in TYPES:
        raise PtxError(f"'{instruction}' names no type that is translated")
    return TYPES[name]


def resolve(name: str, type_: PtxType) -> PtxType:
    """A type of a row."""
    if name == "t":
        return PtxType(type_.name, type_.kind, type_.width)
    return TYPES[f"{type_.kind}{2 * type_.width}"] if name == "w" else TYPES[name]


def check_count(instruction: Instruction, count: int) -> None:
    """Raises PtxError if an instruction has more or fewer operands, its result counted."""
    if len(instruction.operands) != count:
        raise PtxError(f"'{instruction}' has {len(instruction.operands)} operands, and takes {count}")


def check_modifiers(instruction: Instruction, given: tuple[str, ...], known: frozenset[str]) -> None:
    """Raises PtxError for a modifier that is not known."""
    for modifier in given:
        if modifier not in known:
            raise PtxError(f"'.{modifier}' of '{instruction}' is not translated")


def apply(registers: Registers, instruction: Instruction, row: InstructionForm) -> None:
    """Emits an instruction by its row: component by component where the type has two."""
    type_ = type_named(instruction.modifiers[-1], instruction)
    modifiers = instruction.modifiers[:-1]
    check_count(instruction, 1 + len(row.arguments))
    check_modifiers(instruction, modifiers, row.modifiers)
    n: Numeric = registers.numeric(type_)
    guard = registers.predicate(instruction.guard) if instruction.guard else None
    target, *sources = instruction.operands
    kinds = [resolve(name, type_) for name in row.arguments]
    result = resolve(row.result, type_)
    if type_.count == 1:
        values = [registers.read(source, kind) for source, kind in zip(sources, kinds, strict=True)]
        registers.write(target, result, row.formula(n, modifiers, type_, *values), guard)
        return
    pairs = [registers.pair(source) for source in sources]
    halves = [
        registers.untyped(row.formula(n, modifiers, type_, *map(registers.typed, half, kinds)), result)
        for half in zip(*pairs, strict=True)
    ]
    registers.write(target, TYPES["b32"], halves[0] | (halves[1] << 16), guard)
