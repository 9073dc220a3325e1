"""Compile time of kernels whose code would be long: CPU seconds in Triton and in the device's compiler, size of SPIR-V.

``python -m benchmarks.compile_cliffs [NAME ...]``. CPU time of all threads, so that a busy machine says the same.
The device's compiler is taken to be what the first launch takes longer than the second: Mesa's CPU driver compiles
at the first dispatch. No cache is used. Ends with 1 where a kernel takes more than 10 s.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton import knobs

from examples.harness import device_array, device_name
from examples.matmul import matmul_kernel
from tests.fuzz.programs import generate
from tests.fuzz.running import write_module

#: Seconds that no kernel should take.
LIMIT = 10.0


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


@triton.jit
def chain_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x, y = tl.load(x_ptr + offsets, mask=inside), tl.load(y_ptr + offsets, mask=inside)
    z = tl.exp(x) / (1 + tl.exp(-y)) + tl.log(tl.abs(x) + 1) * y
    tl.store(out_ptr + offsets, tl.where(z > x, z, tl.sqrt(tl.abs(y))), mask=inside)


@triton.jit
def strided_kernel(x_ptr, y_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK) * stride
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * tl.load(y_ptr + offsets))


@triton.jit
def sine_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    total = tl.zeros_like(x)
    for step in range(count):
        total += tl.sin(x * step)
    tl.store(out_ptr + offsets, total)


@triton.jit
def sum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))


@triton.jit
def scan_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets)))


@triton.jit
def sort_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def histogram_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    bins = tl.arange(0, 64)
    tl.store(out_ptr + bins, tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)).to(tl.int32), 64).to(tl.float32))


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns)
    tl.store(out_ptr + columns[:, None] * M + rows, tl.trans(x))


@triton.jit
def scale_and_shift_kernel(x_ptr, scale_ptr, bias_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """A row and a column that are loaded apart, as biases and norms are."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    scale, bias = tl.load(scale_ptr + i, mask=i < m, other=0), tl.load(bias_ptr + j, mask=j < n, other=0)
    inside = (i[:, None] < m) & (j < n)
    x = tl.load(x_ptr + i[:, None] * N + j, mask=inside, other=0)
    tl.store(out_ptr + i[:, None] * N + j, x * scale[:, None] + bias, mask=inside)


@triton.jit
def softmax_backward_kernel(p_ptr, g_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j < n)
    at = i[:, None] * n + j
    p, g = tl.load(p_ptr + at, mask=inside, other=0), tl.load(g_ptr + at, mask=inside, other=0)
    tl.store(out_ptr + at, p * (g - tl.sum(p * g, 1)[:, None]), mask=inside)


