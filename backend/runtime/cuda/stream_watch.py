"""CUDA's streams when the Vulkan device that they wait for fails: they go on, and the launching thread gets the error.

A stream waits for a launch by a semaphore. If the device is lost, or a kernel runs past the time limit, nobody
signals it, and ``torch.cuda.synchronize()`` would wait for ever. A thread looks now and then whether what streams wait
for is done. If the device failed, it raises the error in the thread that launched last, in which it shows once that
thread runs Python again, as Ctrl-C does, and then lets the streams go on.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from ...notices import tell_once

#: Seconds between looks, and of work that is not looked at again before.
_NAP = 0.25
#: Seconds without a submission that ends, after which a line says what to do: on an H200 (580.159) a kernel that reads
#: far outside CUDA tensors never ends, and neither semaphores and fences nor NVML's events tell of it.
PATIENCE = 10.0
_BOUNDS = "a read far outside of a tensor may be the cause: TRITON_SPIRV_CHECK_BOUNDS=1 finds it"


def raise_in(thread: int, error: BaseException) -> None:
    """Raises an exception of the same type and text, and what to look for, in another thread, the main one where that
    has ended."""
    text = f"{error}; {_BOUNDS}"
    kind = type(
        type(error).__name__, (type(error),), {"__str__": lambda _: text, "result": getattr(error, "result", 0)}
    )
    for one in (thread, threading.main_thread().ident):
        if ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(one or 0), ctypes.py_object(kind)):
            return
    print(f"triton: {text}", file=sys.stderr, flush=True)


class StreamWatch:
    """A watch on the streams of one device. ``device``: its native.Device. ``told``: whether another thread has the
    error already. ``release``: called with the last submission that a stream waits for, lets all go on that wait for it
    or an earlier one."""

    def __init__(self, device: Any, told: Callable[[], bool], release: Callable[[int], None]) -> None:
        self._device, self._told, self._release = device, told, release
        self._last = self._thread = 0
        self._asked = threading.Event()
        self._started = False

    def expect(self, submission: int) -> None:
        """A stream waits for a submission of this thread."""
        self._last, self._thread = submission, threading.get_ident()
        if not self._started:
            self._started = True
            threading.Thread(target=self._watch, name="triton-spirv streams", daemon=True).start()
        if not self._asked.is_set():
            self._asked.set()

    def _watch(self) -> None:
        idle = threading.Event()  # nobody sets it: a wait for it is a sleep
        try:
            while True:
                self._asked.wait()
                self._asked.clear()
                value = self._last
                idle.wait(_NAP)
                if not self._device.done(value):
                    waited = threading.Event()
                    threading.Thread(target=self._warn, args=(value, waited), daemon=True).start()
                    try:
                        self._device.synchronize()  # ends where the device fails
                    finally:
                        waited.set()
        except RuntimeError as error:
            if self._device.failed:
                if not self._told():
                    raise_in(self._thread, error)
                self._release(self._last)

    def _warn(self, last: int, waited: threading.Event) -> None:
        """Says once in a process that nothing ends, while submissions until ``last`` are waited for."""
        first = self._first_pending(last)
        while not waited.wait(PATIENCE) and (before := first) <= last:
            if (first := self._first_pending(last)) == before <= last:
                tell_once(
                    "stream",
                    f"a kernel that a CUDA stream waits for has not ended for {PATIENCE:g} s; {_BOUNDS}, and "
                    "TRITON_SPIRV_TIMEOUT=<seconds> ends kernels that take longer",
                )
                return

    def _first_pending(self, last: int) -> int:
        """The first submission that is not done, of those until ``last``; ``last`` + 1 if all are."""
        return 1 + bisect_left(range(1, last + 1), True, key=lambda value: not self._device.done(value))
