"""What exchanges elements is compiled in time that does not run away: a tile of twice the elements takes at most three
times as long, in seconds of all processors, in Triton and the driver together."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.kernel_times import Observer
from tests.written import written

HEADER = '''"""Generated."""
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


'''

#: Of ``x``, int32 of [M, N], ``i`` from 0 to M - 1, and ``at``, the place of each element: what is stored there.
OPERATIONS = {
    "sum of rows": "x + tl.sum(x, 1, keep_dims=True)",
    "sum of columns": "x + tl.sum(x, 0, keep_dims=True)",
    "sum of all": "x + tl.sum(tl.reshape(x, [M * N]), 0)",
    "argmax": "x + tl.argmax(x, 0, keep_dims=True)",
    "cumsum": "tl.cumsum(x, 0)",
    "scan": "tl.associative_scan(x, 0, add, reverse=True)",
    "sort": "tl.reshape(tl.sort(tl.reshape(x, [M * N])), [M, N])",
    "flip": "tl.flip(x, 0)",
    "transpose": "tl.reshape(tl.trans(x), [M, N])",
    "gather": "tl.gather(x, i, 0)",
    "histogram": "x + tl.sum(tl.histogram(tl.reshape(i, [M * N]), 256), 0)",
    "join": "tl.max(tl.join(x, i), 2)",
    "atomic": "tl.atomic_add(p + at, x)",
}
COLUMNS = 2
SIZES = tuple(256 << step for step in range(6))
WARPS = (1, 4, 16)

#: Seconds of processor time below which nothing is said of a kernel, and how much longer twice as much may take.
FLOOR, MOST = 1.0, 3.0


@dataclass(frozen=True)
class Result:
    """Seconds of an operation with so many warps, for each of ``SIZES`` that were tried."""

    name: str
    warps: int
    seconds: tuple[float, ...]

    @property
    def fault(self) -> str:
        """Which doubling cost too much; empty if none did."""
        for size, (one, two) in zip(SIZES, itertools.pairwise(self.seconds), strict=False):
            if two > FLOOR and two > MOST * one:
                return f"{2 * size} elements took {two:.2f} s, {size} took {one:.2f}"
        return ""


def _source(expression: str) -> str:
    return (
        f"{HEADER}@triton.jit\ndef kernel(x_ptr, i_ptr, p, out_ptr, M: tl.constexpr, N: tl.constexpr):\n"
        "    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]\n"
        "    x, i = tl.load(x_ptr + at), tl.load(i_ptr + at)\n"
        f"    tl.store(out_ptr + at, {expression})\n"
    )


def run(name: str, warps: int, folder: Path, sizes: Sequence[int] = SIZES) -> Result:
    """One operation for all sizes."""
    path = folder / f"cost_{name.replace(' ', '_')}.py"
    module = written(path, _source(OPERATIONS[name]), f"{path.stem}_{warps}")
    seconds, observer = [], Observer()
    for size in sizes:
        rows = size // COLUMNS
        x, p, out = (torch.ones(rows, COLUMNS, dtype=torch.int32) for _ in range(3))
        i = torch.zeros(rows, COLUMNS, dtype=torch.int32)
        with observer.watching():
            module.kernel[(1,)](x, i, p, out, M=rows, N=COLUMNS, num_warps=warps)
        seconds.append(sum(kernel.total for kernel in observer.taken()))
    return Result(name, warps, tuple(seconds))
