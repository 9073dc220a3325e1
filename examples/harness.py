"""What the examples share: a case with its reference, how it is timed, and the table it is shown in."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Case:
    """A kernel on data of one size. ``run`` launches it and returns when ``out`` holds the result.

    ``bytes_moved`` or ``operations`` of one run give GB/s, or GFLOP/s and TFLOP/s; ``tolerance`` is the largest
    absolute error."""

    kernel: str
    size: str
    run: Callable[[], None]
    out: np.ndarray
    expected: np.ndarray
    bytes_moved: int = 0
    operations: int = 0
    tolerance: float = 1e-4


@dataclass(frozen=True)
class Measured:
    """``error``: the largest absolute difference from NumPy in float64. ``milliseconds``: median of the runs."""

    case: Case
    error: float
    milliseconds: float

    @property
    def passed(self) -> bool:
        """Whether every element is within the tolerance; a NaN never is."""
        return bool(self.error <= self.case.tolerance)

    @property
    def rate(self) -> str:
        """GB/s, or GFLOP/s and TFLOP/s."""
        if not self.case.operations:
            return f"{self.case.bytes_moved / self.milliseconds / 1e6:.1f} GB/s"
        rate = self.case.operations / self.milliseconds / 1e6
        return f"{rate:.1f} GFLOP/s" if rate < 1000 else f"{rate / 1000:.1f} TFLOP/s"


def device_array(array: np.ndarray) -> Any:
    """A view of ``array`` that kernels take as a pointer argument."""
    from triton.backends.spirv.runtime.arrays import array as share

    return share(array)


def measure(case: Case, seconds: float = 0.5) -> Measured:
    """Runs a case once for its result, then for about ``seconds`` for its time."""
    case.out.fill(np.nan)
    case.run()
    error = float(np.max(np.abs(case.out.astype(np.float64) - case.expected)))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        case.run()
        times.append(time.perf_counter() - start)
    return Measured(case, error, 1e3 * float(np.median(times)))


def device_name() -> str:
    """The Vulkan device that kernels run on."""
    from triton.backends.spirv.runtime import context

    return str(context.devices()[context.current_device()].name)


def report(cases: Iterable[Case]) -> bool:
    """Measures cases and prints a table. Returns whether all are right."""
    rows, passed = [("device", "kernel", "size", "max error", "ms", "rate")], True
    for case in cases:
        result = measure(case)
        passed &= result.passed
        verdict = "" if result.passed else f"  WRONG (allowed {case.tolerance:g})"
        rows.append(
            (
                device_name(),
                case.kernel,
                case.size,
                f"{result.error:.2e}{verdict}",
                f"{result.milliseconds:.3f}",
                result.rate,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return passed


def run_alone(cases: Callable[[], Iterable[Case]]) -> None:
    """What an example does when it is run as a program."""
    sys.exit(0 if report(cases()) else 1)
