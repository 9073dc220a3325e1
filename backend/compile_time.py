"""How long compiling a kernel may take, and what is printed meanwhile.

After ``NOTICE`` seconds a line on stderr says which kernel is being compiled by what, and what would help. Of torch's
own kernels, which nobody can change, one line tells for all. After
TRITON_SPIRV_COMPILE_TIMEOUT seconds of work that is an error. Work is processor time of the thread that compiles, so
that a machine which is busy with other things ends nothing; ``CLOCK`` bounds the time by the clock. All parts of the
compiler share the seconds, from upstream's front end to the driver; they follow each other. What is compiled without
optional parts (reference.py) may take any time, and nothing is printed: its code is long on purpose.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from . import settings
from .notices import tell_once

#: Seconds after which a line says which part of the compiler is working.
NOTICE = 5.0

#: The names of kernels that torch.compile writes: pointwise, reductions, templates, lists, scans.
_BY_INDUCTOR = re.compile(r"triton_(poi|red|per|tem|for|spl|mix)_")

#: Seconds between looks at a meter, at least.
_LOOK = 0.05

#: Seconds by the clock for each second of work that a compilation may take.
CLOCK = 10


@dataclass(frozen=True)
class Seconds:
    """How long a compilation takes: processor time, and time by the clock."""

    work: float
    clock: float

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(self.work + other.work, self.clock + other.clock)

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.work - other.work, self.clock - other.clock)

    def reach(self, most: Seconds) -> bool:
        """Whether these are as many as ``most``, of either kind."""
        return self.work >= most.work or self.clock >= most.clock


_NONE = Seconds(0.0, 0.0)
#: Any time: as much as a setting may allow.
_ANY = Seconds(1e9, 1e9)


def most() -> Seconds:
    """What all parts of the compiler may take together."""
    if not _ends.limited:
        return _ANY
    work = settings.COMPILE_TIMEOUT.get()
    return Seconds(work, CLOCK * work)


class Meter:
    """Counts the seconds of a compilation that the calling thread begins; any thread may read them."""

    def __init__(self) -> None:
        self._state: tuple[Seconds, Callable[[], float] | None, Seconds] = _NONE, None, _NONE
        self.count(_thread_clock())

    def count(self, work: Callable[[], float]) -> None:
        """From now on the processor time is what ``work`` gives, but no more than the time by the clock."""
        self._state = self.spent, work, Seconds(work(), time.monotonic())

    def pause(self) -> None:
        """What is between this and the next ``count`` does not count."""
        self._state = self.spent, None, _NONE

    @property
    def spent(self) -> Seconds:
        """The seconds so far."""
        before, work, began = self._state
        if work is None:
            return before
        since = Seconds(work(), time.monotonic()) - began
        return before + Seconds(min(since.work, since.clock), since.clock)


def _thread_clock() -> Callable[[], float]:
    """Processor seconds of the calling thread, for any thread; the clock's, where the system has none of a thread."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock, last = time.pthread_getcpuclockid(threading.get_ident()), time.thread_time()

    def seconds() -> float:
        nonlocal last
        with contextlib.suppress(OSError):  # the thread has ended
            last = time.clock_gettime(clock)
        return last

    return seconds


class TooLong(RuntimeError):
    """A kernel that did not compile in the time that it may take. The message names it, and says what would help."""


class _OfTorch(threading.local):
    """Whether this thread compiles a kernel of torch's."""

    inside = False


_of_torch = _OfTorch()
#: Seconds by the clock that torch's kernels took in this process, and the lock of those who add to them.
_torch_took, _torch_lock = 0.0, threading.Lock()


@contextlib.contextmanager
def kernel_of_torch() -> Iterator[None]:
    """Around compiling and loading a kernel of torch's operations. One line tells once these took NOTICE seconds."""
    global _torch_took
    before, start = _of_torch.inside, time.monotonic()
    _of_torch.inside = True
    try:
        yield
    finally:
        _of_torch.inside = before
        with _torch_lock:
            _torch_took += time.monotonic() - start
        if _torch_took >= NOTICE:
            _tell_of_torch()


def _tell_of_torch() -> None:
    tell_once(
        "first kernels of torch",
        f"torch's kernels are compiled when they are first used, which has taken {NOTICE:g} s so far; later runs take "
        "them from Triton's cache, and `triton-spirv warm` fills it before a run",
    )


