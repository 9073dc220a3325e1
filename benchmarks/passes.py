"""What each of upstream's optional passes is worth: kernels without it beside the usual ones, on the device in use.

    python -m benchmarks.passes [--items coalesce,cse] [--kernels sum,matmul] [--seconds S] [--json FILE]
    python -m benchmarks.passes --add ttgpuir.add_optimize_thread_locality

A kernel whose module a pass changes is timed with and without it, turn about: by processor time on the CPU device, by
the benchmarker's median on a GPU. For an emulated device kernels are compiled alone. A line has, for one item, how many
of the kernels it changes, and without it the words of these modules, the time of these kernels (geometric mean, and the
two most extreme ones) and the processor time to compile all kernels, as multiples of the usual ones. ``--add`` measures
a pass that is not run, as if it ran behind upstream's layouts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import passes, reference, runtime
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.runtime.context import current
from triton.runtime.jit import JITFunction

from benchmarks.cpu import kernels
from benchmarks.cpu.measuring import interleaved
from examples import flash_attention, fused_softmax, layer_norm, matmul

Run = Callable[..., Any]
#: What reference.py calls the items that are measured.
UPSTREAMS = "upstream's pass"


@triton.jit
def reduced_rows(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr, OP: tl.constexpr):
    """Tiles of rows, each reduced and added to what the loop carries."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.full((ROWS,), float("-inf") if OP == "max" else 0.0, tl.float32)
    for first in range(0, n, COLUMNS):
        value = tl.load(x + row[:, None] * n + first + tl.arange(0, COLUMNS)[None, :])
        if OP == "max":
            total = tl.maximum(total, tl.max(value, 1))
        elif OP == "sum":
            total += tl.sum(value, 1)
        else:
            total += tl.sum(value * value, 1)
    tl.store(out + row, total)


@triton.jit
def online_softmax(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    most, total = float("-inf"), 0.0
    for first in range(0, n, BLOCK):
        value = tl.load(x + row * n + first + at)
        larger = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(value - larger), 0)
        most = larger
    for first in range(0, n, BLOCK):
        place = row * n + first + at
        tl.store(out + place, tl.exp(tl.load(x + place) - most) / total)


@triton.jit
def gathered(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    place = tl.program_id(0) * ROWS * COLUMNS + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + place, tl.gather(tl.load(x + place), tl.load(index + place), AXIS))


