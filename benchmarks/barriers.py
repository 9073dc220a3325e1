"""Which barriers for workgroup memory kernels get, counted over the examples and small kernels.

Compiles every kernel for every profile; no device is needed.

============  ========================================================================================
workgroup     barriers of the workgroup before operations
subgroup      barriers of each subgroup, because subgroups meet only their own bytes again
own bytes     none: invocations meet only their own bytes again (RULES of analysis/barriers.py)
inside        barriers of the workgroup inside of operations that exchange elements through memory
one subgroup  of all these, the ones in kernels that have one subgroup: subgroup barriers instead
============  ========================================================================================

    python -m benchmarks.barriers [--kernels] [PROFILE ...]
"""

from __future__ import annotations

import argparse
import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.ahead_of_time.build import compile_kernel
from triton.backends.spirv.analysis.barriers import MemoryEffect, Need
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.lowering import Lowering
from triton.backends.spirv.planning import kernel_plan
from triton.backends.spirv.ttgir.ir import Function, Operation

from benchmarks.example_kernels import KERNELS

COLUMNS = ("workgroup", "subgroup", "own bytes", "inside", "one subgroup")


@triton.jit
def sort(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sorts each row."""
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets), 1))


@triton.jit
def scan(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Sums along both dimensions, up to each element."""
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + offsets, tl.cumsum(tl.cumsum(tl.load(x_ptr + offsets), 0), 1))


@triton.jit
def normalize(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows to mean 0 and variance 1."""
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + offsets)
    x -= (tl.sum(x, 1) / COLUMNS)[:, None]
    tl.store(out_ptr + offsets, x * tl.rsqrt(tl.sum(x * x, 1) / COLUMNS)[:, None])


@triton.jit
def largest(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The place of each row's maximum, and each column's maximum."""
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + tl.arange(0, ROWS), tl.argmax(x, 1).to(tl.float32))
    tl.store(out_ptr + ROWS + tl.arange(0, COLUMNS), tl.max(x, 0))


@triton.jit
def product(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The matrix times its transpose."""
    offsets = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + offsets)
    result = tl.arange(0, ROWS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    tl.store(out_ptr + result, tl.dot(x, tl.trans(x), input_precision="ieee"))


SMALL: tuple[tuple[Any, int, int], ...] = (
    (sort, 1, 1024),
    (sort, 16, 64),
    (scan, 64, 32),
    (normalize, 16, 128),
    (normalize, 1, 1024),
    (largest, 32, 64),
    (product, 16, 16),
)


class Recorder:
    """Counts the barriers of each kernel that is compiled; ``counts`` are those since ``take``."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._needs = kernel_plan.barrier_needs
        kernel_plan.barrier_needs = self._judge
        barrier = Lowering.barrier

        def waiting(ctx: Lowering, global_memory: bool = False, **how: int) -> None:
            self.counts["one subgroup" if ctx.num_warps == 1 else "all"] += not global_memory
            barrier(ctx, global_memory, **how)

        Lowering.barrier = waiting  # type: ignore[method-assign, assignment]
        knobs.compilation.always_compile = True

    def _judge(self, kernel: Function, effect: Callable[[Operation], MemoryEffect]) -> dict[Operation, Need]:
        self.counts.clear()
        found = self._needs(kernel, effect)
        for need in found.values():
            self.counts["workgroup" if need == Need.WORKGROUP else "subgroup"] += 1
        self.counts["own bytes"] = len(self._needs(kernel, effect, {})) - len(found)
        return found

    def take(self) -> Counter[str]:
        """The counts of the kernel that was compiled last."""
        taken, self.counts = self.counts, Counter()
        taken["inside"] = taken.pop("all", 0) + taken["one subgroup"] - taken["workgroup"]
        return taken


def row(name: str, counts: Counter[str]) -> str:
    """A line of the table."""
    return f"{name:34} " + " ".join(f"{counts[column]:>{len(column)}}" for column in COLUMNS)


def main() -> None:
    """Compile, count, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("profiles", nargs="*", default=list(PROFILES))
    parser.add_argument("--kernels", action="store_true", help="a line a kernel, not only sums")
    options = parser.parse_args()
    recorder = Recorder()
    print(f"{'':34} " + " ".join(COLUMNS))
    for profile in options.profiles:
        sums: dict[str, Counter[str]] = {"examples": Counter(), "small kernels": Counter()}

        def compiled(
            group: str,
            name: str,
            kernel: Any,
            signature: str,
            warps: int,
            profile: str = profile,
            sums: dict[str, Counter[str]] = sums,
        ) -> None:
            compile_kernel(kernel, signature, PROFILES[profile], {"num_warps": warps})
            counts = recorder.take()
            sums[group].update(counts)
            if options.kernels:
                print(row(f"  {name}, {warps} warps", counts), flush=True)

        for example, name, signature in KERNELS:
            compiled("examples", name, getattr(importlib.import_module(f"examples.{example}"), name), signature, 4)
        for kernel, rows, columns in SMALL:
            for warps in (1, 4):
                compiled(
                    "small kernels",
                    f"{kernel.__name__} {rows} × {columns}",
                    kernel,
                    f"*fp32:16, *fp32:16, {rows}, {columns}",
                    warps,
                )
        for group, counts in sums.items():
            print(row(f"{profile}: {group}", counts), flush=True)


if __name__ == "__main__":
    main()
