"""Compilations by the driver, in their own threads, so that a wait for one ends after some time or by Ctrl-C.

Vulkan has no way to stop a driver that compiles. One that is not waited for any more goes on, and whoever asks for the
same module later gets what it makes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

#: Bytes of a thread's stack, of which no more are taken than are used: what a process's first thread has on Linux.
_STACK = 8 << 20

_starting = threading.Lock()


class _Compilation:
    """One call of ``make``, in a thread."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.ended = threading.Event()
        self.made: Any = None
        self.error: BaseException | None = None
        with _starting:
            before = threading.stack_size(_STACK)
            try:
                threading.Thread(target=self._run, name="triton-spirv compilation", daemon=True).start()
            finally:
                threading.stack_size(before)

    def _run(self) -> None:
        try:
            self.made = self._make()
        except BaseException as error:
            self.error = error
        self.ended.set()


class Compilations:
    """Of one device."""

    def __init__(self) -> None:
        self._running: dict[bytes, _Compilation] = {}
        self._lock = threading.Lock()

    def wait(self, module: bytes, make: Callable[[], Any], seconds: float) -> Any:
        """What ``make``, or an earlier call for the same module that was left, gives or raises; None if that takes
        longer than ``seconds``."""
        key = hashlib.sha256(module).digest()
        with self._lock:
            found = self._running.pop(key, None) or _Compilation(make)
        try:
            if not found.ended.wait(seconds):
                return None
        finally:
            if not found.ended.is_set():
                with self._lock:
                    self._running.setdefault(key, found)
        if found.error is not None:
            raise found.error
        return found.made

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
