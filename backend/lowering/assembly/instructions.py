"""One table from instruction to what is emitted for it."""

from __future__ import annotations

from collections.abc import Callable

from ...ptx.program import Instruction, PtxError
from ...ptx.types import TYPES
from .comparisons import select, select_by_sign, set_number, set_predicate
from .float_instructions import FLOATS
from .instruction_forms import InstructionForm, apply
from .moves import convert, move
from .ptx_integers import INTEGERS, PREDICATES, WIDE
from .registers import Registers

#: Instructions that are more than a function of their operands.
_OTHERS: dict[str, Callable[[Registers, Instruction], None]] = {
    "mov": move,
    "cvt": convert,
    "setp": set_predicate,
    "set": set_number,
    "selp": select,
    "slct": select_by_sign,
}

#: Every instruction that is translated.
NAMES = frozenset(_OTHERS) | frozenset(FLOATS) | frozenset(INTEGERS)


def execute(registers: Registers, instruction: Instruction) -> None:
    """Emits one instruction. Raises PtxError."""
    if instruction.name not in NAMES:
        raise PtxError(
            f"the PTX instruction '{instruction}' is not translated",
            "docs/internals/inline-ptx.md lists the ones that are",
        )
    if not instruction.modifiers:
        raise PtxError(f"'{instruction}' names no type")
    other = _OTHERS.get(instruction.name)
    if other is not None:
        other(registers, instruction)
        return
    apply(registers, instruction, _row(instruction))


def _row(instruction: Instruction) -> InstructionForm:
    name = instruction.modifiers[-1]
    type_ = TYPES.get(name)
    table = FLOATS if type_ and type_.floating else INTEGERS
    if type_ and type_.kind == "pred":
        table = PREDICATES
    elif "wide" in instruction.modifiers:
        table = WIDE
    row = table.get(instruction.name)
    if row is None or name not in row.types:
        raise PtxError(f"'{instruction}' is not translated: {instruction.name} takes {_types(instruction.name)}")
    return row


def _types(name: str) -> str:
    """The types of an instruction, in words."""
    found = {type_ for table in (FLOATS, INTEGERS, PREDICATES) if name in table for type_ in table[name].types}
    return ", ".join(sorted(found, key=list(TYPES).index))