@dataclass(frozen=True)
class CompilingPart:
    """What works on a kernel: a compiler's name. ``helps``: says what would make the kernel compile sooner.
    ``of_torch``: whether the kernel is torch's own, so that nobody can follow that."""

    kernel: str
    name: str
    helps: Callable[[], str]
    of_torch: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_torch", _of_torch.inside or _BY_INDUCTOR.match(self.kernel) is not None)

    def too_long(self, work: bool) -> TooLong:
        """The error after too much ``work``, or else too long by the clock."""
        name, limit = settings.COMPILE_TIMEOUT.name, most()
        within = f"{limit.work:g} s" if work else f"{limit.clock:g} s by the clock, {CLOCK} times {name}"
        advice = f"{name}=<seconds> allows more" if self.of_torch else f"{self.helps()}; {name}=<seconds> allows more"
        return TooLong(f"kernel '{self.kernel}': {self.name} did not end within {within}: {advice}")

    @contextlib.contextmanager
    def told_of(self, meter: Meter) -> Iterator[None]:
        """A line on stderr where the block takes longer than NOTICE seconds by the clock of ``meter``. What helps is
        asked for then, in another thread."""
        if not _ends.limited:
            yield
            return
        ended = threading.Event()

        def tell() -> None:
            while (left := NOTICE - meter.spent.clock) > 0:
                if ended.wait(max(left, _LOOK)):
                    return
            if self.of_torch:
                _tell_of_torch()
                return
            print(
                f"triton: kernel '{self.kernel}': {self.name} has worked on it for {NOTICE:g} s, of at most "
                f"{settings.COMPILE_TIMEOUT.get():g} s ({settings.COMPILE_TIMEOUT.name}): {self.helps()}",
                file=sys.stderr,
                flush=True,
            )

        timer = threading.Timer(NOTICE, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            ended.set()
            timer.cancel()


def what_helps(num_warps: int | None, most: int) -> str:
    """What makes a kernel compile sooner. ``num_warps``: of the launch, None if it is not known; ``most``: the most
    warps that the device's workgroups can have."""
    if num_warps is None:
        return "more warps (num_warps) or smaller blocks make it shorter"
    more = min(4 * num_warps, most)
    warps = f"num_warps={more} instead of {num_warps}, or " if more > num_warps else ""
    return f"{warps}smaller blocks make it shorter"


class _Ends(threading.local):
    """The part of the compiler that runs in this thread, and what it may take: ``most``, counted from ``since``.
    ``began``: when the kernel's compilation did; ``spent``: what the latest one took, which was of ``kernel``.
    ``limited``: whether the kernel's compilation may not take any time."""

    part: CompilingPart | None = None
    since: Seconds = _NONE
    most: Seconds = _NONE
    began: Seconds | None = None
    kernel: str = ""
    spent: Seconds = _NONE
    limited: bool = True


_ends = _Ends()


def _now() -> Seconds:
    return Seconds(time.thread_time(), time.monotonic())


def begin(limited: bool = True) -> None:
    """Before upstream's front end, the first part of a compilation, which may take any time unless ``limited``."""
    _ends.began, _ends.limited = _now(), limited


def end(kernel: str) -> None:
    """Behind this backend's last part. The driver's follows, unless another kernel is compiled before."""
    _ends.spent = _NONE if _ends.began is None else _now() - _ends.began
    _ends.began, _ends.kernel = None, kernel


def left_for_driver(kernel: str) -> Seconds:
    """What the driver may take for a kernel, once: what is left where it has just been compiled."""
    spent = _ends.spent if _ends.kernel == kernel else _NONE
    _ends.kernel = ""
    return most() - spent


def check() -> None:
    """Between steps of the compiler. Raises TooLong."""
    if _ends.part is None:
        return
    spent = _now() - _ends.since
    if spent.reach(_ends.most):
        raise _ends.part.too_long(spent.work >= _ends.most.work)


@contextlib.contextmanager
def compiling(kernel: str, part: str, helps: Callable[[], str]) -> Iterator[None]:
    """Around a part of the compiler, which calls ``check()`` between its steps."""
    before = _ends.part, _ends.since, _ends.most
    _ends.part = CompilingPart(kernel, part, helps)
    _ends.since, _ends.most = _now() if _ends.began is None else _ends.began, most()
    try:
        with _ends.part.told_of(Meter()):
            check()
            yield
    except BaseException:
        _ends.began = None
        raise
    finally:
        _ends.part, _ends.since, _ends.most = before
