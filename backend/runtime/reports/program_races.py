"""Races between programs, which the CPU device finds (native/cpu/program_races.h)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...abi.report_buffer import ACCESSES, PROGRAM_RACE, RACE_KINDS
from ..context import Context
from ..cpu.faults import line_in
from ..launches.launch import Entry
from ..memory.host_memory import Loan
from .outside import Extent, extents
from .reader import Message, Reader, ReportError

_WORDS = {
    "race": ", and nothing orders them",
    "beside atomic": ": only one of the two is atomic, and nothing orders them",
    "equal values": ", and nothing orders them; both write the same value",
}


class ProgramRace(ReportError):
    """Two programs of a launch accessed the same bytes of device memory, at least one of them to write and at least one
    of them not atomically, and nothing orders the accesses.

    ``program``, ``file``, ``line`` are of the later access of the first race, ``other_program``, ``other_file`` and
    ``other_line`` of the earlier one. ``argument`` and ``index`` (in that argument's elements) say where; "" and 0 for
    memory that is no argument's. ``kind``: "race", "beside atomic" where one of the two is atomic, or "equal values"
    where both wrote the same, which is told only if that is asked for. ``count`` says how many accesses raced so.
    """

    kind: str = ""
    argument: str = ""
    index: int = 0
    other_program: tuple[int, ...] = ()
    other_file: str = ""
    other_line: int = 0


class ProgramRaces(Reader):
    """Reads the part of kind ``program_races``. By the message of that kind it has the addresses of ``arguments``."""

    def __init__(self, kernel: str, messages: Sequence[Message], entries: Sequence[Entry], at: int) -> None:
        super().__init__(kernel, messages, entries, at)
        facts = next(message for message in messages if message["kind"] == "program_races")
        self._arguments = [entries[number] for number in facts["arguments"]]

    def launched(self, context: Context, loan: Loan, args: Sequence[Any]) -> list[Extent]:
        """The extents of a launch's tensors."""
        return extents(self._arguments, args)

    def pack(self, launch: Sequence[Extent]) -> bytes:
        """Implements Reader.pack()."""
        return bytes(PROGRAM_RACE.size + 8 * len(self._arguments))

    def read(self, buffer: bytes, launch: Sequence[Extent]) -> None:
        """Raise the first race, with the count of all of its kind."""
        count, kernel, address, place, other_place, kind, size, access, other, *programs = PROGRAM_RACE.unpack_from(
            buffer, self._at
        )
        if not count:
            return
        later, earlier = line_in(kernel, place), line_in(kernel, other_place)
        program, other_program = tuple(programs[:3]), tuple(programs[3:])
        name, index, what = self._element(buffer, launch, address)
        word = RACE_KINDS[kind]
        where = f"line {earlier[1]}" if earlier[0] == later[0] else f"{earlier[0]}:{earlier[1]}"
        text = (
            f"{later[0]}:{later[1]}: kernel '{self._kernel}': program {program} {ACCESSES[access]} {what}, which "
            f"program {other_program} {ACCESSES[other]} in {where}{_WORDS[word]}"
        )
        if count != 1:
            text += f"; {count} such accesses in this launch"
        raise ProgramRace(
            text,
            kernel=self._kernel,
            kind=word,
            program=program,
            file=later[0],
            line=later[1],
            other_program=other_program,
            other_file=earlier[0],
            other_line=earlier[1],
            argument=name,
            index=index,
            count=count,
        )

    def _element(self, buffer: bytes, launch: Sequence[Extent], address: int) -> tuple[str, int, str]:
        """The argument that an address is in, the index there, and how both are written."""
        start = self._at + PROGRAM_RACE.size
        for number, told in enumerate(launch):
            begin = int.from_bytes(buffer[start + 8 * number : start + 8 * number + 8], "little")
            if told.elements and -told.before <= address - begin < told.bytes - told.before:
                name, index = self._arguments[number][1], (address - begin) // told.element_bytes
                return name, index, f"{name}[{index}]"
        return "", 0, f"address {address:#x}"
