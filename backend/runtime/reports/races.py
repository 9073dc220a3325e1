"""Races: the memory in which kernels that check for races record accesses, and the kernels' reports."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...abi.launch_arguments import LaunchArgument
from ...abi.report_buffer import RACES
from ..context import Context
from ..launches.launch import Entry
from ..memory.host_memory import Loan
from .reader import Message, Reader, ReportError, place


class SharedMemoryRace(ReportError):
    """Two invocations of a workgroup accessed the same bytes of shared memory, one of them at least to write, with no
    barrier between, in a kernel that checks for races.

    ``byte`` of shared memory, the numbers of the two ``invocations`` in the workgroup (that of the later access first),
    ``file`` and ``line`` of the later access and ``other_file`` and ``other_line`` of the earlier one describe the
    first race of the launch; ``count`` says how many accesses raced.
    """

    byte: int = 0
    invocations: tuple[int, ...] = ()
    other_file: str = ""
    other_line: int = 0


class Races(Reader):
    """Reads the part of kind ``races``. By the message of that kind, a program needs ``bytes`` of device memory, and
    the first ``programs`` of a launch are checked; a granule is ``granule`` bytes of shared memory, and ``pools`` has
    the first granule of each array in it."""

    def __init__(self, kernel: str, messages: Sequence[Message], entries: Sequence[Entry], at: int) -> None:
        super().__init__(kernel, messages, entries, at)
        facts = next(message for message in messages if message["kind"] == "races")
        self._bytes, self._programs = facts["bytes"], facts["programs"]
        self._granule, self._pools = facts["granule"], facts["pools"]

    def launched(self, context: Context, loan: Loan, args: Sequence[Any]) -> Any:
        """The device, and the address and bytes of memory on it; None for an empty grid."""
        size = self._bytes * min(self._programs, prod(args[: LaunchArgument.STREAM]))
        return (context.native, loan.take(context.device_pool, size).address, size) if size else None

    def pack(self, launch: Any) -> bytes:
        """Implements Reader.pack(). The memory is zero, too."""
        address = 0
        if launch is not None:
            device, address, size = launch
            device.fill(address, size, 0)
        return RACES.pack(address, *[0] * 9)

    def read(self, buffer: bytes, launch: Any) -> None:
        """Raise the first race, with the count of all."""
        _, count, number, other_number, granule, invocation, other, *program = RACES.unpack_from(buffer, self._at)
        if not number:
            return
        byte = (granule - max(first for first in self._pools if first <= granule)) * self._granule
        message, earlier = self._messages[number - 1], self._messages[other_number - 1]
        text = (
            f"race in shared memory: {message['operation']} {message['verb']} byte {byte} in invocation {invocation}, "
            f"and {earlier['operation']} of {place(earlier)} {earlier['verb']} it in invocation {other}, with no "
            "barrier between; "
        )
        facts = {"invocations": (invocation, other), "other_file": earlier["file"], "other_line": earlier["line"]}
        raise self._error(SharedMemoryRace, message, text, program, count, byte=byte, **facts)
