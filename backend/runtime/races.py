"""What kernels that check for races are given to note their accesses in, and what they report."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..abi.report_buffer import RACES
from .errors import SharedMemoryRace


class RaceTable:
    """What the report buffer of ``kernel`` holds at byte ``at``. ``facts``: its message of kind ``races``. A program
    needs ``bytes`` of device memory, and the first ``programs`` of a launch are checked. A granule is ``granule`` bytes
    of shared memory; ``pools`` has the first granule of each array in it."""

    def __init__(self, kernel: str, at: int, facts: dict[str, Any]) -> None:
        self._kernel, self._at = kernel, at
        self._bytes, self._programs = facts["bytes"], facts["programs"]
        self._granule, self._pools = facts["granule"], facts["pools"]
        self.bytes = RACES.size

    def shadow_bytes(self, grid: Sequence[int]) -> int:
        """Bytes of device memory that a launch of ``grid`` needs, zero at first."""
        return self._bytes * min(self._programs, prod(grid))

    @staticmethod
    def pack(address: int) -> bytes:
        """What is written before a launch with that memory at ``address``."""
        return RACES.pack(address, *[0] * 9)

    def failure(self, buffer: bytes, messages: Sequence[dict[str, Any]]) -> SharedMemoryRace | None:
        """The error of the first race, with the count of all; None where there was none."""
        _, count, number, other_number, granule, invocation, other, *program = RACES.unpack_from(buffer, self._at)
        if not number:
            return None
        byte = (granule - max(first for first in self._pools if first <= granule)) * self._granule
        message, earlier = messages[number - 1], messages[other_number - 1]
        others = f"; {count} such accesses in this launch" if count != 1 else ""
        return SharedMemoryRace(
            f"{_place(message)}: kernel '{self._kernel}': race in shared memory: {message['operation']} "
            f"{message['verb']} byte {byte} in invocation {invocation}, and {earlier['operation']} of "
            f"{_place(earlier)} {earlier['verb']} it in invocation {other}, with no barrier between; program "
            f"{tuple(program)}{others}",
            kernel=self._kernel,
            byte=byte,
            invocations=(invocation, other),
            program=tuple(program),
            file=message["file"],
            line=message["line"],
            other_file=earlier["file"],
            other_line=earlier["line"],
            count=count,
        )


def _place(message: dict[str, Any]) -> str:
    callers = "".join(f" (called from {caller})" for caller in message["callers"])
    return f"{message['file']}:{message['line']}{callers}"


def race_table(kernel: str, messages: Sequence[dict[str, Any]], at: int) -> RaceTable | None:
    """The table, at byte ``at``, of a kernel with these messages; None where it does not check for races."""
    for message in messages:
        if message["kind"] == "races":
            return RaceTable(kernel, at, message)
    return None
