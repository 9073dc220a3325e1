"""What becomes of an operator, a test or a kernel of another library, and how long it may take: one vocabulary for
``libraries``, ``flag_gems``, ``suites`` and ``package_kernels``.

Limits are of processor time, of all threads, so that a busy machine ends nothing sooner. What waits
and does not compute is ended after PATIENCE times as long by the clock.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.backends.spirv.errors import UnsupportedOperation
from triton.runtime.errors import OutOfResources

PASSED = "passed"
#: Another result than the reference's.
WRONG = "wrong"
#: This backend refuses a kernel, by the operation's name.
REFUSED = "refused"
#: It needs more shared memory than the device has.
TOO_LARGE = "too large"
#: Any other error.
FAILED = "failed"
#: The limit passed, or the process ended.
NOT_ENDED = "not ended"
SKIPPED = "skipped"
#: A result or an error for which the script has a reason that is the library's.
KNOWN = "known"

OUTCOMES = (PASSED, KNOWN, WRONG, REFUSED, TOO_LARGE, FAILED, NOT_ENDED, SKIPPED)
#: The outcomes for which a script has to have a reason.
FAILURES = (WRONG, REFUSED, TOO_LARGE, FAILED, NOT_ENDED)
#: How many times as long by the clock.
PATIENCE = 20
#: Exit statuses begin here: Python has the ones below for its own.
_FIRST_STATUS = 10


class OutOfTime(Exception):
    """The limit of ``raising_after`` has passed."""


def of_error(error: BaseException) -> tuple[str, str]:
    """What an error means, and its message in a line: that of the first refusal that led to it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnsupportedOperation):
            return REFUSED, _line(cause)
        if isinstance(cause, OutOfResources):
            return TOO_LARGE, _line(cause)
        if isinstance(cause, OutOfTime):
            return NOT_ENDED, _line(cause)
        cause = cause.__cause__ or cause.__context__
    return FAILED, f"{type(error).__name__}: {_line(error)}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400]


def status_of(outcome: str) -> int:
    """The exit status of a process that tells its outcome by it."""
    return 0 if outcome == PASSED else _FIRST_STATUS + OUTCOMES.index(outcome)


def of_status(status: int) -> str:
    """The outcome that a process has told, or what its end means: a signal is a limit's, or a crash."""
    if status == 0:
        return PASSED
    if status < 0:
        return NOT_ENDED
    index = status - _FIRST_STATUS
    return OUTCOMES[index] if 0 <= index < len(OUTCOMES) else FAILED


@contextmanager
def ending_after(seconds: float | None) -> Iterator[None]:
    """Ends this process after ``seconds`` of processor time; None: never. It works in compiled code, too."""
    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        faulthandler.dump_traceback_later(seconds * PATIENCE, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


@contextmanager
def raising_after(seconds: float) -> Iterator[None]:
    """Raises OutOfTime after ``seconds`` of processor time, once the interpreter runs Python's code again."""

    def ring(*_: Any) -> None:
        raise OutOfTime(f"not done after {seconds:g} s of processor time")

    before = {one: signal.signal(one, ring) for one in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for one, handler in before.items():
            signal.signal(one, handler)
