"""Operations of torch that memory limits: bytes a second on each device, and their ratio to the last device's.

Each device has a process of its own, in which Triton's backend is this one for ``spirv`` and Triton's choice for other
devices. The time is the least of five, of ten calls each, after three.

    python -m benchmarks.memory_bound [--device spirv,cuda] [--elements N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

#: Shapes of the lists' tensors, if there are so many elements in all; and how many there are of each.
SHAPES = (((1024, 1024), 48), ((1024, 4096), 24), ((1024,), 100), ((32000, 1024), 1))
#: Variables that choose Triton's backend, and torch's device.
CHOOSE = ("TRITON_SPIRV_BACKEND", "TRITON_DEFAULT_BACKEND", "TRITON_SPIRV_TORCH_DEVICE")
OURS = {"TRITON_SPIRV_BACKEND": "1", "TRITON_SPIRV_TORCH_DEVICE": "1"}
Timed = tuple[str, Callable[[], Any], int]


def dense(device: str, elements: int) -> Iterator[Timed]:
    """(name, operation, bytes that it reads and writes) of tensors of so many elements."""
    a, b, c = (torch.ones(elements, device=device) for _ in range(3))
    h, of = a.to(torch.bfloat16), torch.ops.aten
    wide, long = a.view(-1, 1024), h.view(-1, 4096)
    yield "copy", lambda: c.copy_(a), 8 * elements
    yield "copy, transposed", lambda: c.view(-1, 1024).copy_(a.view(1024, -1).t()), 8 * elements
    yield "copy, transposed, bf16", lambda: h.view(1024, -1).t().contiguous(), 4 * elements
    yield "product", lambda: torch.mul(a, b, out=c), 12 * elements
    yield "sum of two", lambda: a.add_(b, alpha=0.0), 12 * elements
    yield "quotient", lambda: torch.div(a, b, out=c), 12 * elements
    yield "to bf16", lambda: of.copy_(h, a), 6 * elements
    yield "to fp32", lambda: of.copy_(a, h), 6 * elements
    yield "exp", lambda: torch.exp(a, out=c), 8 * elements
    for name in ("silu", "gelu", "tanh"):
        function = getattr(functional, name) if name != "tanh" else torch.tanh
        yield f"{name}, bf16", lambda function=function: function(h), 4 * elements
    yield "sum of all", lambda: a.sum(), 4 * elements
    yield "sum of the first dimension", lambda: wide.sum(0), 4 * elements
    yield "sum of the last dimension", lambda: wide.sum(1), 4 * elements
    yield "softmax, bf16", lambda: torch.softmax(long, -1), 4 * elements
    yield "layer norm, bf16", lambda: functional.layer_norm(h.view(-1, 1024), (1024,)), 4 * elements


def lists(device: str, elements: int) -> Iterator[Timed]:
    """The same of lists of tensors, and of AdamW."""
    shapes = [shape for shape, count in SHAPES for _ in range(count)]
    if sum(map(math.prod, shapes)) > 2 * elements:
        shapes = [(elements // 16,)] * 16
    x, g, m, v = ([torch.ones(shape, device=device) for shape in shapes] for _ in range(4))
    size = sum(map(math.prod, shapes))
    yield "list times a number", lambda: torch._foreach_mul_(x, 1.0), 8 * size
    yield "list divided by a number", lambda: torch._foreach_div_(m, 1.0), 8 * size
    yield "roots of a list", lambda: torch._foreach_sqrt(v), 8 * size
    yield "lerp_ of lists", lambda: torch._foreach_lerp_(m, g, 0.0), 12 * size
    yield "addcmul_ of lists", lambda: torch._foreach_addcmul_(v, g, g, 0.0), 12 * size
    yield "addcdiv_ of lists", lambda: torch._foreach_addcdiv_(x, m, v, 0.0), 16 * size
    for parameter, gradient in zip(x, g, strict=True):
        parameter.requires_grad_().grad = gradient
    for fused in (False, True):
        adam = torch.optim.AdamW(x, lr=0.0, fused=fused)
        yield f"AdamW{', fused' if fused else ''}", adam.step, 28 * size


def measure(device: str, elements: int) -> dict[str, float]:
    """GB/s by name."""
    if device == "spirv":
        import triton  # noqa: F401  (has torch know the device)
    wait = torch.get_device_module(device).synchronize
    found = {}
    for kind in (dense, lists):
        for name, run, size in kind(device, elements):
            for _ in range(3):
                run()
                wait()
            best = math.inf
            for _ in range(5):
                start = time.perf_counter()
                for _ in range(10):
                    run()
                wait()
                best = min(best, (time.perf_counter() - start) / 10)
            found[name] = size / best / 1e9
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="operations of torch that memory limits")
    parser.add_argument("--device", default="spirv,cuda", help="devices; the first is compared with the last")
    parser.add_argument("--elements", type=int, default=1 << 27, help="of a tensor, a power of two")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.elements < 1 << 20 or options.elements & (options.elements - 1):
        parser.error("--elements must be a power of two from 2^20 on")
    if options.worker:
        print(json.dumps(measure(options.device, options.elements)))
        return
    devices = options.device.split(",")
    command = [sys.executable, "-m", "benchmarks.memory_bound", "--worker", "--elements", str(options.elements)]
    found = {}
    plain = {name: value for name, value in os.environ.items() if name not in CHOOSE}
    for device in devices:
        environment = plain | OURS if device == "spirv" else plain
        done = subprocess.run(
            [*command, "--device", device], check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        found[device] = json.loads(done.stdout.splitlines()[-1])
    print(f"{'GB/s':26}" + "".join(f"{device:>10}" for device in devices) + "     ratio")
    for name, base in found[devices[-1]].items():
        rates = [found[device][name] for device in devices]
        print(f"{name:26}" + "".join(f"{rate:10.0f}" for rate in rates) + f"{rates[0] / base:10.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