@triton.jit
def piecewise(x, y, out, n, scale, BLOCK: tl.constexpr):
    """Branches and loops on tensors."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n)
    for step in range(4):
        bias = tl.load(y + at, mask=at < n) * scale
        if tl.program_id(0) % 2 == 0:
            a = tl.where(a > bias, a - bias, a + step)
        else:
            a = a * bias
    tl.store(out + at, a, mask=at < n)


def launches(rows: int, size: int) -> Iterator[tuple[str, Run]]:
    """Kernels by name, which take further options; of ``rows`` × 4096 numbers, products of ``size``² ones."""
    numbers, n = np.random.default_rng(0), 4096
    x = runtime.from_numpy(numbers.random((rows, n), np.float32))
    y = runtime.from_numpy(numbers.random((rows, n), np.float32))
    index = runtime.from_numpy(numbers.integers(0, 32, (rows, n)).astype(np.int32))
    out, counts = runtime.empty((rows, n), "float32"), runtime.empty((rows, n), "int32")
    all_, blocks = rows * n, (rows * n // 1024,)
    yield "add", lambda **o: kernels.add[blocks](x, y, out, all_ - 5, BLOCK=1024, **o)
    yield "gelu", lambda **o: kernels.gelu[blocks](x, out, all_ - 5, BLOCK=1024, **o)
    yield "uniform", lambda **o: kernels.uniform[blocks](out, all_ - 5, 7, BLOCK=1024, **o)
    yield "piecewise", lambda **o: piecewise[blocks](x, y, out, all_ - 5, 0.5, BLOCK=1024, **o)
    yield "softmax", lambda **o: fused_softmax.softmax_kernel[(rows,)](out, x, n, n, BLOCK=4096, **o)
    yield "softmax, online", lambda **o: online_softmax[(rows,)](x, out, n, BLOCK=512, **o)
    yield (
        "layer norm",
        lambda **o: layer_norm.layer_norm_kernel[(rows,)](x, out, y, y, counts, counts, n, n, 1e-5, BLOCK=4096, **o),
    )
    for op in ("sum", "max", "squares"):
        for m, k in ((16, 256), (4, 128), (1, 1024), (32, 32)):
            yield (
                f"{op} of {m}×{k}",
                lambda op=op, m=m, k=k, **o: reduced_rows[(rows // m,)](x, out, n, m, k, op, **o),
            )
    yield (
        "sum of columns",
        lambda **o: kernels.reduce_columns[(n // 128,)](x, out, rows, n, MAXIMUM=False, ROWS=16, COLUMNS=128, **o),
    )
    for axis in (0, 1):
        yield f"gather, axis {axis}", lambda axis=axis, **o: gathered[(all_ // 2048,)](x, index, out, 32, 64, axis, **o)
    yield ("transpose", lambda **o: kernels.transpose[(rows // 32, n // 32)](x, out, rows, n, TILE=32, **o))
    yield "cumsum", lambda **o: kernels.cumulative[(rows,)](x, out, n, BLOCK=4096, **o)
    yield "argmax", lambda **o: kernels.largest[(rows,)](x, counts, n, BLOCK=4096, **o)
    yield "histogram", lambda **o: kernels.histogram[blocks](index, counts, all_, BINS=64, BLOCK=1024, **o)
    yield "sort", lambda **o: kernels.sort[(rows,)](x, out, 256, BLOCK=256, **o)
    for dtype in ("float32", "float16"):
        yield from _products(numbers, dtype, size)


def _products(numbers: np.random.Generator, dtype: str, size: int) -> Iterator[tuple[str, Run]]:
    """Kernels of dots."""
    a, b = (runtime.from_numpy(numbers.random((size, size), np.float32).astype(dtype)) for _ in range(2))
    c, tiles, strides = runtime.empty((size, size), dtype), ((size // 64) ** 2,), (size, 1, size, 1, size, 1)
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8, "ACTIVATION": "leaky_relu"}
    yield (
        f"matmul {dtype}",
        lambda **o: matmul.matmul_kernel[tiles](a, b, c, size, size, size, *strides, **constants, **o),
    )
    q, k, v = (runtime.from_numpy(numbers.random((4, size, 64), np.float32).astype(dtype)) for _ in range(3))
    out, sums = runtime.empty((4, size, 64), dtype), runtime.empty((4, size), "float32")
    blocks = {"HEAD": 64, "BLOCK_M": 32, "BLOCK_N": 32, "CAUSAL": True}
    yield (
        f"attention {dtype}",
        lambda **o: flash_attention.forward_kernel[(size // 32, 4)](q, k, v, out, sums, size, 0.125, **blocks, **o),
    )


def _forget() -> None:
    """The kernels that were compiled."""
    modules = (kernels, flash_attention, fused_softmax, layer_norm, matmul, sys.modules[__name__])
    for function in (value for module in modules for value in vars(module).values()):
        if isinstance(function, JITFunction):
            function.device_caches.clear()
            function.relaunch = None


def _only_compiled(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
    return _RUN(kernel, *arguments, grid=grid, warmup=True, **options)


_RUN = JITFunction.run


def _compiled(run: Run, **options: Any) -> tuple[int, float, bytes]:
    """Words of a kernel's module, processor seconds until it has run or was compiled, and the module."""
    _forget()
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = folder
        start = time.process_time()
        kernel = run(**options)
        triton.runtime.driver.active.get_device_interface().synchronize()
        module = kernel.asm["spv"]
        return len(module) // 4, time.process_time() - start, module


