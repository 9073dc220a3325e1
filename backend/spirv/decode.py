"""Words to instructions: what reads a module, whoever wrote it."""

from __future__ import annotations

import array
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .encode import MAGIC
from .grammar import IDS, STRING, TYPED_NUMBER, shape, walk

HEADER_WORDS = 5
_OP_TYPE_INT, _OP_TYPE_FLOAT, _OP_SWITCH = 21, 22, 251


@dataclass(frozen=True, slots=True)
class Header:
    """A module's first words: version as (major, minor), the generator's number, one more than the largest id."""

    version: tuple[int, int]
    generator: int
    bound: int


@dataclass(frozen=True, slots=True)
class DecodedOperand:
    """An operand after the result.

    ``value`` is a str for a literal string, a float for a floating-point constant, otherwise an int: an id, a literal,
    the number of an enumerant, or the bits of a mask. Integer constants have the sign that their type gives them.
    ``bits``: the words of a constant, little-endian; a float does not keep the bits of every NaN.
    """

    kind: str
    value: int | float | str
    bits: int = 0

    @property
    def is_id(self) -> bool:
        """Whether the value is an id."""
        return self.kind in IDS


@dataclass(frozen=True, slots=True)
class DecodedInstruction:
    """An instruction; ``type_id`` and ``result`` are 0 where it has none."""

    opcode: int
    type_id: int
    result: int
    operands: tuple[DecodedOperand, ...]

    @property
    def name(self) -> str:
        """The name with its Op."""
        return "Op" + shape(self.opcode).name


def _words(spirv: bytes) -> array.array[int]:
    if len(spirv) % 4 or len(spirv) < 4 * HEADER_WORDS:
        raise ValueError(f"{len(spirv)} bytes are not a SPIR-V module")
    words = array.array("I", spirv)
    if sys.byteorder == "big":
        words.byteswap()
    if words[0] != MAGIC:
        raise ValueError(f"not a SPIR-V module: it starts with {words[0]:#010x}, not {MAGIC:#010x}")
    return words


def header(spirv: bytes) -> Header:
    """The header of a module. Raises ValueError where it is none."""
    words = _words(spirv[: 4 * HEADER_WORDS])
    return Header((words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF), words[2], words[3])


def instruction_words(spirv: bytes) -> Iterator[tuple[int, array.array[int]]]:
    """(opcode, the words after the first) of each instruction, opcodes without a known shape included. Raises
    ValueError on a damaged module."""
    words = _words(spirv)
    at, size = HEADER_WORDS, len(words)
    while at < size:
        count = words[at] >> 16
        if count == 0 or at + count > size:
            raise ValueError(f"the SPIR-V module is cut off or damaged at word {at}")
        yield words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


def string(words: Sequence[int]) -> str:
    """The literal string that the words begin with (section 2.2.1)."""
    data = struct.pack(f"<{len(words)}I", *words)
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


class _NumberTypes:
    """What is needed to read the literals whose width is that of a type."""

    def __init__(self) -> None:
        #: Type id → (format of struct, bytes) of integer and floating-point types.
        self._formats: dict[int, str] = {}
        self._type_of: dict[int, int] = {}

    def see(self, opcode: int, type_id: int, result: int, operands: Sequence[int]) -> None:
        """Notes a type, or the type of a result."""
        if opcode == _OP_TYPE_INT:
            letter = {8: "b", 16: "h", 32: "i", 64: "q"}.get(operands[0], "")
            self._formats[result] = letter if operands[1] else letter.upper()
        elif opcode == _OP_TYPE_FLOAT and len(operands) == 1:
            self._formats[result] = {16: "e", 32: "f", 64: "d"}.get(operands[0], "")
        elif type_id:
            self._type_of[result] = type_id

    def selector_words(self, selector: int) -> int:
        """How many words a case of an OpSwitch over ``selector`` has."""
        return 2 if self._formats.get(self._type_of.get(selector, 0), "") in ("q", "Q") else 1

    def number(self, type_id: int, bits: int) -> int | float:
        """The number that the words are in the type; their plain bits where the type is of another format."""
        letter = self._formats.get(type_id, "")
        if not letter:
            return bits
        value: int | float = struct.unpack_from("<" + letter, bits.to_bytes(8, "little"))[0]
        return value

    def case(self, selector: int, bits: int) -> int | float:
        """A literal of an OpSwitch."""
        return self.number(self._type_of.get(selector, 0), bits)


def decode(spirv: bytes) -> Iterator[DecodedInstruction]:
    """The instructions of a module. Raises ValueError on a damaged one, UnknownInstruction on an unknown opcode."""
    numbers = _NumberTypes()
    for opcode, words in instruction_words(spirv):
        name, typed, has_result, _ = shape(opcode)
        first = typed + has_result
        if len(words) < first:
            raise ValueError(f"Op{name} ends before its result")
        type_id = words[0] if typed else 0
        result = words[typed] if has_result else 0
        rest = words[first:]
        numbers.see(opcode, type_id, result, rest)
        selector = rest[0] if opcode == _OP_SWITCH and rest else 0
        operands = []
        for kind, start, end in walk(opcode, rest, numbers.selector_words(selector) if selector else 1):
            if kind == STRING:
                operands.append(DecodedOperand(kind, string(rest[start:end])))
            elif kind == TYPED_NUMBER:
                bits = sum(word << 32 * place for place, word in enumerate(rest[start:end]))
                value = numbers.case(selector, bits) if selector else numbers.number(type_id, bits)
                operands.append(DecodedOperand(kind, value, bits))
            else:
                operands.append(DecodedOperand(kind, rest[start]))
        yield DecodedInstruction(opcode, type_id, result, tuple(operands))
