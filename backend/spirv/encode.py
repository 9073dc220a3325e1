"""The binary form of a module (SPIR-V specification, section 2.3)."""

from __future__ import annotations

import array
import struct
import sys
from collections.abc import Sequence

from . import opcodes as op
from .grammar import ids_of_each

MAGIC = 0x07230203
VERSION_1_6 = 0x00010600
#: Generator number 0: none registered.
GENERATOR = 0

#: An instruction: opcode, result type id or 0, result id or 0, then its operand words.
Instruction = list[int]


def string_words(text: str) -> list[int]:
    """A literal string: UTF-8, NUL-terminated, padded to whole little-endian words (section 2.2.1)."""
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def encode(instructions: list[Instruction], bound: int) -> bytes:
    """The module's bytes; ``bound`` is one more than the largest id."""
    words = [MAGIC, VERSION_1_6, GENERATOR, bound, 0]
    for instruction in instructions:
        start = 1 if instruction[1] else 2 if instruction[2] else 3  # without a type, or a result
        words.append((len(instruction) - start + 1) << 16 | instruction[0])
        words += instruction[start:]
    data = array.array("I", words)
    if sys.byteorder != "little":
        data.byteswap()
    return data.tobytes()


def live(body: list[Instruction]) -> list[Instruction]:
    """The instructions of a function body whose results are used, directly or not, by one that has an effect."""
    removable = op.REMOVABLE
    unused: dict[int, Sequence[int]] = {}  # result → what it is computed from
    pending: list[Sequence[int]] = []
    for instruction, operands in zip(body, ids_of_each(body), strict=True):
        if instruction[0] in removable:
            unused[instruction[2]] = operands
        else:
            pending.append(operands)
    take = unused.pop
    while pending:
        for value in pending.pop():
            if value in unused:
                pending.append(take(value))
    return [instruction for instruction in body if instruction[2] not in unused] if unused else body
