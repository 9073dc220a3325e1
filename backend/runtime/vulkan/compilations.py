"""Compilations by the driver, in their own threads, so that a wait for one ends after some time or by Ctrl-C.

Vulkan has no way to stop a driver that compiles. One that is not waited for any more goes on, and whoever asks for the
same module later gets what it makes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ...compile_time import CompilingPart, Meter, Seconds
from ...system import usable_processors

#: Bytes of a thread's stack, of which no more are taken than are used: what a process's first thread has on Linux.
_STACK = 8 << 20

#: Kernels that the driver compiles at once, where nobody waits for each: more gain nothing with NVIDIA's.
_AT_ONCE = 8

#: Seconds between looks at what a driver has spent, at least.
_LOOK = 0.05

_starting = threading.Lock()


class _Compilation:
    """One call of ``make``, in a thread. ``meter``: what it takes; ``make`` is given it, and may pause it."""

    meter: Meter

    def __init__(self, make: Callable[[Meter], Any]) -> None:
        self._make = make
        self._metered = threading.Event()
        self.ended = threading.Event()
        self.made: Any = None
        self.error: BaseException | None = None
        with _starting:
            before = threading.stack_size(_STACK)
            try:
                threading.Thread(target=self._run, name="triton-spirv compilation", daemon=True).start()
            finally:
                threading.stack_size(before)
        self._metered.wait()

    def _run(self) -> None:
        self.meter = Meter()
        self._metered.set()
        try:
            self.made = self._make(self.meter)
        except BaseException as error:
            self.error = error
        self.ended.set()


class Compilations:
    """The compilations of one device. ``one_at_a_time``: its driver fails where two of its threads compile
    (field_reports.py)."""

    def __init__(self, one_at_a_time: bool = False) -> None:
        #: Whether its driver may compile several kernels at once.
        self.many = not one_at_a_time
        self._turn: AbstractContextManager[object] = threading.Lock() if one_at_a_time else nullcontext()
        self._loads = ThreadPoolExecutor(min(_AT_ONCE, usable_processors()), "triton-spirv loads")
        self._running: dict[bytes, _Compilation] = {}
        self._lock = threading.Lock()

    def wait(self, module: bytes, make: Callable[[Meter], Any], part: CompilingPart, most: Seconds) -> Any:
        """What ``make``, or an earlier call for the same module that was left, gives or raises. Raises TooLong where
        that takes more than ``most`` from now on; ``part``: what is told of and blamed."""
        key = hashlib.sha256(module).digest()
        with self._lock:
            found = self._running.pop(key, None) or _Compilation(partial(self._in_turn, make))
        try:
            limit = found.meter.spent + most
            with part.told_of(found.meter):
                while not found.ended.is_set():
                    left = limit - found.meter.spent
                    if min(left.work, left.clock) <= 0:
                        raise part.too_long(left.work <= 0)
                    found.ended.wait(max(_LOOK, min(left.work, left.clock)))
        finally:
            if not found.ended.is_set():
                with self._lock:
                    self._running.setdefault(key, found)
        if found.error is not None:
            raise found.error
        return found.made

    def later(self, load: Callable[[], None]) -> Future[None]:
        """Call ``load`` in another thread: it waits for a compilation. Processes do not end before."""
        try:
            return self._loads.submit(load)
        except RuntimeError:  # the interpreter is ending
            load()
            done: Future[None] = Future()
            done.set_result(None)
            return done

    def end(self) -> None:
        """Return when all loads have ended."""
        self._loads.shutdown()

    def _in_turn(self, make: Callable[[Meter], Any], meter: Meter) -> Any:
        with self._turn:
            return make(meter)

    @property
    def go_on(self) -> bool:
        """Whether something that nobody waits for is being made."""
        with self._lock:
            return any(not one.ended.is_set() for one in self._running.values())

    def left(self) -> list[Any] | None:
        """What was made and never taken, which is the caller's from then on; None while something is being made."""
        with self._lock:
            if not all(one.ended.is_set() for one in self._running.values()):
                return None
            made = [one.made for one in self._running.values() if one.error is None]
            self._running.clear()
        return made
