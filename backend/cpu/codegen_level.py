"""How much LLVM's code generator optimises. Upstream's binding asks the environment, so all translations that are under
way have one level."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..system import after_fork_in_child

#: Upstream's variable: true, or names of LLVM's options that leave parts out.
_VARIABLE = "DISABLE_LLVM_OPT"


class CodegenLevel:
    """The level of this process. Thread-safe: a translation waits until those with another level have ended."""

    def __init__(self) -> None:
        self._quick = False
        self._asked: str | None = None
        self._forget()
        after_fork_in_child(self._forget)

    def _forget(self) -> None:
        """In a forked child, too: the threads that translated stayed in the parent."""
        self._put_back()
        self._changed, self._under_way = threading.Condition(), 0

    def _put_back(self) -> None:
        if self._quick:
            self._quick = False
            if self._asked is None:
                os.environ.pop(_VARIABLE, None)
            else:
                os.environ[_VARIABLE] = self._asked

    @property
    def asked(self) -> str:
        """What the environment asks to leave out of all kernels; empty if nothing."""
        with self._changed:
            return (self._asked if self._quick else os.environ.get(_VARIABLE)) or ""

    @contextmanager
    def quick(self, is_quick: bool) -> Iterator[None]:
        """Around a translation: by the quickest selection of instructions and allocation of registers, or as usual."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way or self._quick is is_quick)
            if is_quick and not self._quick:
                self._quick, self._asked = True, os.environ.get(_VARIABLE)
                os.environ[_VARIABLE] = "1"
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                if not self._under_way:
                    self._put_back()
                    self._changed.notify_all()


#: Of this process.
LEVEL = CodegenLevel()
