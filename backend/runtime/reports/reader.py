"""The reader of one kind of report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..context import Context
from ..launches.launch import Entry
from ..memory.host_memory import Loan

#: A row of a kernel's metadata ``reports``.
Message: TypeAlias = Mapping[str, Any]


def place(message: Message) -> str:
    """Where in the source what a message is about was written, and from where that was called."""
    return f"{message['file']}:{message['line']}" + "".join(f" (called from {one})" for one in message["callers"])


class ReportError(RuntimeError):
    """Something that a kernel found in a launch, with what attributes say of it.

    ``program`` (x, y, z), ``file`` and ``line`` describe the first of the launch; ``count`` says how many there
    were.
    """

    kernel: str = ""
    program: tuple[int, ...] = ()
    file: str = ""
    line: int = 0
    count: int = 0

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        vars(self).update(facts)


class Reader:
    """Reads reports of one kind. ``messages``, ``entries``: as ReportingLauncher's. ``at``: the byte of the report
    buffer at which the part of this kind begins."""

    def __init__(self, kernel: str, messages: Sequence[Message], entries: Sequence[Entry], at: int) -> None:
        self._kernel, self._messages, self._at = kernel, messages, at

    def launched(self, context: Context, loan: Loan, args: Sequence[Any]) -> Any:
        """What the other methods need to know about a launch. ``args``: as make_launcher's. What ``loan`` takes stays
        until the kernel is done."""

    def pack(self, launch: Any) -> bytes:
        """What the part holds before the launch."""
        return b""

    def read(self, buffer: bytes, launch: Any) -> None:
        """Raise, or print, what the kernel reported. ``buffer``: what was there when it ended."""
        raise NotImplementedError

    def _error(
        self,
        kind: type[ReportError],
        message: Message,
        text: str,
        program: Sequence[int],
        count: int,
        end: str = "",
        **facts: Any,
    ) -> ReportError:
        """The error of the first of ``count`` accesses, which ``message`` is about: ``text``, its ``program`` and how
        many there were, ``end``. ``facts``: further attributes of the error."""
        known = {"kernel": self._kernel, "file": message["file"], "line": message["line"], "program": tuple(program)}
        others = f"; {count} such accesses in this launch" if count != 1 else ""
        text = f"{place(message)}: kernel '{self._kernel}': {text}program {known['program']}{others}{end}"
        return kind(text, count=count, **known, **facts)
