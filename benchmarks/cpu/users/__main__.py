"""The command line: see the package.

    python -m benchmarks.cpu.users [--only FAMILIES] [--match WORDS] [--seconds S] [--threads N] [--inductor]
                                   [--json FILE]

The time is the processor's, of the fastest of runs turn about, and with several threads the clock's; ``ratio`` is the
speed as a multiple of the best of the others. The exit status is 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

#: A row that is slower than this, as a multiple of the best of the others, is named.
LEAST = 0.5
#: For how many seconds threads of torch look for work after a call, at most.
_REST = 0.02


def measure(families: list[str], match: str, seconds: float, inductor: bool, threads: int = 1) -> list[dict[str, Any]]:
    """The rows' names, times in seconds by side, ratios, errors, and seconds of the first call."""
    import torch

    from benchmarks.cpu.measuring import interleaved
    from benchmarks.cpu.users import FAMILIES
    from benchmarks.cpu.users.rows import Data

    torch.set_num_threads(threads)
    found = []
    for family in families:
        for row in FAMILIES[family](Data(inductor)):
            if match not in row.name:
                continue
            start = time.process_time()
            row.run()
            first = time.process_time() - start
            error = 0.0
            if row.expected is not None:
                error = float((row.out.double() - torch.as_tensor(row.expected).double()).abs().max())
            sides = interleaved({"triton": row.run, **row.others}, seconds, _REST if threads > 1 else 0.0)
            times = {name: side.processor if threads == 1 else side.clock for name, side in sides.items()}
            other = min((name for name in times if name != "triton"), key=lambda name: times[name])
            ratio = times[other] / times["triton"]
            right = error <= row.error
            found.append(
                {"family": family, "name": row.name, "times": times, "ratio": ratio, "right": right, "first": first}
            )
            print(
                f"{row.name:36} {times['triton'] * 1e6:9.1f} µs  ratio {ratio:5.2f} {'<' if ratio < LEAST else ' '}  "
                f"first {first:5.2f} s  {other} {times[other] * 1e6:.1f}" + ("" if right else f"  WRONG: {error:.1e}"),
                flush=True,
            )
    return found


def _set_environment(threads: int) -> None:
    """What is read when NumPy, torch and triton are imported."""
    os.environ.update(TRITON_SPIRV_BACKEND="1", TRITON_SPIRV_DEVICE="cpu")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as the other sides compute; releases have other defaults
    names = ("TRITON_SPIRV_CPU_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, str(threads)))


def main() -> int:
    """Measure, print, write. 1 where a result is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu.users", description="sixty kinds of kernels")
    parser.add_argument("--only", default="", help="some of the families, with commas between them")
    parser.add_argument("--match", default="", help="only rows whose names have these words")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--threads", type=int, default=1, help="of each side; times are the clock's with more than one")
    parser.add_argument("--inductor", action="store_true", help="beside torch.compile's C++, too, which takes minutes")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    _set_environment(options.threads)
    from benchmarks.cpu.users import FAMILIES

    families = options.only.split(",") if options.only else [*FAMILIES]
    if unknown := [name for name in families if name not in FAMILIES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    found = measure(families, options.match, options.seconds, options.inductor, options.threads)
    if found:
        mean = math.exp(sum(math.log(row["ratio"]) for row in found) / len(found))
        print(f"\n{len(found)} rows: {mean:.3f} of the best of the others in geometric mean")
        slow = [f"{row['name']} {row['ratio']:.2f}" for row in found if row["ratio"] < LEAST]
        print(f"below {LEAST}: {', '.join(slow) or 'none'}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return int(not all(row["right"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
