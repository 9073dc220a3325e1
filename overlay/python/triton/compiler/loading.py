"""A kernel is loaded once, by one thread, and whole or not at all.

Threads that launch a kernel for the first time at once would each load it, and see it half loaded: with a launcher, and
without a function.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any


def by_one_thread(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """CompiledKernel._init_handles() for one thread at a time; others wait for its end. A kernel that is loaded costs
    no lock."""

    @wraps(load)
    def loaded(kernel: Any) -> None:
        if kernel._run is not None and kernel.module is not None:
            return
        with _lock(kernel):
            load(kernel)

    return loaded


def _lock(kernel: Any) -> Any:
    """The kernel's own lock. A child that was forked while another thread loaded has a new one."""
    process = os.getpid()
    owner, lock = kernel.__dict__.setdefault("_loading", (process, threading.RLock()))
    if owner != process:
        kernel.__dict__["_loading"] = _, lock = process, threading.RLock()
    return lock
