"""How cases are timed: turn about, by processor time and by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Run = Callable[[], object]

#: Seconds of processor time, and by the clock, that a measurement lasts at least: calls are short, and threads that
#: look for work after a call take processor time, too.
_LEAST = 0.02


@dataclass
class Times:
    """The best time of one run, in seconds: of the processor (all threads), and by the clock."""

    processor: float = float("inf")
    clock: float = float("inf")


@dataclass
class _Side:
    run: Run
    calls: int = 1
    times: Times = field(default_factory=Times)

    def calibrate(self) -> None:
        self.run()
        while True:
            clock, processor = time.perf_counter(), time.process_time()
            for _ in range(self.calls):
                self.run()
            if min(time.perf_counter() - clock, time.process_time() - processor) >= _LEAST:
                return
            self.calls *= 2

    def measure(self) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(self.calls):
            self.run()
        processor, clock = time.process_time() - processor, time.perf_counter() - clock
        self.times.processor = min(self.times.processor, processor / self.calls)
        self.times.clock = min(self.times.clock, clock / self.calls)


def interleaved(runs: dict[str, Run], seconds: float, rest: float = 0.0) -> dict[str, Times]:
    """The best times of each, run turn about for so many seconds of the clock in all. ``rest``: seconds that nothing
    runs for before each turn. The threads of a side with several look for work that long, on the next side's
    processors."""
    sides = {name: _Side(run) for name, run in runs.items()}
    for side in sides.values():
        side.calibrate()
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < end:
        for side in sides.values():
            time.sleep(rest)
            side.measure()
        rounds += 1
    return {name: side.times for name, side in sides.items()}
