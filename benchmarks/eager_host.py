"""What an eager operation costs its thread on ``spirv`` beside torch's CPU device, turn about in one process.

Tensors are tiny, so that the time is that of the host: of torch's dispatcher, of what leads to a launch, and of the
launch. It is the thread's processor time, without that of threads which run kernels; the CPU device computes within
its own. ``--plain`` does each call without those before it, as operations were done before calls were prepared
(torch/ops/prepared.py), as a third column.

    python -m benchmarks.eager_host [NAME …] [--calls N] [--plain]

Beside CUDA, set TRITON_DEFAULT_BACKEND=spirv and TRITON_SPIRV_TORCH_DEVICE=1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from triton import knobs

_ROUNDS, _WARM_UP = 7, 8


def operations(device: str) -> dict[str, Callable[[], Any]]:
    """Calls by name, of each family of operations."""
    a, b, c = (torch.randn(8, 16, device=device) for _ in range(3))
    wide, weight, bias = torch.randn(16, 8, device=device), *(torch.randn(16, device=device) for _ in range(2))
    rows = torch.randn(2, 1, 8, 16, device=device)
    indices = torch.randint(0, 8, (2, 8), device=device)
    one, other = ([torch.randn(16, 16, device=device) for _ in range(30)] for _ in range(2))
    return {
        "empty": lambda: torch.empty(8, 16, device=device),
        "view": lambda: a.view(16, 8),
        "t": lambda: a.t(),
        "add": lambda: a + b,
        "mul by a number": lambda: a * 0.5,
        "add_": lambda: c.add_(b),
        "gelu": lambda: F.gelu(a),
        "where": lambda: torch.where(a > 0, a, b),
        "sum": lambda: a.sum(-1),
        "softmax": lambda: a.softmax(-1),
        "layer_norm": lambda: F.layer_norm(a, (16,), weight, bias),
        "mm": lambda: a @ wide,
        "attention": lambda: F.scaled_dot_product_attention(rows, rows, rows, is_causal=True),
        "embedding": lambda: F.embedding(indices, a),
        "copy_": lambda: c.copy_(b),
        "to bfloat16": lambda: a.to(torch.bfloat16),
        "contiguous": lambda: a.t().contiguous(),
        "cat": lambda: torch.cat((a, b)),
        "zeros": lambda: torch.zeros(8, 16, device=device),
        "_foreach_mul_": lambda: torch._foreach_mul_(one, 0.999),
        "_foreach_addcdiv_": lambda: torch._foreach_addcdiv_(one, other, other, -1e-3),
    }


def _microseconds(call: Callable[[], Any], calls: int) -> float:
    start = time.thread_time()
    for _ in range(calls):
        call()
    torch.spirv.synchronize()  # type: ignore[attr-defined]
    return 1e6 * (time.thread_time() - start) / calls


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of operations; all without one")
    parser.add_argument("--calls", type=int, default=200, help="of a round")
    parser.add_argument("--plain", action="store_true", help="without prepared calls, too")
    options = parser.parse_args()
    ours, theirs = operations("spirv"), operations("cpu")
    for name in options.names or ours:
        found: dict[str, list[float]] = {"spirv": [], "cpu": [], "plain": []}
        with torch.no_grad():
            for call in (ours[name], theirs[name]):
                for _ in range(_WARM_UP):
                    call()
            for _ in range(_ROUNDS):
                found["spirv"].append(_microseconds(ours[name], options.calls))
                found["cpu"].append(_microseconds(theirs[name], options.calls))
                if options.plain:  # a launch hook is told of launches that are not prepared
                    knobs.runtime.launch_enter_hook.add(_hook)
                    found["plain"].append(_microseconds(ours[name], options.calls))
                    knobs.runtime.launch_enter_hook.remove(_hook)
        spirv, cpu = (statistics.median(found[device]) for device in ("spirv", "cpu"))
        plain = f" {statistics.median(found['plain']):8.1f} plain" if options.plain else ""
        print(f"{name:18} {spirv:8.1f} µs {cpu:8.1f} on the CPU {spirv / cpu:6.2f}{plain}", flush=True)


def _hook(_: Any) -> None:
    """Tells nobody."""


if __name__ == "__main__":
    main()
