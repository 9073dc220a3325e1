"""The line of the source that an instruction of an object was made for, from its DWARF line table (version 4)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
#: Kinds of relocations that stand for an address of 64 bits: R_X86_64_64 and R_AARCH64_ABS64.
_ABSOLUTE = (1, 257)
_SYMBOLS, _RELOCATIONS = 2, 4  # SHT_SYMTAB, SHT_RELA


@dataclass
class _Row:
    """An instruction's address, and what it was made for."""

    address: int = 0
    file: int = 1
    line: int = 1


@dataclass
class _Sequence:
    """Instructions of a section, in the order of their addresses; the last row is the end."""

    section: int
    rows: list[_Row] = field(default_factory=list)


class _Reader:
    """Numbers and texts of DWARF, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def number(self, kind: str) -> int:
        """A number of struct's kind."""
        (value,) = struct.unpack_from("<" + kind, self.data, self.at)
        self.at += struct.calcsize("<" + kind)
        return int(value)

    def text(self) -> str:
        """A text that ends in a zero."""
        end = self.data.index(0, self.at)
        value = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return value

    def leb(self, signed: bool = False) -> int:
        """A number in LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


def line_of(object_file: bytes, section: int, offset: int) -> tuple[str, int] | None:
    """The file and line of the instruction at an offset in a section, by the section's number. None if the object does
    not tell it."""
    try:
        return _line_of(object_file, section, offset)
    except (struct.error, ValueError, IndexError):  # a table that is cut off, or in another form
        return None


def _line_of(elf: bytes, section: int, offset: int) -> tuple[str, int] | None:
    (at,) = struct.unpack_from("<Q", elf, 40)
    count, names = struct.unpack_from("<HH", elf, 60)
    sections = [_SECTION.unpack_from(elf, at + index * _SECTION.size) for index in range(count)]
    name_table = sections[names]
    by_name = {_Reader(elf, name_table[4] + row[0]).text(): index for index, row in enumerate(sections)}
    table = by_name.get(".debug_line")
    if table is None:
        return None
    places = _addresses(elf, sections, table)
    _, _, _, _, begin, length, *_ = sections[table]
    for files, sequence in _programs(elf[begin : begin + length], places):
        if sequence.section != section:
            continue
        if sequence.rows[0].address <= offset < sequence.rows[-1].address:
            # An instruction of no line belongs to what stands before it.
            row = next((row for row in reversed(sequence.rows) if row.address <= offset and row.line), None)
            return None if row is None else (files(row.file), row.line)
    return None


def _addresses(elf: bytes, sections: list[tuple], table: int) -> dict[int, tuple[int, int]]:
    """Offset in the line table → (section, offset in it) of the address that is put there."""
    places: dict[int, tuple[int, int]] = {}
    for row in sections:
        if row[1] != _RELOCATIONS or row[7] != table:
            continue
        symbols = sections[row[6]][4]
        for at in range(row[4], row[4] + row[5], _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(elf, at)
            _, _, _, section, value, _ = _SYMBOL.unpack_from(elf, symbols + (info >> 32) * _SYMBOL.size)
            if info & 0xFFFFFFFF in _ABSOLUTE:
                places[offset] = (section, value + addend)
    return places


class _Files:
    """The names of a table's files, by number from 1."""

    def __init__(self, folders: list[str], files: list[tuple[str, int]]) -> None:
        self._folders, self._files = folders, files

    def __call__(self, number: int) -> str:
        name, folder = self._files[number - 1]
        return os.path.join(self._folders[folder - 1], name) if folder else name


def _programs(data: bytes, places: dict[int, tuple[int, int]]) -> Iterator[tuple[_Files, _Sequence]]:
    """The sequences of all tables."""
    reader = _Reader(data, 0)
    while reader.at < len(data):
        end = reader.number("I") + reader.at
        if reader.number("H") != 4:
            return
        program = reader.number("I") + reader.at
        shortest = reader.number("B")
        reader.number("B")  # operations of a long instruction word
        reader.number("B")  # whether rows begin statements at first
        base, span, first = reader.number("b"), reader.number("B"), reader.number("B")
        operands = [reader.number("B") for _ in range(first - 1)]
        folders, files = [], []
        while folder := reader.text():
            folders.append(folder)
        while name := reader.text():
            files.append((name, reader.leb()))
            reader.leb(), reader.leb()  # its time and length
        reader.at = program
        names = _Files(folders, files)
        yield from ((names, one) for one in _run(reader, end, places, (shortest, base, span, first), operands))
        reader.at = end


def _run(
    reader: _Reader,
    end: int,
    places: dict[int, tuple[int, int]],
    constants: tuple[int, int, int, int],
    operands: list[int],
) -> Iterator[_Sequence]:
    """Runs a line program (DWARF 4, section 6.2.5)."""
    shortest, base, span, first = constants
    row, sequence = _Row(), _Sequence(0)

    def emit() -> None:
        sequence.rows.append(_Row(row.address, row.file, row.line))

    while reader.at < end:
        opcode = reader.number("B")
        if opcode >= first:  # special: a step of both
            row.address += (opcode - first) // span * shortest
            row.line += base + (opcode - first) % span
            emit()
        elif opcode == 0:  # extended
            length = reader.leb()
            following = reader.at + length
            kind = reader.number("B")
            if kind == 1:  # DW_LNE_end_sequence
                emit()
                yield sequence
                row, sequence = _Row(), _Sequence(0)
            elif kind == 2:  # DW_LNE_set_address
                sequence.section, row.address = places.get(reader.at, (0, 0))
            reader.at = following
        elif opcode == 1:  # DW_LNS_copy
            emit()
        elif opcode == 2:  # DW_LNS_advance_pc
            row.address += reader.leb() * shortest
        elif opcode == 3:  # DW_LNS_advance_line
            row.line += reader.leb(signed=True)
        elif opcode == 4:  # DW_LNS_set_file
            row.file = reader.leb()
        elif opcode == 8:  # DW_LNS_const_add_pc
            row.address += (255 - first) // span * shortest
        elif opcode == 9:  # DW_LNS_fixed_advance_pc
            row.address += reader.number("H")
        else:
            for _ in range(operands[opcode - 1]):
                reader.leb()
