"""What ``triton-spirv profile`` knows of a script's kernels on an emulated device: what they do, and never a time.

The processor's times say nothing of the GPU that it stands in for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..runtime.emulated.counting import Counts

_TITLES = ("launches", "programs", "read", "written", "operations", "instructions", "barriers", "shared", "bank steps")
_NOTE = """\
Figures are of all launches. Read and written are bytes of device memory, each counted once for an access of a subgroup;
operations are floating-point, and ≈ is an estimate from the kernel's arithmetic. Instructions are those of SPIR-V that
subgroups executed; barriers are the workgroups'; shared is the memory of one workgroup, in bytes; bank steps are those
of {banks} banks of 4 bytes for accesses to it, and behind the stroke the fewest possible. An emulated device has no
times."""


@dataclass(frozen=True)
class Launched:
    """All launches of one specialisation. ``programs``: of all grids; ``operations``: floating-point operations of all
    launches, ``estimated`` where one of them is; ``shared``: bytes of a workgroup's memory; ``counts``: what the device
    counted, if it is still there."""

    name: str
    launches: int
    programs: int
    operations: float
    estimated: bool
    shared: int
    counts: Counts | None


def _moved(kernel: Launched) -> int:
    return 0 if kernel.counts is None else kernel.counts.read + kernel.counts.written


def figures(kernels: Sequence[Launched], banks: int) -> str:
    """A line for each kernel, the one that moves most bytes first. ``banks``: of shared memory."""
    rows: list[tuple[str, ...]] = [("kernel", *_TITLES)]
    for one in sorted(kernels, key=_moved, reverse=True):
        operations = f"{'≈ ' if one.estimated else ''}{one.operations:,.0f}" if one.operations else "–"
        cells = [
            one.name,
            f"{one.launches:,}",
            f"{one.programs:,}",
            "–",
            "–",
            operations,
            "–",
            "–",
            f"{one.shared:,}",
            "–",
        ]
        if one.counts is not None:
            counts = one.counts
            cells[3:5] = f"{counts.read:,}", f"{counts.written:,}"
            cells[6:8] = f"{counts.instructions:,}", f"{counts.barriers:,}"
            cells[9] = f"{counts.steps:,}/{counts.fewest:,}"
        rows.append(tuple(cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *padded]))
    return "\n".join([*lines, _NOTE.format(banks=banks)])
