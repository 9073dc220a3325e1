"""Places where a run can be made to stop, for the tests of what an interrupted run leaves behind.

TRITON_SPIRV_TOOLS_FAULT=<point> kills the process at that point; `<point>:disk-full` makes the disk full there.
"""

from __future__ import annotations

import errno
import os
import signal

from backend.settings import TOOLS_FAULT

# Verb → the points that it passes, in order.
POINTS = {
    "sync": ("fetch-downloaded", "sync-unpacked", "sync-created", "sync-exchanged"),
    "apply": ("apply-committed", "apply-moving", "apply-reset"),
    "journal": ("journal-written", "journal-begun", "journal-half", "journal-carried-out"),
    "rollback": ("rollback-begun", "rollback-half", "rollback-put-back"),
    "rebase": ("rebase-prepared", "rebase-started", "rebase-picked", "rebase-committed", "rebase-finished"),
    "wheel": ("wheel-member", "wheel-written", "wheel-named"),
    "dev": ("native-staged", "installed"),
    "build": ("tree-laid-out", "tree-exchanged"),
}
_KNOWN = frozenset(name for names in POINTS.values() for name in names)


def point(name: str) -> None:
    """Stop here where the environment asks for it."""
    assert name in _KNOWN, name
    wanted, _, how = (TOOLS_FAULT.get() or "").partition(":")
    if wanted != name:
        return
    if how == "disk-full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), signal.SIGKILL)
