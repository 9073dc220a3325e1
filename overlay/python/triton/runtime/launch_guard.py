"""Early return for kernels that can be compiled here but not run.

A driver whose `can_launch` is False (read by getattr; upstream's drivers have none and can) still gives a target, a
device number and a stream, so ``kernel[grid](...)`` compiles and fills the cache; its launch then does nothing, and
the first one in the process warns. The driver may give the reason as ``why_no_launch() -> str``.

The same holds for a kernel compiled for an explicit target where no driver is active at all, if the driver class of
that target's backend can say why (``unavailable_reason() -> str | None``).
"""
from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from ..backends import backends
from .driver import driver

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_warned = False


class SkippedLaunch:
    """Stands where a launcher would: takes any launch arguments, runs nothing, warns once a process."""

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        global _warned
        if _warned:
            return
        _warned = True
        warnings.warn(
            f"kernel '{self.name}' is compiled but not run: {self.reason}. Its outputs are left as they were; "
            "further launches are skipped silently.", RuntimeWarning, stacklevel=_user_stacklevel())


def launchable(kernel: Any) -> bool:
    """Whether CompiledKernel `kernel` may be loaded and launched here.

    Where not, `kernel` gets a SkippedLaunch as its launcher, and None for what only a loaded kernel knows (n_regs,
    n_spills, n_max_threads). Asked before a kernel is loaded, and never again once it is.
    """
    reason = _no_launch_reason(kernel.metadata.target)
    if reason is None:
        return True
    kernel._run = SkippedLaunch(kernel.name, reason)
    kernel.n_regs = kernel.n_spills = kernel.n_max_threads = None
    return False


def _no_launch_reason(target: Any) -> str | None:
    try:
        active = driver.active
    except RuntimeError:
        # No driver could be chosen. That is an error, except for a target whose own driver can say what it misses.
        owner = next((b.driver for b in backends.values() if b.compiler.supports_target(target)), None)
        tell = getattr(owner, "unavailable_reason", None)
        reason = tell() if tell is not None else None
        if not reason:
            raise
        return _phrase(reason)
    if getattr(active, "can_launch", True):
        return None
    tell = getattr(active, "why_no_launch", None)
    return _phrase(tell()) if tell is not None else f"{type(active).__name__} only compiles"


def _phrase(text: str) -> str:
    return text.strip().rstrip(".")


def _user_stacklevel() -> int:
    """The stacklevel, for a warning issued by the caller, of the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
