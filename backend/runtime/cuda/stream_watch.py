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
from collections.abc import Callable
from typing import Any

#: Seconds between looks, and of work that is not looked at again before.
_NAP = 0.25
#: Seconds without a submission that ends, after which a device that streams wait for has failed: on an H200 (580.159) a
#: kernel that reads far outside CUDA tensors never ends, and neither semaphores, fences nor NVML's events tell of it.
#: TRITON_SPIRV_TIMEOUT comes before it.
LIMIT = 30.0
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
        self._asked, self._ended = threading.Event(), threading.Event()
        self._watching: threading.Thread | None = None

    def expect(self, submission: int) -> None:
        """A stream waits for a submission of this thread."""
        self._last, self._thread = submission, threading.get_ident()
        if self._watching is None:
            self._watching = threading.Thread(target=self._watch, name="triton-spirv streams", daemon=True)
            self._watching.start()
        if not self._asked.is_set():
            self._asked.set()

    def end(self) -> None:
        """Ends the watch on a device whose work is done. A thread that has called a driver is not to end beside that
        driver's exit handlers."""
        self._ended.set()
        self._asked.set()
        if self._watching is not None:
            self._watching.join()

    def _watch(self) -> None:
        try:
            while True:
                self._asked.wait()
                self._asked.clear()
                value = self._last
                if self._ended.wait(_NAP):
                    return
                if not self._device.done(value):
                    self._device.synchronize()  # ends where the device fails
        except RuntimeError as error:
            if self._device.failed:
                if not self._told():
                    raise_in(self._thread, error)
                self._release(self._last)
