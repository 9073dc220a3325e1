"""Progress of long steps: a live clock on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


def note(message: str) -> None:
    """Print one line about what the tools do, to stderr."""
    print(f"[tools] {message}", file=sys.stderr, flush=True)


@contextmanager
def step(message: str, quiet_child: bool = True) -> Iterator[None]:
    """Announce a step and say how long it took.

    On a terminal a clock runs meanwhile, unless the step starts a child that draws its own progress
    (`quiet_child=False`).
    """
    start = time.monotonic()
    live = quiet_child and sys.stderr.isatty()
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.5):
            sys.stderr.write(f"\r[tools] {message} … {time.monotonic() - start:.0f} s")
            sys.stderr.flush()

    clock = threading.Thread(target=tick, daemon=True)
    if live:
        sys.stderr.write(f"[tools] {message} …")
        sys.stderr.flush()
        clock.start()
    else:
        note(f"{message} …")
    outcome = "failed after"
    try:
        yield
        outcome = "done in"
    finally:
        if live:
            done.set()
            clock.join()
            sys.stderr.write("\r\033[K")
        note(f"{message}: {outcome} {time.monotonic() - start:.1f} s")
