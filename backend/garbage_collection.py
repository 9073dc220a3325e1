"""Keeps Python's cyclic garbage collector out of the compiler.

A stage makes tens of thousands of small lists, one per instruction, and hardly any garbage that only the collector
could free. Every few hundred of them start a collection, and some of these walk all that the program has in memory.
What they run may parse Python, as pytest does for errors in finalizers. CPython 3.11's parser then raises SystemError
in the kernel that it was parsing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_stages = 0
_was_enabled = False


@contextmanager
def paused_collector() -> Iterator[None]:
    """No automatic collection while any thread is inside; what was set before is set again when the last one leaves."""
    global _stages, _was_enabled
    with _lock:
        if not _stages:
            _was_enabled = gc.isenabled()
            gc.disable()
        _stages += 1
    try:
        yield
    finally:
        with _lock:
            _stages -= 1
            if not _stages and _was_enabled:
                gc.enable()
