"""Printed values, which go to stdout."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ...abi.elements import FLOATS
from ...abi.report_buffer import CURSOR, HEADER, RECORD, RECORDS
from .reader import Message, Reader

_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


class Prints(Reader):
    """Reads the records."""

    def read(self, buffer: bytes, launch: Any) -> None:
        """Print them."""
        count = HEADER.unpack_from(buffer)[CURSOR]
        if not count:
            return
        for number, operand, x, y, z, index, low, high in RECORD.iter_unpack(buffer[self._at :]):
            sys.stdout.write(f"pid ({x}, {y}, {z}) {_line(self._messages[number], operand, index, low | high << 32)}\n")
        if count > RECORDS:
            sys.stderr.write(
                f"kernel '{self._kernel}': {count - RECORDS} printed values were lost: a launch keeps {RECORDS}\n"
            )
        sys.stdout.flush()


def _line(message: Message, operand: int, index: int, bits: int) -> str:
    """``idx (i, j) prefix value``, as upstream's GPU backends print it."""
    operands = message["operands"]
    if not operands:
        return f"idx (){message['prefix']}"
    facts = operands[operand]
    which = f"(operand {operand}) " if len(operands) > 1 else ""
    place = [
        f"{number:{len(str(extent - 1))}d}"
        for number, extent in zip(coordinates(index, facts["shape"]), facts["shape"], strict=True)
    ]
    return f"idx ({', '.join(place)}){message['prefix']}{which}{value_text(facts, bits, message['hex'])}"


def coordinates(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The place of an element by its row-major index."""
    place = []
    for extent in reversed(shape):
        index, coordinate = divmod(index, extent)
        place.append(coordinate)
    return tuple(reversed(place))


def value_text(facts: Mapping[str, Any], bits: int, hexadecimal: bool = False, form: str = "f") -> str:
    """A value of a ``type``, ``signed`` or not, by its bits; a float in a ``form`` of Python's."""
    type_ = facts["type"]
    if type_.startswith("!tt.ptr"):
        return f"0x{bits:016x}"
    width = FLOATS[type_].bits if type_ in FLOATS else max(8, int(type_[1:]))
    if type_ == "bf16":
        type_, width, bits = "f32", 32, bits << 16
    if type_ in _FLOATS:
        number = struct.unpack(_FLOATS[type_], bits.to_bytes(width // 8, "little"))[0]
        return _hexadecimal_float(number) if hexadecimal else f"{number:{form}}"
    if hexadecimal:
        return f"0x{bits:0{width // 4}x}"
    if type_.startswith("i") and facts["signed"] and type_ != "i1" and bits >> (width - 1):
        return str(bits - (1 << width))
    return str(bits)


def _hexadecimal_float(number: float) -> str:
    """A number as C99's ``%a`` writes it: ``0x1.8p+0``, without zeros at the end of the fraction."""
    return re.sub(r"\.?0*p", "p", number.hex())
