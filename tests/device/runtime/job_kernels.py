"""A kernel whose launches take long on a device whose submissions are bounded in time, for test_runtime_jobs.py.

``long``: one launch that takes longer than a submission may. ``batch``: many short ones, which are not waited for.
Prints "marked" before and behind the launches that count, and then JSON.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime

PROGRAMS, BLOCK, ROUNDS = {"long": 1024, "batch": 16}, 64, 5000
#: How long one launch takes at least, in seconds.
SECONDS = {"long": 0.1, "batch": 0.002}


@triton.jit
def work(x, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):  # type: ignore[no-untyped-def]
    """x = x / 2 + 1, ROUNDS times."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(ROUNDS):
        value = value * 0.5 + 1.0
    tl.store(x + i, value)


def rounds_for(seconds: float, x: Any, programs: int) -> int:
    """The rounds with which a launch takes that long on this device. Its kernel is not the one that counts."""
    times = []
    for _ in range(3):
        work[(programs,)](x, BLOCK=BLOCK, ROUNDS=ROUNDS)
        runtime.current().native.synchronize()
        before = time.perf_counter()
        work[(programs,)](x, BLOCK=BLOCK, ROUNDS=ROUNDS)
        runtime.current().native.synchronize()
        times.append(time.perf_counter() - before)
    return ROUNDS * (1 + math.ceil(seconds / min(times)))


def main(case: str) -> None:
    """Runs it."""
    context = runtime.current()
    native, programs = context.native, PROGRAMS[case]
    x = runtime.from_numpy(np.zeros(programs * BLOCK, np.float32))
    rounds = rounds_for(SECONDS[case], x, programs)

    def launch(programs: int = programs) -> int:
        return int(work[(programs,)](x, BLOCK=BLOCK, ROUNDS=rounds).function)

    def tell(state: str) -> None:
        native.synchronize()
        print("marked", flush=True)
        os.environ["FAULTY_TELL"] = state

    handle = launch(1)
    native.synchronize()
    if case == "batch":
        for _ in range(4):
            launch()
            native.synchronize()
    found: dict[str, object] = {"bounded": native.is_bounded, "before": native.parts(handle, programs)}
    time.sleep(0.01)
    tell("2")
    for _ in range(1 if case == "long" else 24):
        launch()
    tell("0")
    found["expected"] = str(native.expected(handle, programs))
    graph = runtime.Graph()
    with graph.capture():
        for _ in range(1 if case == "long" else 24):
            launch()
    found["captured"] = graph.launches
    before = native.submitted
    graph.replay()
    found["submissions"] = native.submitted - before
    found["unknown"] = math.isinf(native.expected(1, 1)) if native.is_bounded else True
    found["right"] = bool(np.abs(x.to_numpy() - 2).max() < 1e-6)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
