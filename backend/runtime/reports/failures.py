"""Failures: the launch raises the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...abi.report_buffer import FAILURE, HEADER
from .reader import Reader


class KernelAssertionError(RuntimeError, AssertionError):
    """A tl.device_assert that failed: message, file and line."""


class LoopLimitExceeded(RuntimeError):
    """The driver ended a loop of the kernel too early: what the launch wrote is wrong."""


_LOOP = (
    "Mesa's CPU driver ended this loop before its condition was false: it stops an invocation after 65535 iterations "
    "of all its loops together, so the result is wrong; does the loop end? If it does, give each program less work (a "
    "larger grid, larger blocks)"
)

#: Kind of message → the error, and what it says; the facts of the message have their places in it.
FAILURES: Mapping[str, tuple[type[RuntimeError], str]] = {
    "assert": (KernelAssertionError, "assertion failed: {text}"),
    "loop": (LoopLimitExceeded, _LOOP),
}


class Failures(Reader):
    """Reads the number of the first failure, which is in the header."""

    def read(self, buffer: bytes, launch: Any) -> None:
        """Raise what FAILURES says."""
        number = HEADER.unpack_from(buffer)[FAILURE]
        if not number:
            return
        message = self._messages[number - 1]
        error, text = FAILURES[message["kind"]]
        where = f"{message['file']}:{message['line']}: " if message["file"] else ""
        raise error(f"{where}kernel '{self._kernel}': {text.format_map(message)}")
