"""How long compiling a kernel may take, and what is printed meanwhile.

After ``NOTICE`` seconds a line on stderr says which kernel is being compiled by what, and what would help. After
TRITON_SPIRV_COMPILE_TIMEOUT seconds that is an error. All parts of the compiler share them, from upstream's front end
to the driver; they follow each other in one thread.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from . import settings

#: Seconds after which a line says which part of the compiler is working.
NOTICE = 5.0


class TooLong(RuntimeError):
    """A kernel that did not compile in the time that it may take. The message names it, and says what would help."""


def too_long(kernel: str, part: str, helps: str) -> TooLong:
    """The error about a ``part`` of the compiler."""
    seconds, name = settings.COMPILE_TIMEOUT.get(), settings.COMPILE_TIMEOUT.name
    return TooLong(f"kernel '{kernel}': {part} did not end within {seconds:g} s: {helps}; {name}=<seconds> allows more")


def what_helps(num_warps: int | None, most: int) -> str:
    """What makes a kernel compile sooner. ``num_warps``: of the launch, None if it is not known; ``most``: the most
    warps that the device's workgroups can have."""
    if num_warps is None:
        return "more warps (num_warps) or smaller blocks make it shorter"
    more = min(4 * num_warps, most)
    warps = f"num_warps={more} instead of {num_warps}, or " if more > num_warps else ""
    return f"{warps}smaller blocks make it shorter"


class _Ends(threading.local):
    """Until when the part of the compiler that runs in this thread may take, and the error after that. ``began``: when
    the kernel's compilation did; ``spent``: seconds that the latest one took, which was of ``kernel``."""

    at: float | None = None
    error: Callable[[], TooLong] | None = None
    began: float | None = None
    kernel: str = ""
    spent: float = 0.0


_ends = _Ends()


def begin() -> None:
    """Before upstream's front end, the first part."""
    _ends.began = time.monotonic()


def end(kernel: str) -> None:
    """Behind this backend's last part. The driver's follows, unless another kernel is compiled before."""
    _ends.spent = 0.0 if _ends.began is None else time.monotonic() - _ends.began
    _ends.began, _ends.kernel = None, kernel


def left_for_driver(kernel: str) -> float:
    """Seconds that the driver may take for a kernel, once: what is left where it has just been compiled."""
    spent = _ends.spent if _ends.kernel == kernel else 0.0
    _ends.kernel = ""
    return max(0.0, settings.COMPILE_TIMEOUT.get() - spent)


def check() -> None:
    """Between steps of the compiler. Raises TooLong."""
    if _ends.at is not None and time.monotonic() >= _ends.at and _ends.error is not None:
        raise _ends.error()


@contextlib.contextmanager
def compiling(kernel: str, part: str, helps: Callable[[], str]) -> Iterator[None]:
    """Around a part of the compiler, which calls ``check()`` between its steps."""
    before = _ends.at, _ends.error
    _ends.at = (time.monotonic() if _ends.began is None else _ends.began) + settings.COMPILE_TIMEOUT.get()
    _ends.error = lambda: too_long(kernel, part, helps())
    try:
        with told_of(kernel, part, helps):
            check()
            yield
    except BaseException:
        _ends.began = None
        raise
    finally:
        _ends.at, _ends.error = before


@contextlib.contextmanager
def told_of(kernel: str, part: str, helps: Callable[[], str]) -> Iterator[None]:
    """A line on stderr where the block takes longer than NOTICE seconds. ``helps``: called then, in another thread."""

    def tell() -> None:
        print(
            f"triton: kernel '{kernel}': {part} has worked on it for {NOTICE:g} s, of at most "
            f"{settings.COMPILE_TIMEOUT.get():g} s ({settings.COMPILE_TIMEOUT.name}): {helps()}",
            file=sys.stderr,
            flush=True,
        )

    timer = threading.Timer(NOTICE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
