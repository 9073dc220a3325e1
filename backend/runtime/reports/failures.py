"""Failures: the launch raises the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...abi.report_buffer import ASSERTED, FAILURE, HEADER
from .prints import coordinates, value_text
from .reader import Message, Reader


class KernelAssertionError(RuntimeError, AssertionError):
    """A tl.device_assert that failed: message, file and line, program, element, and the value that was compared."""


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
    """Reads the number of the first failure, which is in the header, and of an assertion the part of kind ``asserted``,
    where it is not at byte 0."""

    def pack(self, launch: Any) -> bytes:
        """Implements Reader.pack()."""
        return bytes(ASSERTED.size if self._at else 0)

    def read(self, buffer: bytes, launch: Any) -> None:
        """Raise what FAILURES says."""
        number = HEADER.unpack_from(buffer)[FAILURE]
        if not number:
            return
        message = self._messages[number - 1]
        error, text = FAILURES[message["kind"]]
        where = f"{message['file']}:{message['line']}: " if message["file"] else ""
        which = self._element(message, buffer) if message["kind"] == "assert" and self._at else ""
        raise error(f"{where}kernel '{self._kernel}': {text.format_map(message)}{which}")

    def _element(self, message: Message, buffer: bytes) -> str:
        """Where an assertion failed."""
        *program, index, low, high = ASSERTED.unpack_from(buffer, self._at)
        text = f"; program {tuple(program)}"
        if message["shape"]:
            text += f", element {coordinates(index, message['shape'])}"
        if "compared" in message:
            facts = {"type": message["compared"], "signed": True}
            text += f", value {value_text(facts, low | high << 32, form='.9g')}"
        return text
