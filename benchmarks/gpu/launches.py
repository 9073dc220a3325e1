"""What a launch of a tiny kernel costs its thread."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import triton
import triton.language as tl

from .measuring import warm_up


@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


def launches(memory: Any) -> list[dict[str, Any]]:
    """Microseconds of a launch of a tiny kernel: submitted back to back, and waited for one by one."""
    tensor = memory.put(np.zeros(64, np.float32))
    synchronize = triton.runtime.driver.active.get_device_interface().synchronize
    warps = 2
    launched = 0

    def launch() -> None:
        nonlocal launched
        launched += 1
        increment_kernel[(1,)](tensor, 64, BLOCK=64, num_warps=warps)

    def back_to_back(count: int = 1000) -> float:
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            launch()
        spent = time.perf_counter() - start
        synchronize()
        return spent / count * 1e6

    def one_by_one(count: int = 500) -> float:
        start = time.perf_counter()
        for _ in range(count):
            launch()
            synchronize()
        return (time.perf_counter() - start) / count * 1e6

    warm_up(launch)
    asynchronous, synchronous = zip(*((back_to_back(), one_by_one()) for _ in range(9)), strict=True)
    figures = [
        ("asynchronous launch", statistics.median(asynchronous)),
        ("synchronous launch", statistics.median(synchronous)),
    ]
    synchronize()
    if not (memory.get(tensor) == launched).all():
        lost = {"unit": "µs", "failure": "wrong: launches were lost", "tried": []}
        return [{"name": name, **lost} for name, _ in figures]
    return [{"name": name, "unit": "µs", "rate": value, "tried": []} for name, value in figures]
