"""What ``triton-spirv profile`` knows of a script's kernels on an emulated device: what they do, and never a time.

The processor's times say nothing of the GPU that it stands in for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..capabilities import Capabilities
from ..spirv.decode import decode
from ..transforms.kernel import kernel_of
from . import drawings
from .banks import shared_accesses


@dataclass(frozen=True)
class CountedCode:
    """A kernel's code, each place of it counted once: instructions that the device executes, barriers, bytes of
    shared memory, and the steps that banks take for the accesses to it (inspection/banks.py), with the fewest
    possible."""

    instructions: int
    barriers: int
    shared: int
    steps: int
    fewest: int


def code_of(kernel: Any) -> CountedCode:
    """What is known of a CompiledKernel."""
    from .plan import planned_again  # needs Triton's compiled library

    metadata, names = kernel.metadata, [entry.name for entry in decode(kernel.asm["spv"])]
    capabilities = Capabilities.parse(str(metadata.target.arch))
    planned = planned_again(kernel.asm["ttgir"], capabilities, metadata._asdict())
    banks = shared_accesses(kernel_of(planned.source), planned.plan)
    return CountedCode(
        sum(count for _, count in drawings.instruction_mix(names)),
        names.count("OpControlBarrier"),
        int(metadata.shared),
        sum(one["steps"] for one in banks),
        sum(one["fewest"] for one in banks),
    )


_TITLES = ("launches", "programs", "bytes", "operations", "instructions", "barriers", "shared", "bank steps")
_NOTE = """\
Bytes and operations are of all launches; ≈ is an estimate from the kernel's loads, stores and arithmetic: masked
elements count, caches do not; launch_metadata states it exactly. Instructions and barriers are of the kernel's code,
bank steps of a warp's accesses to shared memory, and behind the stroke the fewest possible. An emulated device has no
times."""


@dataclass(frozen=True)
class Launched:
    """All launches of one specialisation. ``kernel``: its CompiledKernel; ``programs``: of all grids; ``moved`` and
    ``operations``: bytes and floating-point operations of all launches, ``estimated`` where one of them is."""

    name: str
    kernel: Any
    launches: int
    programs: int
    moved: float
    operations: float
    estimated: bool


def figures(kernels: Sequence[Launched]) -> str:
    """A line for each kernel, the one that moves most bytes first."""
    rows: list[tuple[str, ...]] = [("kernel", *_TITLES)]
    for one in sorted(kernels, key=lambda one: -one.moved):
        about, code = "≈ " if one.estimated else "", code_of(one.kernel)
        totals = [f"{about}{number:,.0f}" if number else "–" for number in (one.moved, one.operations)]
        parts = f"{code.instructions:,}", str(code.barriers), f"{code.shared:,}", f"{code.steps}/{code.fewest}"
        rows.append((one.name, str(one.launches), f"{one.programs:,}", *totals, *parts))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *padded]))
    return "\n".join([*lines, _NOTE])
