"""Functions whose result a process computes once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..system import after_fork_in_child

Found = TypeVar("Found")


class OnceAProcess(Generic[Found]):
    """A function without arguments that is called once in each process: a forked child calls it again. Threads that ask
    while it runs wait for what it returns. What it raises is raised, and the next call asks again."""

    def __init__(self, function: Callable[[], Found]) -> None:
        self.__wrapped__ = function
        functools.update_wrapper(self, function)
        self._forget()
        after_fork_in_child(self._forget)

    def _forget(self) -> None:
        """In a forked child, too, the lock may be held by a thread that stayed in the parent."""
        self._lock = threading.RLock()
        self._found: list[Found] = []

    def __call__(self) -> Found:
        if not self._found:
            with self._lock:
                if not self._found:
                    self._found.append(self.__wrapped__())
        return self._found[0]

    def found(self) -> Found | None:
        """What it has returned; None before."""
        return self._found[0] if self._found else None


def once_a_process(function: Callable[[], Found]) -> OnceAProcess[Found]:
    """A decorator: see OnceAProcess."""
    return OnceAProcess(function)
