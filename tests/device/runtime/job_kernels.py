"""A kernel that is launched on a device whose submissions are bounded in time, for test_runtime_jobs.py.

Each program takes as long as FAULTY_CLOCK says (faulty_layer.cpp). ``long``: one launch that takes longer than a
submission may. ``batch``: many short ones, while nothing is seen to end.
Prints "marked" before and behind the launches that count, and then JSON.
"""

import json
import math
import os
import sys

import numpy as np
import triton
import triton.language as tl
from triton.backends.spirv import runtime

PROGRAMS, BLOCK, ROUNDS = {"long": 1024, "batch": 16}, 64, 5000


@triton.jit
def work(x, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):  # type: ignore[no-untyped-def]
    """x = x / 2 + 1, ROUNDS times."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for _ in range(ROUNDS):
        value = value * 0.5 + 1.0
    tl.store(x + i, value)


def main(case: str) -> None:
    """Runs it."""
    native, programs = runtime.current().native, PROGRAMS[case]
    x = runtime.from_numpy(np.zeros(programs * BLOCK, np.float32))

    def launch(programs: int = programs) -> int:
        return int(work[(programs,)](x, BLOCK=BLOCK, ROUNDS=ROUNDS).function)

    def tell(state: str) -> None:
        native.synchronize()
        print("marked", flush=True)
        os.environ["FAULTY_TELL"] = state

    def launch_all() -> None:
        for _ in range(1 if case == "long" else 24):
            launch()

    for count in (1,) if case == "long" else (1, *[programs] * 4):
        handle = launch(count)
        native.synchronize()
    found: dict[str, object] = {"bounded": native.is_bounded, "before": native.parts(handle, programs)}
    tell("2")
    os.environ["FAULTY_PENDING"] = "1" if case == "batch" else "0"
    launch_all()
    os.environ["FAULTY_PENDING"] = "0"
    tell("0")
    with (graph := runtime.Graph()).capture():
        launch_all()
    found["captured"], before = graph.launches, native.submitted
    graph.replay()
    found["submissions"] = native.submitted - before
    found["unknown"] = math.isinf(native.expected(1, 1)) if native.is_bounded else True
    found["right"] = bool(np.abs(x.to_numpy() - 2).max() < 1e-6)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
