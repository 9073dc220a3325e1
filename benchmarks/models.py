"""Training steps of real models on ``spirv`` beside torch's other devices: forward, backward and AdamW.

Each model runs on each device in its own process, which is ended after ``--seconds``: eagerly and with
torch.compile, in fp32 and with autocast to bfloat16. What was measured until then stays: a line of JSON for each
part of a configuration, written as it is made (``--out``). A table follows.

    python -m benchmarks.models --device spirv,cuda --out models.jsonl
    python -m benchmarks.models --device spirv,cpu --small gpt resnet        # sizes for a CPU's driver

The parts of a configuration, which each line names:

- ``speed``: units (tokens, images) a second, milliseconds of a step and of what the thread needs to issue it, seconds
  of the first step (compiling), peak memory, the first three losses;
- ``counts``: of one step: operations of torch, kernel launches, copies, fills, submissions, fallbacks to the CPU, the
  kernels' time on the device, and the slowest kernels;
- ``operations``: of one eager step, the slowest operations by the clock, each repeated until its launch is hidden;
- ``host``: microseconds of the thread for each operation of an eager step of a model that is too small to wait for;
- ``generate``: tokens a second of a greedy generation with a cache of keys and values, of one sequence.

fp32 is fp32: TF32 is off for CUDA's matmul and convolutions.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .model_measuring import PRECISIONS, work
from .model_shapes import MODELS, SMALL

DEVICES, MODES = ("spirv", "cuda", "cpu"), ("eager", "compiled")
#: How many of the slowest operations the table shows.
_SHOWN = 5


def environment(device: str) -> dict[str, str]:
    """In which a process measures a device: torch's one accelerator is ``spirv`` for it alone."""
    chosen = ("TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND", "TRITON_SPIRV_TORCH_DEVICE")
    kept = {name: value for name, value in os.environ.items() if name not in chosen}
    ours = {"TRITON_DEFAULT_BACKEND": "spirv", "TRITON_SPIRV_TORCH_DEVICE": "1"}
    return {**kept, **ours} if device == "spirv" else kept


def measured(task: dict[str, Any], seconds: float) -> Iterable[dict[str, Any]]:
    """The lines of a process that does a task, as they come; the last says how it ended, where it did not do all."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.models", "--worker", json.dumps(task)],
        env=environment(task["device"]),
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its compile workers end with it
    )
    assert process.stdout is not None and process.stderr is not None
    ended: list[str] = []
    errors: list[str] = []
    timer = threading.Timer(seconds, lambda: (ended.append("time"), os.killpg(process.pid, signal.SIGKILL)))
    reader = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)
    timer.start()
    reader.start()
    try:
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        status = process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    reader.join(5)
    if ended or status:
        why = f"not done in {seconds:.0f} s" if ended else f"its process ended with {status}"
        yield {
            "model": task["model"],
            "device": task["device"],
            "part": "process",
            "failure": why,
            "stderr": errors[-8:],
        }


def _ratio(one: float | None, other: float | None) -> str:
    return f"{one / other:.2f}" if one and other else "-"


def table(lines: list[dict[str, Any]], devices: list[str]) -> str:
    """Units a second of each configuration, beside the last device's, and the slowest operations on the first."""
    first, last = devices[0], devices[-1]
    by = {
        tuple(line.get(key) for key in ("model", "precision", "mode", "part", "device")): line
        for line in lines
        if "failure" not in line
    }
    written = [
        f"{'model':18} {'':5} {'':9}"
        + "".join(f"{device:>12}" for device in devices)
        + "   ratio  differ" * (first != last)
    ]
    for model, precision, mode in dict.fromkeys(key[:3] for key in by if key[3] in ("speed", "generate")):
        for part in ("speed", "generate"):
            found = {device: by.get((model, precision, mode, part, device)) for device in devices}
            if not any(found.values()):
                continue
            rates = {device: line["units_a_second"] if line else None for device, line in found.items()}
            row = f"{model:18} {precision:5} {mode if part == 'speed' else part:9}"
            row += "".join(f"{rates[device]:12,.0f}" if rates[device] else f"{'-':>12}" for device in devices)
            row += f"{_ratio(rates[first], rates[last]):>8}" * (first != last)
            ours, theirs = found[first], found[last]
            if first != last and ours and theirs and "losses" in ours and "losses" in theirs:
                row += f"{abs(ours['losses'][-1] / theirs['losses'][-1] - 1):8.0e}"
            written.append(row)
    for (model, precision, _, part, device), line in by.items():
        if part != "operations" or device != first:
            continue
        other = by.get((model, precision, "eager", part, last), {"operations": []})
        known = {row["name"]: row["ms"] for row in other["operations"]}
        written.append(f"{model} {precision}, ms of a step in its slowest operations on {first}, and on {last}:")
        for row in line["operations"][:_SHOWN]:
            theirs = known.get(row["name"])
            beside = f"{theirs:9.3f} {_ratio(theirs, row['ms']):>6}" if theirs else f"{'-':>9} {'-':>6}"
            written.append(f"  {row['ms']:9.3f} {beside}  {row['count']:4} of {row['name']}")
    written += [
        " ".join(str(line[key]) for key in ("device", "model", "precision", "mode", "part") if key in line)
        + f": {line['failure']}"
        for line in lines
        if "failure" in line
    ]
    return "\n".join(written)


def _chosen(text: str, known: Iterable[str], parser: argparse.ArgumentParser) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def main() -> int:
    """Measures, writes, prints. 1 where nothing was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all without one")
    parser.add_argument("--device", default="spirv", help="of spirv, cuda, cpu, with commas; ratios are to the last")
    parser.add_argument("--modes", default=",".join(MODES), help="eager, compiled")
    parser.add_argument("--precisions", default=",".join(PRECISIONS), help="fp32, bf16")
    parser.add_argument("--seconds", type=float, default=240.0, help="after which a process is ended")
    parser.add_argument("--small", action="store_true", help=f"small models: {', '.join(SMALL)}")
    parser.add_argument("--out", type=Path, help="a file to which the lines of JSON are added")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.loads(options.worker))
        return 0
    known = SMALL if options.small else MODELS
    models = _chosen(",".join(options.models or known), known, parser)
    devices = _chosen(options.device, DEVICES, parser)
    task = {
        "modes": _chosen(options.modes, MODES, parser),
        "precisions": _chosen(options.precisions, PRECISIONS, parser),
        "small": options.small,
    }
    lines: list[dict[str, Any]] = []
    for model in models:
        for device in devices:
            start = time.perf_counter()
            for line in measured({**task, "model": model, "device": device}, options.seconds):
                lines.append(line)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                said = line.get("failure") or {key: line[key] for key in line if key not in ("kernels", "operations")}
                print(f"{model} {device} {line['part']}: {said}", file=sys.stderr, flush=True)
            print(f"{model} {device}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(lines, devices))
    return int(not any(line["part"] == "speed" and "failure" not in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
