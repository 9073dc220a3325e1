"""Runs the configurations of a case."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import triton

from .cases import Case


def warm_up(run: Callable[[], Any], seconds: float = 0.5) -> None:
    """Runs until the device's clocks are up: they fall while the host prepares data, and take their time to rise."""
    synchronize = triton.runtime.driver.active.get_device_interface().synchronize
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            run()
        synchronize()


def measure(case: Case, memory: Any, seconds: float, timed: bool = True) -> dict[str, Any]:
    """The fastest right configuration of a case, and each configuration's figure or failure. If it is not ``timed``,
    each is run once, and the figure is its relative error."""
    tried: list[dict[str, Any]] = []
    start = time.perf_counter()
    for config in case.configs:
        if tried and time.perf_counter() - start > seconds:
            tried.append({"config": config, "failure": f"not tried: the {seconds:.0f} s of this kernel are spent"})
            continue
        entry: dict[str, Any] = {"config": config}
        tried.append(entry)
        try:
            compiling = time.perf_counter()
            case.run(config)
            values = memory.get(case.out)
            entry["first_call_s"] = time.perf_counter() - compiling
            entry["error"] = case.error(values)
            if not entry["error"] <= case.tolerance:
                entry["failure"] = f"wrong: relative error {entry['error']:.3g}, allowed {case.tolerance:g}"
                continue
            if not timed:
                entry["rate"] = entry["error"]
                continue
            bench = triton.runtime.driver.active.get_benchmarker()
            warm_up(lambda config=config: case.run(config))
            entry["ms"] = bench(lambda config=config: case.run(config), quantiles=(0.5, 0.2, 0.8))[0]
            entry["rate"] = case.amount / case.unit[1] / (entry["ms"] * 1e-3)
        except Exception as error:
            entry["failure"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
        print(f"  {case.name} {entry}", file=sys.stderr, flush=True)
    right = [entry for entry in tried if "rate" in entry]
    by_warps = {
        warps: max(entry["rate"] for entry in right if entry["config"].get("num_warps", 4) == warps)
        for warps in sorted({entry["config"].get("num_warps", 4) for entry in right})
    }
    best = max(right, key=lambda entry: entry["rate"]) if right else {"failure": tried[0].get("failure", "?")}
    return {"name": case.name, "unit": case.unit[0] if timed else "error", **best, "by_warps": by_warps, "tried": tried}
