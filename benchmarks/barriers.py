"""Which of upstream's workgroup barriers this backend does without, counted over the examples and small kernels.

Compiles every kernel for every profile; no device is needed. Each barrier that upstream's membar analysis inserted is
counted as one of

==========  ==========================================================================================
kept        a workgroup barrier stands there
no pair     none: no accesses that it parts overlap as this backend lowers them
own bytes   none: invocations meet only their own bytes again (RULES of analysis/barrier_filter.py)
subgroup    a subgroup barrier: subgroups meet only their own bytes again (RULES)
==========  ==========================================================================================

``silent``: operations for which upstream reserved scratch memory that they do not use; ``made up``: those for which a
barrier has to stand all the same. ``one subgroup``: the workgroup barriers of kernels that have one subgroup, which are
subgroup barriers instead.

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
from triton.backends.spirv.ahead_of_time.build import compile_kernel
from triton.backends.spirv.analysis.barrier_filter import BARRIER, INSERTED, Footprint, Need
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.lowering import Lowering
from triton.backends.spirv.planning import barriers
from triton.backends.spirv.ttgir.ir import Function, Operation

from benchmarks.example_kernels import KERNELS

COLUMNS = ("membar", "kept", "no pair", "own bytes", "subgroup", "silent", "made up", "one subgroup")


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
    """Counts what happens to the barriers of each kernel that is compiled; ``counts`` are those since ``take``."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._needs = barriers.barrier_needs
        barriers.barrier_needs = self._judge
        barrier = Lowering.barrier

        def waiting(ctx: Lowering, global_memory: bool = False, **how: int) -> None:
            self.counts["one subgroup"] += ctx.num_warps == 1 and not global_memory
            barrier(ctx, global_memory, **how)

        Lowering.barrier = waiting  # type: ignore[method-assign, assignment]

    def _judge(self, kernel: Function, footprint: Callable[[Operation], Any]) -> dict[Operation, Need]:
        assert kernel.body is not None
        self.counts.clear()
        weaker, without_rules = self._needs(kernel, footprint), self._needs(kernel, footprint, {})
        operations = [inner for top in kernel.body.entry.operations for inner in top.walk()]
        for operation in operations:
            if operation.name == BARRIER and INSERTED in operation.attributes:
                self.counts["membar"] += 1
                need = weaker.get(operation, Need.WORKGROUP)
                self.counts[
                    "kept"
                    if need == Need.WORKGROUP
                    else "subgroup"
                    if need == Need.SUBGROUP
                    else "no pair"
                    if operation in without_rules
                    else "own bytes"
                ] += 1
        scratch = [operation for operation in operations if "allocation.offset" in operation.attributes]
        silent = [operation for operation in scratch if footprint(operation) == Footprint(waits=True)]
        self.counts["silent"] = len(silent)
        self.counts["made up"] = len(silent) - sum(operation in weaker for operation in silent)
        return weaker

    def take(self) -> Counter[str]:
        """The counts of the kernel that was compiled last."""
        taken, self.counts = self.counts, Counter()
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