@triton.jit
def stream_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, steps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Each program multiplies ``steps`` blocks along K, over the borders of tiles, and adds its part to C."""
    step, last = tl.program_id(0) * steps, (tl.program_id(0) + 1) * steps
    a_tile_steps = tl.cdiv(K, BLOCK_K)
    while step < last:
        end = tl.minimum(step + (a_tile_steps - step % a_tile_steps), last)
        tile = step // a_tile_steps
        row, column = tile // tl.cdiv(N, BLOCK_N), tile % tl.cdiv(N, BLOCK_N)
        rows, columns = row * BLOCK_M + tl.arange(0, BLOCK_M), column * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K) + (step % a_tile_steps) * BLOCK_K
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for _ in range(step, end):
            a = tl.load(a_ptr + rows[:, None] * K + inner, mask=(rows[:, None] < M) & (inner < K), other=0.0)
            b = tl.load(b_ptr + inner[:, None] * N + columns, mask=(inner[:, None] < K) & (columns < N), other=0.0)
            total = tl.dot(a, b, total, input_precision="ieee")
            inner += BLOCK_K
        place = c_ptr + rows[:, None] * N + columns
        inside = (rows[:, None] < M) & (columns < N)
        if step % a_tile_steps == 0 and end % a_tile_steps == 0:
            tl.store(place, total, mask=inside)
        else:
            tl.atomic_add(place, total, mask=inside)
        step = end


@dataclass(frozen=True)
class Cliff:
    """A kernel with its arguments: compiled by ``kernel.warmup``, launched by ``kernel[grid]``."""

    kernel: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def _arrays(count: int, size: int) -> list[Any]:
    random = np.random.default_rng(0)
    return [device_array(random.standard_normal(size, dtype=np.float32)) for _ in range(count)]


def _tile(kernel: Any, inputs: int, block: int, *rest: Any, warps: int = 4) -> Callable[[], Cliff]:
    return lambda: Cliff(kernel, (*_arrays(inputs + 1, block), *rest), {"BLOCK": block, "num_warps": warps})


def _tall(kernel: Any, sizes: tuple[int, ...], warps: int) -> Callable[[], Cliff]:
    return lambda: Cliff(
        kernel, (*(_arrays(1, size)[0] for size in sizes), 125, 123), {"M": 128, "N": 128, "num_warps": warps}
    )


def _stream_k(block: int, inner: int, warps: int = 4) -> Cliff:
    a, b, c = _arrays(3, block * block)
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": inner, "num_warps": warps}
    return Cliff(stream_k_kernel, (a, b, c, block, block, block, block // inner), blocks)


def _matmul(m: int, n: int, k: int, warps: int) -> Cliff:
    (a,), (b,), (c,) = _arrays(1, m * 2 * k), _arrays(1, 2 * k * n), _arrays(1, m * n)
    blocks = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8, "ACTIVATION": "", "num_warps": warps}
    return Cliff(matmul_kernel, (a, b, c, m, n, 2 * k, 2 * k, 1, n, 1, n, 1), blocks)


def _random(seed: int) -> Cliff:
    """The kernel of the fuzzer with that seed."""
    program = generate(seed)
    module = _load(write_module([program], Path(tempfile.mkdtemp())))
    kernel, shape, warps, programs = module.LAUNCHES[seed]
    types = (np.int32, np.float32, np.int8, np.int64)
    arrays = [device_array(np.zeros((programs, *shape), type_)) for type_ in types * 2]
    return Cliff(kernel, (*arrays, 3, shape[0] * shape[1] - 3), {"num_warps": warps})


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cliffs() -> dict[str, Callable[[], Cliff]]:
    """What is compiled, by name; ``fuzz-SEED`` is another."""
    return {
        "add-131072": _tile(add_kernel, 2, 131072, 131072),
        "chain-131072": _tile(chain_kernel, 2, 131072, 131072),
        "chain-8192-1warp": _tile(chain_kernel, 2, 8192, 8192, warps=1),
        "strided-131072": _tile(strided_kernel, 2, 131072, 1),
        "sine-loop-8192": _tile(sine_kernel, 1, 8192, 3),
        "sine-loop-1024-1warp": _tile(sine_kernel, 1, 1024, 3, warps=1),
        "sum-131072": _tile(sum_kernel, 1, 131072),
        "scan-16384": _tile(scan_kernel, 1, 16384),
        "sort-2048": _tile(sort_kernel, 1, 2048),
        "histogram-32768": _tile(histogram_kernel, 1, 32768),
        "transpose-128x128": lambda: Cliff(transpose_kernel, (*_arrays(2, 128 * 128),), {"M": 128, "N": 128}),
        "scale-and-shift-128x128": _tall(scale_and_shift_kernel, (16384, 128, 128, 16384), 4),
        "scale-and-shift-1warp": _tall(scale_and_shift_kernel, (16384, 128, 128, 16384), 1),
        "softmax-backward-128x128": _tall(softmax_backward_kernel, (16384, 16384, 16384), 4),
        "softmax-backward-1warp": _tall(softmax_backward_kernel, (16384, 16384, 16384), 1),
        "stream-k-128x128x32": lambda: _stream_k(128, 32),
        "stream-k-64x64x32": lambda: _stream_k(64, 32),
        "matmul-128x128x32": lambda: _matmul(128, 128, 32, 4),
        "matmul-128x256x64": lambda: _matmul(128, 256, 64, 8),
    }


def measure(cliff: Cliff) -> tuple[float, float, float, int]:
    """CPU seconds in Triton, in the device's compiler, of one run, and the bytes of SPIR-V."""
    start = time.process_time()
    compiled = cliff.kernel.warmup(*cliff.arguments, grid=(1,), **cliff.options)
    triton_seconds = time.process_time() - start
    runs = []
    for _ in range(2):
        start = time.process_time()
        cliff.kernel[(1,)](*cliff.arguments, **cliff.options)
        runs.append(time.process_time() - start)
    return triton_seconds, runs[0] - runs[1], runs[1], len(compiled.asm["spv"])


def main() -> None:
    """Prints a line a kernel; 1 where one takes longer than LIMIT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the list, or fuzz-SEED")
    arguments = parser.parse_args()
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"  # read by the driver when it is loaded
    known = cliffs()
    slow = []
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        print(f"{device_name()}; seconds of CPU time")
        print(f"{'':24}{'Triton':>10}{'driver':>10}{'one run':>10}{'SPIR-V':>12}")
        measure(_tile(add_kernel, 2, 16, 16)())  # imports what compiling needs
        for name in arguments.names or known:
            make = known.get(name) or (lambda name=name: _random(int(name.removeprefix("fuzz-"))))
            try:
                triton_seconds, driver, run, size = measure(make())
            except Exception as error:
                print(f"{name:24}  {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
            print(f"{name:24}{triton_seconds:10.2f}{driver:10.2f}{run:10.3f}{size:10} B", flush=True)
            if triton_seconds + driver > LIMIT:
                slow.append(name)
    if slow:
        sys.exit(f"more than {LIMIT:.0f} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
