"""Progress of long steps: a live clock on a terminal; in a log plain lines, and one every ten seconds meanwhile."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds between two lines of a step off a terminal, and between two strokes of the clock on one.
LINE_SECONDS = 10.0
_CLOCK_SECONDS = 0.5
# Tells the process that `tools` goes on in how many steps there were before it.
COUNT = "TOOLS_STEPS"
_steps = int(os.environ.pop(COUNT, "0"))
_clock = threading.Lock()  # held by the step whose clock is on the terminal's last line


def note(message: str) -> None:
    """Print one line about what the tools do, to stderr."""
    erased = "\r\033[K" if _clock.locked() else ""
    print(f"{erased}[tools] {message}", file=sys.stderr, flush=True)


def steps() -> int:
    """How many steps were announced so far."""
    return _steps


class Progress:
    """How far a step is."""

    def __init__(self) -> None:
        self._part = ""

    def at(self, number: int, of: int, what: str = "") -> None:
        """Say that `number` of so many parts are done."""
        self._part = f"{number} of {of}{' ' if what else ''}{what}, "

    def text(self, seconds: float) -> str:
        return f"{self._part}{seconds:.0f} s"


@contextmanager
def step(message: str, quiet_child: bool = True) -> Iterator[Progress]:
    """Announce a step by its number, say how far it is, and how long it took.

    On a terminal a clock runs meanwhile, unless the step starts a child that draws its own progress
    (`quiet_child=False`), or another thread's step has its clock there.
    """
    global _steps
    _steps += 1
    message = f"step {_steps}: {message}"
    progress = Progress()
    start = time.monotonic()
    terminal = sys.stderr.isatty()
    live = quiet_child and terminal and _clock.acquire(blocking=False)
    done = threading.Event()

    def tick() -> None:
        while not done.wait(_CLOCK_SECONDS if live else LINE_SECONDS):
            text = progress.text(time.monotonic() - start)
            if live:
                sys.stderr.write(f"\r[tools] {message} … {text}\033[K")
                sys.stderr.flush()
            else:
                note(f"{message}: {text}")

    clock = threading.Thread(target=tick, daemon=True)
    if live:
        sys.stderr.write(f"[tools] {message} …")
        sys.stderr.flush()
    else:
        note(f"{message} …")
    if live or not terminal:
        clock.start()
    outcome = "failed after"
    try:
        yield progress
        outcome = "done in"
    finally:
        done.set()
        if clock.ident is not None:
            clock.join()
        if live:
            sys.stderr.write("\r\033[K")
            _clock.release()
        note(f"{message}: {outcome} {time.monotonic() - start:.1f} s")