def _times(run: Run, item: str, seconds: float, processor: bool) -> float:
    """Without the item, as a multiple of the usual time."""
    usual, without = lambda: run(without=()), lambda: run(without=(item,))  # launched alike
    if processor:
        found = interleaved({"usual": usual, "without": without}, seconds)
        return found["without"].processor / found["usual"].processor
    bench = triton.runtime.driver.active.get_benchmarker()
    rounds = [[bench(side, quantiles=(0.5, 0.2, 0.8))[0] for side in (usual, without)] for _ in range(3)]
    ours, theirs = (min(side) for side in zip(*rounds, strict=True))
    return float(theirs / ours)


@contextlib.contextmanager
def added(name: str) -> Iterator[str]:
    """The item of a pass, ``GROUP.NAME``, that kernels are compiled with in the block."""
    group, _, pass_ = name.partition(".")
    row = passes.Pass(getattr(passes.passes, group), pass_)
    layouts, names, items = passes.LAYOUTS, reference.NAMES, reference.ITEMS
    passes.LAYOUTS, reference.NAMES = (*layouts, row), (*names, row.item)
    reference.ITEMS = (*items, reference.Item(row.item, UPSTREAMS, row))
    try:
        yield row.item
    finally:
        passes.LAYOUTS, reference.NAMES, reference.ITEMS = layouts, names, items


def measure(item: str, some: dict[str, Run], seconds: float, timed: bool, processor: bool) -> dict[str, Any]:
    """What one item is worth to the kernels: ``words`` and ``times`` of those that it changes, and ``compiling``,
    without it as multiples of the usual."""
    words, times, compiling = {}, {}, [0.0, 0.0]
    for name, run in some.items():
        try:
            usual, without = _compiled(run), _compiled(run, without=(item,))
        except Exception as error:
            print(f"  {name}: {type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        compiling = [compiling[0] + usual[1], compiling[1] + without[1]]
        if usual[2] != without[2]:
            words[name] = without[0] / usual[0]
            if timed:
                times[name] = _times(run, item, seconds, processor)
    return {"item": item, "words": words, "times": times, "compiling": compiling[1] / (compiling[0] or 1.0)}


def _extremes(values: dict[str, float]) -> str:
    if not values:
        return "-"
    mean = math.exp(sum(map(math.log, values.values())) / len(values))
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return f"{mean:.2f} ({least} {values[least]:.2f}, {most} {values[most]:.2f})"


def main(arguments: Sequence[str]) -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    optional = [item.name for item in reference.ITEMS if item.kind == UPSTREAMS]
    parser.add_argument("--items", default=",".join(optional), help="some of the optional ones")
    parser.add_argument("--add", metavar="GROUP.NAME", help="a pass that is not run, instead")
    parser.add_argument("--kernels", default="", help="those whose names begin with one of these")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each kernel, on the CPU device")
    parser.add_argument("--rows", type=int, default=0, help="of 4096 numbers; default: 256, or 16384 on a GPU")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    capabilities = Capabilities.parse(str(triton.runtime.driver.active.get_current_target().arch))
    device = current().device
    processor, timed = bool(capabilities.processor), "emulated" not in device.name
    small = processor or not timed
    rows = options.rows or (256 if small else 16384)
    starts = tuple(options.kernels.split(","))
    some = {name: run for name, run in launches(rows, 256 if small else 4096) if name.startswith(starts)}
    print(f"{device.name}: {len(some)} kernels", flush=True)
    figures = []
    running = contextlib.nullcontext() if timed else mock.patch.object(JITFunction, "run", _only_compiled)
    with running, added(options.add) if options.add else contextlib.nullcontext() as item:
        for one in [item] if item else options.items.split(","):
            found = measure(one, some, options.seconds, timed, processor)
            figures.append(found)
            print(
                f"{one:32} changes {len(found['words']):2}  words {_extremes(found['words'])}  "
                f"time {_extremes(found['times'])}  compiling {found['compiling']:.2f}",
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps({"device": device.name, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
