"""Speed against Triton's interpreter (TRITON_INTERPRET=1), which is what runs kernels where no GPU is supported.

``python -m benchmarks.interpreter [--seconds S]``: the same kernels on the same CPU tensors, compiled in this process
and interpreted in a second one, one after the other. Compilation is not counted. The speed-ups' geometric mean is
printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from examples import flash_attention, fused_softmax, layer_norm, matmul, vector_add

Case = tuple[Callable[[], None], torch.Tensor, np.ndarray]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _vector_add() -> Case:
    x, y = _random(1 << 20), _random(1 << 20).flip(0)
    out = torch.zeros_like(x)
    return lambda: vector_add.add(x, y, out, x.numel()), out, (x + y).numpy()


def _softmax() -> Case:
    rows, columns = 512, 781
    x = _random(rows, columns)
    out = torch.zeros_like(x)
    return lambda: fused_softmax.softmax(x, out, rows, columns), out, fused_softmax.reference(x.numpy())


def _layer_norm() -> Case:
    rows, columns = 512, 1000
    x, weight, bias = _random(rows, columns), _random(columns), _random(columns).flip(0)
    out, mean, rstd = torch.zeros_like(x), torch.zeros(rows), torch.zeros(rows)
    return (
        lambda: layer_norm.layer_norm(x, out, weight, bias, mean, rstd, rows, columns),
        out,
        layer_norm.reference(x.numpy(), weight.numpy(), bias.numpy()),
    )


def _matmul() -> Case:
    size = 512
    a, b = _random(size, size), _random(size, size).flip(0)
    c = torch.zeros(size, size)
    return lambda: matmul.matmul(a, b, c, size, size, size), c, (a.double() @ b.double()).numpy()


def _attention() -> Case:
    heads, length, head = 4, 512, 64
    q, k, v = (_random(heads, length, head).roll(shift, 1) for shift in range(3))
    out, sums = torch.zeros_like(q), torch.zeros(heads, length)
    scale = head**-0.5
    return (
        lambda: flash_attention.forward(q, k, v, out, sums, heads, length, head, scale, causal=True, block=32),
        out,
        flash_attention.reference(q.numpy(), k.numpy(), v.numpy(), scale, causal=True),
    )


CASES: dict[str, Callable[[], Case]] = {
    "vector add 2²⁰": _vector_add,
    "softmax 512×781": _softmax,
    "layer norm 512×1000": _layer_norm,
    "matmul 512³": _matmul,
    "attention 4×512×64": _attention,
}


def measure(make: Callable[[], Case], seconds: float) -> float:
    """Median seconds of a run, of at least one. Raises RuntimeError if the result is wrong."""
    run, out, expected = make()
    run()
    error = float(np.abs(out.numpy().astype(np.float64) - expected).max())
    if not error < 1e-3:
        raise RuntimeError(f"wrong result: error {error}")
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def interpreted(name: str, seconds: float) -> float:
    """``measure`` in its own process, where kernels are interpreted."""
    command = [sys.executable, "-m", "benchmarks.interpreter", "--only", name, "--seconds", str(seconds)]
    result: Any = json.loads(
        subprocess.run(
            command, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, capture_output=True, text=True
        ).stdout
    )
    return float(result)


def main() -> None:
    """Prints a line a kernel, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement")
    parser.add_argument("--only", help="print the seconds of this one as JSON, however kernels are run here")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measure(CASES[arguments.only], arguments.seconds)))
        return
    print(f"{'':24}{'compiled':>12}{'interpreted':>14}{'speed-up':>10}")
    ratios = []
    for name, make in CASES.items():
        ours, theirs = measure(make, arguments.seconds), interpreted(name, arguments.seconds)
        ratios.append(theirs / ours)
        print(f"{name:24}{1e3 * ours:9.2f} ms{1e3 * theirs:11.1f} ms{ratios[-1]:9.1f}×", flush=True)
    print(f"{'geometric mean':24}{'':26}{statistics.geometric_mean(ratios):9.1f}×")


if __name__ == "__main__":
    main()
