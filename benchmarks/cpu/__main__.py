"""The command line: see the package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def _peaks() -> tuple[float, float]:
    """Bytes a second that a copy of 64 MiB moves, and operations a second of multiply-adds in registers: by processor
    time, of one thread."""
    import numpy as np
    import torch

    from benchmarks.cpu import kernels
    from benchmarks.cpu.measuring import interleaved

    x, y, out = np.ones(1 << 24, np.float32), np.ones(1 << 24, np.float32), torch.zeros(16)
    rounds = 100_000
    times = interleaved(
        {"copy": lambda: np.copyto(y, x), "multiply": lambda: kernels.multiply_adds[(1,)](out, rounds)}, 1.0
    )
    return 2 * x.nbytes / times["copy"].processor, rounds * 16 * 8 * 2 / times["multiply"].processor


def _limits() -> dict[str, float]:
    """What the machine itself does with the threads of this process, by the clock: bytes a second of a copy of 64 MiB,
    and operations a second of multiply-adds in registers."""
    import torch
    import triton

    from benchmarks.cpu import kernels
    from benchmarks.cpu.measuring import interleaved

    x, y, out, rounds = torch.ones(1 << 24), torch.ones(1 << 24), torch.zeros(16 * 16), 100_000
    grid = (triton.cdiv(x.numel(), 4096),)
    times = interleaved(
        {
            "memory": lambda: kernels.copy[grid](x, y, x.numel(), BLOCK=4096),
            "multiply-adds": lambda: kernels.multiply_adds[(16,)](out, rounds),
        },
        1.0,
    )
    work = {"memory": 8 * x.numel(), "multiply-adds": 16 * rounds * 16 * 8 * 2}
    return {name: work[name] / each.clock for name, each in times.items()}


def _launch(seconds: float) -> float:
    """Seconds of the clock that a launch of one small program takes from Python; it has run when the call is back."""
    import torch

    from benchmarks.cpu import kernels
    from benchmarks.cpu.measuring import interleaved

    x, out = torch.ones(16), torch.zeros(16)
    return interleaved({"launch": lambda: kernels.copy[(1,)](x, out, 16, BLOCK=16)}, seconds)["launch"].clock


def _measure(families: list[str], seconds: float, alone: str, threads: int = 0) -> dict[str, Any]:
    """Figures of all cases. ``alone``: of ``"triton"`` or ``"torch"`` only. ``threads``: of torch; the machine's limits
    are measured, too, with as many."""
    import torch
    import triton

    from benchmarks.cpu.cases import cases
    from benchmarks.cpu.measuring import interleaved

    torch.set_num_threads(threads or 1)
    memory, operations = (0.0, 0.0) if alone else _peaks()
    found = []
    for case in cases(families):
        start = time.process_time()
        case.run()
        first = time.process_time() - start
        wrong = 0.0
        if case.expected is not None:
            wrong = float((case.out.double() - torch.as_tensor(case.expected).double()).abs().max())
        sides = {name: run for name, run in {"triton": case.run, **case.others}.items() if alone in ("", name)}
        if not sides:
            continue
        times = interleaved(sides, seconds)
        found.append(
            {
                "name": case.name,
                "goal": case.goal,
                "error": wrong,
                "right": wrong <= case.error,
                "first": first,
                "work": case.operations or case.bytes_moved,
                "unit": "GFLOP" if case.operations else "GB",
                "processor": {name: each.processor for name, each in times.items()},
                "clock": {name: each.clock for name, each in times.items()},
                "peak": operations if case.operations else memory,
            }
        )
        if not alone:
            print(_row(found[-1]), flush=True)
    return {
        "device": str(triton.runtime.driver.active.get_current_target().arch),
        "results": found,
        "memory": memory,
        "operations": operations,
        "launch": 0.0 if alone else _launch(seconds),
        "limits": _limits() if threads and alone == "triton" else {},
    }


def ratio(result: dict[str, Any], kind: str = "processor") -> float:
    """The speed of the kernel as a multiple of the best of the others."""
    times = dict(result[kind])
    own = times.pop("triton")
    return float(min(times.values()) / own)


def _row(result: dict[str, Any]) -> str:
    own = result["processor"]["triton"]
    rate = result["work"] / own / 1e9
    others = "  ".join(
        f"{name} {result['work'] / value / 1e9:7.1f}" for name, value in result["processor"].items() if name != "triton"
    )
    reached = ratio(result)
    mark = " " if reached >= result["goal"] else "<"
    share = result["work"] / own / result["peak"] if result["peak"] else 0.0
    return (
        f"{result['name']:34} {rate:7.1f} {result['unit']}/s  ratio {reached:5.2f} {mark} {result['goal']:.1f}  "
        f"clock {ratio(result, 'clock'):5.2f}  first {result['first']:5.2f} s  of peak {share:4.2f}  {others}"
        + ("" if result["right"] else f"  WRONG: {result['error']:.1e}")
    )


def _another(
    options: argparse.Namespace, settings: dict[str, str], alone: str = "triton", threads: int = 0
) -> dict[str, Any]:
    """The figures of one side in a process of its own, the results by their names. ``alone``, ``threads``: as
    _measure()."""
    command = [sys.executable, "-m", "benchmarks.cpu", "--alone", alone, "--only", options.only]
    command += ["--seconds", str(options.seconds), "--torch-threads", str(threads)]
    done = subprocess.run(command, env={**os.environ, **settings}, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "results": {entry["name"]: entry for entry in found["results"]}}


def _scaling(options: argparse.Namespace, result: dict[str, Any]) -> None:
    """Prints and adds how many times as fast kernels, torch and the machine itself are with two threads. Each side has
    a process of its own: threads of torch look for work for milliseconds after a call, and would take a processor from
    the kernels."""
    sides = {
        name: [_another(options, {"TRITON_SPIRV_CPU_THREADS": str(count)}, name, count) for count in (1, 2)]
        for name in ("triton", "torch")
    }
    one, two = (side["limits"] for side in sides["triton"])
    result["limits"] = {name: two[name] / one[name] for name in one}
    print("\nTimes as fast with two threads as with one, by the clock:")
    for name, times in result["limits"].items():
        print(f"{'the machine: ' + name:34} {times:8.2f}")
    for entry in result["results"]:
        entry["two_threads"] = {}
        for name, figures in sides.items():
            clocks = [found["clock"][name] for each in figures if (found := each["results"].get(entry["name"]))]
            if clocks:
                entry["two_threads"][name] = clocks[0] / clocks[1]
        print(
            f"{entry['name']:34} " + "  ".join(f"{name} {times:5.2f}" for name, times in entry["two_threads"].items())
        )


def main() -> int:
    """Measure, print, write. 1 where a result is wrong."""
    every = ["elementwise", "rows", "matmul", "attention", "places", "scans"]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cpu", description="the CPU device beside NumPy and torch"
    )
    parser.add_argument("--only", default=",".join(every), help=f"some of {', '.join(every)}")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU device")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--lavapipe", action="store_true", help="measure Mesa's CPU driver, too")
    parser.add_argument(
        "--scaling", action="store_true", help="measure two threads beside one, of torch and of the machine, too"
    )
    parser.add_argument("--alone", choices=["", "triton", "torch"], default="", help=argparse.SUPPRESS)
    parser.add_argument("--torch-threads", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    families = options.only.split(",")
    if unknown := [name for name in families if name not in every]:
        parser.error(f"unknown: {', '.join(unknown)}")
    os.environ.setdefault("TRITON_SPIRV_BACKEND", "1")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as torch and NumPy compute; releases have other defaults
    # NumPy's matmul has threads of its own, which are busy for a while after it: their time would count for the next.
    threads = str(options.torch_threads or 1)
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), threads))
    if not options.alone:
        os.environ.update(TRITON_SPIRV_DEVICE="cpu", TRITON_SPIRV_CPU_THREADS=str(options.threads))
    result = _measure(families, options.seconds, options.alone, options.torch_threads)
    if options.alone:
        print(json.dumps(result))
        return 0
    print(f"a synchronous launch of one small program: {result['launch'] * 1e6:.1f} µs")
    if options.lavapipe:
        other = _another(options, {"TRITON_SPIRV_DEVICE": "llvmpipe", "LP_NUM_THREADS": "1"})
        print("\nTimes as fast as Mesa's CPU driver, by processor time:")
        for entry in result["results"]:
            entry["lavapipe"] = other["results"][entry["name"]]["processor"]["triton"]
            print(f"{entry['name']:34} {entry['lavapipe'] / entry['processor']['triton']:8.1f}")
    if options.scaling:
        _scaling(options, result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(not all(entry["right"] for entry in result["results"]))


if __name__ == "__main__":
    sys.exit(main())
