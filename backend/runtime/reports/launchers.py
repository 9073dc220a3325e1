"""Launching kernels that report.

Each launch runs a kernel that may report to its end, so that reports come in order and at their call. The
launcher of a kernel that can report failures alone may leave the report for later (LaterLauncher).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ...abi.launch_arguments import FIRST_ARGUMENT
from ...abi.report_buffer import CURSOR, HEADER, RECORD, places
from ..context import Context
from ..errors import raise_first
from ..launches.graph import capturing
from ..launches.launch import Entry, LaunchWrapper
from ..memory.host_memory import Loan
from .failures import FAILURES, Failures
from .kinds import READERS
from .reader import Reader

#: What is known of launches of a kernel that reports failures alone.
_NOTHING = [None]


class ReportingLauncher(LaunchWrapper):
    """Runs a kernel with a report buffer as its last argument, waits, and says what it reported.

    ``messages``: what the kernel's metadata has as ``reports``. ``entries``: as make_launcher's, the buffer's the last.
    Raises the errors of failures.py, bounds.py and races.py.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        launch: Callable[..., None],
        messages: list[dict[str, Any]],
        entries: Sequence[Entry],
    ) -> None:
        self._context, self._launch = context, launch
        self._place = FIRST_ARGUMENT + entries[-1][0][0]
        parts, self._bytes = places(messages)
        #: Bytes that are written before a launch; records come after them.
        self._written = parts.get("print", self._bytes)
        #: In the order of their parts.
        self._readers: list[Reader] = [] if "asserted" in parts else [Failures(name, messages, entries, 0)]
        self._readers += [READERS[kind](name, messages, entries, at) for kind, at in parts.items()]

    def __call__(self, *args: Any) -> None:
        """Launches as what make_launcher() gives does."""
        args = (*args, *[None] * (self._place - len(args)))[: self._place]
        context, loan = self._context, Loan()
        buffer = loan.take(context.staging_pool, self._bytes)
        launches = [reader.launched(context, loan, args) for reader in self._readers]
        graph = capturing(context)
        if graph is not None:
            graph.keep(loan)
            self._launch(*args, buffer.address)
            graph.add_report(
                lambda: self._reset(buffer, launches), lambda: partial(self._say, self._read(buffer), launches)
            )
            return
        since = context.native.submitted
        try:
            self._reset(buffer, launches)
            self._launch(*args, buffer.address)
            context.native.synchronize()
            told = self._read(buffer)
        except BaseException:
            context.end_loan(loan, since, args)
            raise
        loan.end()
        self._say(told, launches)

    def _reset(self, buffer: Any, launches: Sequence[Any]) -> None:
        parts = [reader.pack(launch) for reader, launch in zip(self._readers, launches, strict=True)]
        with self._context.in_use():  # a closed device has no memory any more
            ctypes.memmove(buffer.host, b"".join((bytes(HEADER.size), *parts)), self._written)

    def _read(self, buffer: Any) -> bytes:
        with self._context.in_use():
            count = HEADER.unpack(ctypes.string_at(buffer.host, HEADER.size))[CURSOR]
            return ctypes.string_at(buffer.host, min(self._bytes, self._written + count * RECORD.size))

    def _say(self, told: bytes, launches: Sequence[Any]) -> None:
        """What was printed, then a race, an access out of bounds, a failure: the first is raised, with the others as
        its notes."""
        pairs = sorted(zip(self._readers, launches, strict=True), key=lambda pair: not isinstance(pair[0], Failures))
        raise_first(partial(reader.read, told, launch) for reader, launch in reversed(pairs))


class LaterLauncher(ReportingLauncher):
    """A ReportingLauncher that does not wait: its launches share one buffer, which keeps the first failure until
    raise_reports() reads it. For kernels that says_failures() of."""

    def __init__(self, context: Context, *rest: Any) -> None:
        super().__init__(context, *rest)
        self._loan = Loan()
        self._kept = self._loan.take(context.staging_pool, self._bytes)
        self._reset(self._kept, _NOTHING)

    def __call__(self, *args: Any) -> None:
        """Launches as what make_launcher() gives does. Within a graph's capture, and with tensors that others than this
        device may read, as ReportingLauncher's."""
        if capturing(self._context) is not None or any(map(_read_elsewhere, args[FIRST_ARGUMENT:])):
            super().__call__(*args)
            return
        args = (*args, *[None] * (self._place - len(args)))[: self._place]
        self._launch(*args, self._kept.address)
        self._context.unread_reports.add(self)

    def passed_on(self, arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The launcher that runs the kernel, and its arguments for these: with the buffer that is read later."""
        place = self._place - FIRST_ARGUMENT
        return self._launch, (*(*arguments, *[None] * (place - len(arguments)))[:place], self._kept.address)

    def read(self) -> None:
        """Raise what launches that are done have reported."""
        told = self._read(self._kept)
        if any(told):
            self._reset(self._kept, _NOTHING)
            self._say(told, _NOTHING)


def _read_elsewhere(argument: Any) -> bool:
    """Whether it is a tensor of torch's that is read with no copy from the device."""
    return getattr(argument, "is_cpu", False) or getattr(argument, "is_cuda", False)


def says_failures(messages: list[dict[str, Any]]) -> bool:
    """Whether a kernel can report failures alone: assertions, and loops that were cut short."""
    return all(message["kind"] in (*FAILURES, "asserted") for message in messages)


def raise_reports(context: Context) -> None:
    """Wait for launches of LaterLaunchers, if there were any since the last call, and raise what they reported: the
    first failure, with the others as its notes."""
    launchers = []
    with suppress(KeyError):  # another thread may take the last one
        while context.unread_reports:
            launchers.append(context.unread_reports.pop())
    if not launchers:
        return
    context.native.synchronize()
    raise_first(launcher.read for launcher in launchers)
