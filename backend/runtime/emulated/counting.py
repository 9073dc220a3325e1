"""What kernels of an emulated device do, counted while it runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..native_module import native

_counts = False


@dataclass(frozen=True, slots=True)
class Counts:
    """All launches of a kernel. ``instructions``: of SPIR-V, each once for a subgroup of which a lane executes it;
    ``barriers``: of the workgroups; ``read`` and ``written``: bytes of device memory, each once for an access of a
    subgroup; ``steps``: those that the banks of shared memory take for the accesses to it, of each subgroup alone, and
    ``fewest`` what the same words would take if they were spread over all banks."""

    instructions: int
    barriers: int
    read: int
    written: int
    steps: int
    fewest: int


@contextmanager
def counted(banks: int) -> Iterator[None]:
    """Kernels that are loaded within are counted within. ``banks``: of 4 bytes each, of shared memory."""
    global _counts
    _counts = True
    native().set_counted_banks(banks)
    try:
        yield
    finally:
        native().set_counted_banks(0)
        _counts = False


def counts_now() -> bool:
    """Whether kernels that are loaded now are to be counted."""
    return _counts
