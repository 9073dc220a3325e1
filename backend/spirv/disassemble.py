"""A module as text, in the notation of SPIRV-Tools' spirv-dis, without that tool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from . import opcodes as op
from .decode import DecodedInstruction, DecodedOperand, decode, header
from .grammar import EXT_INSTRUCTION, SPEC_OPCODE, STRING, Enumerant, enumerants, extended, is_mask, shape
from .names import names_of

#: Width of a floating-point type → (significant digits, largest exponent, bits of the fraction).
_FLOATS = {16: (5, 15, 10), 32: (9, 127, 23), 64: (17, 1023, 52)}
#: The column at which the instruction's name begins.
_COLUMN = 15


def disassemble(spirv: bytes, names: bool = True, heading: bool = True, indent: bool = True) -> str:
    """The text of a module, a line an instruction.

    ``names``: ids as what they are (``%uint_4``, ``%v2float``, names from OpName) instead of their numbers.
    ``heading``: the header in comments first. ``indent``: results in a column of their own. Raises ValueError on a
    damaged module, UnknownInstruction on an opcode that the grammar does not have.
    """
    instructions = list(decode(spirv))
    known = names_of(instructions, number_text) if names else {}
    lines = heading_lines(spirv) if heading else []
    lines += _lines(instructions, lambda number: f"%{known.get(number, number)}", indent)
    return "\n".join(lines) + "\n"


def disassembled(instructions: list[DecodedInstruction]) -> list[str]:
    """The text of each instruction of a module, with names, results in a column of their own."""
    known = names_of(instructions, number_text)
    return list(_lines(instructions, lambda number: f"%{known.get(number, number)}", True))


def heading_lines(spirv: bytes) -> list[str]:
    """The header in comments."""
    found = header(spirv)
    tool, version = found.generator >> 16, found.generator & 0xFFFF
    return [
        "; SPIR-V",
        f"; Version: {found.version[0]}.{found.version[1]}",
        f"; Generator: {f'Unknown({tool})' if tool else 'Khronos'}; {version}",
        f"; Bound: {found.bound}",
        "; Schema: 0",
    ]


def _lines(instructions: Iterable[DecodedInstruction], name: Callable[[int], str], indent: bool) -> Iterable[str]:
    sets: dict[int, dict[int, str]] = {}
    widths: dict[int, int] = {}
    for instruction in instructions:
        if instruction.opcode == op.ExtInstImport:
            sets[instruction.result] = extended(str(instruction.operands[0].value))
        elif instruction.opcode == op.TypeFloat:
            widths[instruction.result] = int(instruction.operands[0].value)
        words = [instruction.name]
        if instruction.type_id:
            words.append(name(instruction.type_id))
        names = sets.get(int(instruction.operands[0].value), {}) if instruction.opcode == op.ExtInst else {}
        words += [
            _operand(operand, name, names, widths.get(instruction.type_id, 32)) for operand in instruction.operands
        ]
        result = f"{name(instruction.result)} = " if instruction.result else ""
        yield (result.rjust(_COLUMN) if indent else result) + " ".join(words)


def _operand(operand: DecodedOperand, name: Callable[[int], str], instructions: dict[int, str], width: int) -> str:
    """The text of an operand; ``instructions``: of the extended set that the instruction belongs to."""
    value = operand.value
    if operand.kind == STRING:
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float):
        return number_text(operand, width)
    number = int(value)
    if operand.is_id:
        return name(number)
    if operand.kind == EXT_INSTRUCTION:
        return instructions.get(number, str(number))
    if operand.kind == SPEC_OPCODE:
        return shape(number).name
    known = enumerants(operand.kind)
    if is_mask(operand.kind) and number:
        return "|".join(_bit(known, 1 << bit) for bit in range(number.bit_length()) if number >> bit & 1)
    return known[number].name if number in known else str(number)


def _bit(known: dict[int, Enumerant], bit: int) -> str:
    return known[bit].name if bit in known else f"{bit:#x}"


def number_text(operand: DecodedOperand, width: int) -> str:
    """A literal number: decimal, with as many digits as tell numbers of ``width`` bits apart. Infinities, NaNs,
    subnormal numbers and all of 16 bits are hexadecimal; an infinity has the exponent after the largest."""
    value = operand.value
    if not isinstance(value, float):
        return str(value)
    digits, largest, fraction_bits = _FLOATS[width]
    if width != 16 and (value == 0 or (math.isfinite(value) and abs(value) >= 2.0 ** (1 - largest))):
        return f"{value:.{digits}g}"
    sign = "-" if operand.bits >> (width - 1) else ""
    if value == 0:
        return f"{sign}0x0p+0"
    if math.isfinite(value):
        mantissa, power = math.frexp(abs(value))
        fraction, exponent = mantissa * 2 - 1, power - 1
    else:
        fraction, exponent = (operand.bits & ((1 << fraction_bits) - 1)) / (1 << fraction_bits), largest + 1
    hexadecimal = f"{int(fraction * (1 << 52)):013x}".rstrip("0")
    return f"{sign}0x1{'.' if hexadecimal else ''}{hexadecimal}p{exponent:+d}"
