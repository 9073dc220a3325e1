"""The command line: see the package.

    python -m benchmarks.cpu.users [--only FAMILIES] [--match WORDS] [--seconds S] [--inductor] [--json FILE]

The time is the processor's, of the fastest of runs turn about; ``ratio`` is the speed as a multiple of the best of the
others. The exit status is 1 where a result is wrong.
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


def measure(families: list[str], match: str, seconds: float, inductor: bool) -> list[dict[str, Any]]:
    """The rows' names, times in seconds by side, ratios, errors, and seconds of the first call."""
    import torch

    from benchmarks.cpu.measuring import interleaved
    from benchmarks.cpu.users import FAMILIES
    from benchmarks.cpu.users.rows import Data

    torch.set_num_threads(1)
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
            sides = interleaved({"triton": row.run, **row.others}, seconds)
            times = {name: side.processor for name, side in sides.items()}
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


def main() -> int:
    """Measure, print, write. 1 where a result is wrong."""
    os.environ.update(TRITON_SPIRV_BACKEND="1", TRITON_SPIRV_DEVICE="cpu", TRITON_SPIRV_CPU_THREADS="1")
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
    from benchmarks.cpu.users import FAMILIES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu.users", description="sixty kinds of kernels")
    parser.add_argument("--only", default=",".join(FAMILIES), help=f"some of {', '.join(FAMILIES)}")
    parser.add_argument("--match", default="", help="only rows whose names have these words")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--inductor", action="store_true", help="beside torch.compile's C++, too, which takes minutes")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    families = options.only.split(",")
    if unknown := [name for name in families if name not in FAMILIES]:
        parser.error(f"unknown: {', '.join(unknown)}")
    found = measure(families, options.match, options.seconds, options.inductor)
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
