"""Compile time of large tiles: from ``@triton.jit`` source to the first result, with the cache off, split by stage.

``python -m benchmarks.tile_compile [--runs N]``. The device's compiler is taken to be the creation of the pipeline and
what the first launch takes longer than the second: Mesa's CPU driver compiles at the first dispatch. Mesa's own cache
of compiled shaders is switched off.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton import knobs

from examples.flash_attention import forward_kernel
from examples.harness import device_array, device_name
from examples.matmul import matmul_kernel


@triton.jit
def sort_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@dataclass(frozen=True)
class Tile:
    """A launch whose kernel is compiled anew. ``limit``: seconds to the first result that are aimed at."""

    name: str
    kernel: Any
    limit: float
    launch: Callable[[], Any]


def _arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Any]:
    random = np.random.default_rng(0)
    return [device_array(random.standard_normal(shape, dtype=np.float32).astype(dtype)) for shape in shapes]


def _matmul(m: int, n: int, k: int) -> Callable[[], Any]:
    a, b, c = _arrays((m, 2 * k), (2 * k, n), (m, n))
    return lambda: matmul_kernel[(1,)](
        a, b, c, m, n, 2 * k, 2 * k, 1, n, 1, n, 1, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP=8, ACTIVATION="", num_warps=4
    )


def _attention(block: int, head: int, dtype: Any) -> Callable[[], Any]:
    length = 2 * block
    q, k, v, out = _arrays(*((1, length, head),) * 4, dtype=dtype)
    (sums,) = _arrays((length,))
    return lambda: forward_kernel[(2, 1)](
        q, k, v, out, sums, length, head**-0.5, HEAD=head, BLOCK_M=block, BLOCK_N=block, CAUSAL=True, num_warps=4
    )


def _sort(size: int) -> Callable[[], Any]:
    x, out = _arrays((size,), (size,))
    return lambda: sort_kernel[(1,)](x, out, SIZE=size)


def tiles() -> list[Tile]:
    """The tiles with the times that are aimed at."""
    return [
        Tile("matmul 128×128×32 fp32", matmul_kernel, 3.0, _matmul(128, 128, 32)),
        Tile("attention 64×64, head 64, fp16", forward_kernel, 5.0, _attention(64, 64, np.float16)),
        Tile("sort of 2,048 fp32", sort_kernel, 5.0, _sort(2048)),
    ]


class Stages:
    """Seconds that Triton reports for each stage of the last compilation."""

    def __init__(self) -> None:
        self.front_end = self.passes = self.lowering = 0.0

    def __call__(self, *, times: Any, **_: Any) -> None:
        """Triton's compilation listener."""
        stages = dict(times.lowering_stages)
        self.front_end = times.ir_initialization / 1e6
        self.lowering = stages["spv"] / 1e6
        self.passes = (times.total_lowering - stages["spv"]) / 1e6


def measure(tile: Tile, stages: Stages) -> tuple[float, ...]:
    """Seconds: front end, passes, lowering, device's compiler, in all to the first result, one run."""
    tile.kernel.device_caches.clear()
    start = time.perf_counter()
    tile.launch()
    total = time.perf_counter() - start
    start = time.perf_counter()
    tile.launch()
    again = time.perf_counter() - start
    device = total - again - stages.front_end - stages.passes - stages.lowering
    return stages.front_end, stages.passes, stages.lowering, device, total, again


def main() -> None:
    """Prints a line a tile: the run with the smallest total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"  # read by the driver when it is loaded
    stages = Stages()
    knobs.compilation.always_compile = True
    knobs.compilation.listener = stages
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        columns = ("front end", "passes", "lowering", "device", "in all", "one run")
        print(f"{device_name()}; seconds")
        print(f"{'':32}{''.join(f'{column:>11}' for column in columns)}{'aim':>7}")
        for tile in tiles():
            best = min((measure(tile, stages) for _ in range(arguments.runs)), key=lambda seconds: seconds[4])
            print(f"{tile.name:32}{''.join(f'{seconds:11.3f}' for seconds in best)}{tile.limit:7.1f}")


if __name__ == "__main__":
    main()
