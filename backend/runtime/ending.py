"""The end of the process: calls into devices return before it, and none begins after it.

The exit handlers of C libraries, the driver's among them, run while other threads do: a thread that is in the driver
then finds its data destroyed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..system import after_fork_in_child

#: How long the end waits for calls that have begun.
_SECONDS = 10.0

_CLOSED = "the device is closed"  # as of a device that was open


class Ending:
    """Counts the threads that are in a driver. Thread-safe."""

    def __init__(self) -> None:
        self._forget()
        after_fork_in_child(self._forget)

    def _forget(self) -> None:
        """In a forked child, too: the threads that were in a driver stayed in the parent."""
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._ended_by: int | None = None

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Around calls that the end of the process waits for. Raises RuntimeError once it has begun, but in the thread
        that ends the process: no exit handler runs beside that."""
        thread, changed = threading.get_ident(), self._changed
        with changed:
            if self._ended_by not in (None, thread):
                raise RuntimeError(_CLOSED)
            self._inside[thread] = self._inside.get(thread, 0) + 1
        try:
            yield
        finally:
            with changed:
                self._inside[thread] -= 1
                if not self._inside[thread]:
                    del self._inside[thread]
                changed.notify_all()

    def begin(self, seconds: float = _SECONDS) -> bool:
        """The process is being ended by this thread. Waits for the calls of other threads; whether all have
        returned."""
        thread, until = threading.get_ident(), time.monotonic() + seconds
        with self._changed:
            self._ended_by = thread
            while self._inside.keys() - {thread}:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True


#: Of this process.
ENDING = Ending()
