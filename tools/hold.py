"""The lock of the build folder: one run of the tools at a time, and what a killed run left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .journal import recover as finish_or_take_back
from .progress import note
from .project import Project

# Folders in build/ that hold what is being made.
SCRATCH_PREFIXES = (".sync-", ".apply-", ".lib-", ".source-", ".journal-", ".rebase-", ".target-")

# Folders whose lock this process holds.
_held: set[Path] = set()


@contextmanager
def hold(project: Project, recover: bool = True) -> Iterator[None]:
    """Hold the build folder: a second run of the tools waits until the first is through, and says so.

    What a killed run left half-done is finished, taken back or removed; each step's result appears under its own name
    by a rename only. It may be nested within a process. Without `recover` a change that is half-done is left as it is.
    """
    if project.build in _held:
        yield
        return
    project.build.mkdir(parents=True, exist_ok=True)
    with (project.build / ".lock").open("a+") as handle:
        _wait(handle)
        _held.add(project.build)
        try:
            leftovers = [path for prefix in SCRATCH_PREFIXES for path in project.build.glob(f"{prefix}*")]
            for leftover in (*leftovers, *project.cache.glob("*/.*")):
                shutil.rmtree(leftover, ignore_errors=True)
            if recover:
                finish_or_take_back(project)
            yield
        finally:
            _held.discard(project.build)


def _wait(handle: IO[str]) -> None:
    """Take the lock, saying whom it waits for; then put this run's own name in it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        note(f"waits for {handle.read().strip() or 'another run of the tools'}, which uses the same build folder")
        fcntl.flock(handle, fcntl.LOCK_EX)
    handle.truncate(0)
    try:
        handle.write(f"`{_command()}` (process {os.getpid()})\n")
        handle.flush()
    except OSError:
        pass  # no room on the disk: the lock holds without a name


def _command() -> str:
    """What the user typed, as far as Python knows."""
    program, *arguments = sys.argv or [""]
    is_module = Path(program).name == "__main__.py" or program == "-m"
    return " ".join(["python3 -m tools" if is_module else Path(program).name, *arguments])
