"""Convolutions of a ResNet on ``spirv`` beside torch on CUDA or on the CPU: the result, and the gradients of x and w.

Each device runs in its own process. A line of JSON is printed for each shape, type, order of memory and part as it
is measured: milliseconds, and TFLOP/s of the matmul that the convolution is made of. A table follows.

    python -m benchmarks.convolutions --device spirv,cuda
    python -m benchmarks.convolutions --device spirv,cpu --batch 1 3x3-512

Calls are issued one after the other, until they take ``--milliseconds`` together; what is told is the median of some
such rounds by the clock, so that a call's launches overlap the one before. fp32 is fp32: TF32 is off.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from .models import DEVICES, environment

#: Channels of x and y, the side of x, the window's side, the stride.
SHAPES: dict[str, tuple[int, int, int, int, int]] = {
    "7x7-3-64-s2": (3, 64, 224, 7, 2),
    "3x3-64": (64, 64, 56, 3, 1),
    "3x3-64-128-s2": (64, 128, 56, 3, 2),
    "1x1-64-128-s2": (64, 128, 56, 1, 2),
    "3x3-128": (128, 128, 28, 3, 1),
    "3x3-128-256-s2": (128, 256, 28, 3, 2),
    "1x1-128-256-s2": (128, 256, 28, 1, 2),
    "3x3-256": (256, 256, 14, 3, 1),
    "3x3-256-512-s2": (256, 512, 14, 3, 2),
    "1x1-256-512-s2": (256, 512, 14, 1, 2),
    "3x3-512": (512, 512, 7, 3, 1),
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
ORDERS = {"first": torch.contiguous_format, "last": torch.channels_last}
_ROUNDS = 5


def _calls(name: str, batch: int, device: str, kind: str, order: str) -> tuple[dict[str, Callable[[], Any]], float]:
    """The parts by name, and how many floating-point operations each is."""
    given, made, side, window, stride = SHAPES[name]
    torch.manual_seed(0)

    def drawn(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes).to(device, TYPES[kind]).contiguous(memory_format=ORDERS[order])

    x, w = drawn(batch, given, side, side), drawn(made, given, window, window)
    how = [stride] * 2, [window // 2] * 2, [1, 1], False, [0, 0], 1
    y = torch.ops.aten.convolution(x, w, None, *how)
    grad = drawn(*y.shape)

    def gradient(of_x: bool) -> Callable[[], Any]:
        return lambda: torch.ops.aten.convolution_backward(grad, x, w, None, *how, [of_x, not of_x, False])

    parts = {
        "result": lambda: torch.ops.aten.convolution(x, w, None, *how),
        "gradient of x": gradient(True),
        "gradient of w": gradient(False),
    }
    return parts, 2.0 * y.numel() * given * window**2


def _seconds(call: Callable[[], Any], synchronize: Callable[[], None], least: float) -> float:
    """Of a call, behind some that compile and prepare it."""
    for _ in range(3):
        call()
    synchronize()
    start = time.perf_counter()
    call()
    synchronize()
    count = max(1, int(least / (time.perf_counter() - start)))
    rounds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            call()
        synchronize()
        rounds.append((time.perf_counter() - start) / count)
    return median(rounds)


def work(task: dict[str, Any]) -> None:
    """Prints the lines of a device."""
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device = task["device"]
    synchronize = (lambda: None) if device == "cpu" else getattr(torch, device).synchronize
    for name in task["shapes"]:
        for kind in task["types"]:
            for order in task["orders"]:
                about = {"device": device, "shape": name, "type": kind, "channels": order}
                try:
                    parts, operations = _calls(name, task["batch"], device, kind, order)
                    for part, call in parts.items():
                        seconds = _seconds(call, synchronize, task["milliseconds"] / 1e3)
                        found = {"part": part, "ms": 1e3 * seconds, "tflops": operations / seconds / 1e12}
                        print(json.dumps(about | found), flush=True)
                except Exception as error:
                    print(json.dumps(about | {"failure": " ".join(str(error).split())[:600]}), flush=True)


def table(lines: list[dict[str, Any]], devices: list[str]) -> str:
    """Milliseconds of each part on each device, TFLOP/s on the first, and the ratio to the last."""
    found = {
        (line["shape"], line["type"], line["channels"], line["part"], line["device"]): line
        for line in lines
        if "failure" not in line
    }
    rows = [
        f"{'shape':16} type channels {'part':14}" + "".join(f"{device:>10}" for device in devices) + "  TFLOP/s  ratio"
    ]
    for key in dict.fromkeys(key[:4] for key in found):
        times = [found[*key, device]["ms"] if (*key, device) in found else None for device in devices]
        row = f"{key[0]:16} {key[1]:4} {key[2]:8} {key[3]:14}"
        row += "".join(f"{ms:10.3f}" if ms else f"{'-':>10}" for ms in times)
        ours = found.get((*key, devices[0]))
        row += f"{ours['tflops']:9.2f}" if ours else f"{'-':>9}"
        rows.append(row + (f"{times[-1] / times[0]:7.2f}" if times[0] and times[-1] else f"{'-':>7}"))
    return "\n".join(rows)


def main() -> int:
    """Measures and prints. 1 where a part failed, or nothing was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", choices=[[], *SHAPES], metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--device", default="spirv", help="of spirv, cuda, cpu, with commas; ratios are to the last")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--orders", default="first", help="where the channels are in memory: first, last")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--milliseconds", type=float, default=50.0)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.loads(options.worker))
        return 0
    devices = options.device.split(",")
    if not set(devices) <= {*DEVICES}:
        parser.error(f"devices are {', '.join(DEVICES)}")
    task = {"shapes": options.shapes or [*SHAPES], "types": options.types.split(","), "batch": options.batch}
    task |= {"orders": options.orders.split(","), "milliseconds": options.milliseconds}
    lines: list[dict[str, Any]] = []
    for device in devices:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.convolutions"]
        command += ["--worker", json.dumps(task | {"device": device})]
        process = subprocess.Popen(
            command, env=environment(device), cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("{"):
                lines.append(json.loads(line))
        if process.wait():
            lines.append({"device": device, "failure": f"its process ended with {process.returncode}"})
            print(json.dumps(lines[-1]), flush=True)
    print(table(lines, devices))
    return int(not lines or any("failure" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main())
