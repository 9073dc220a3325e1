"""Softmax of each row in one pass: a row is held in registers between reading and writing it."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone


@triton.jit
def softmax_kernel(out_ptr, x_ptr, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    x = tl.load(x_ptr + row * row_stride + offsets, mask=inside, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * row_stride + offsets, numerator / tl.sum(numerator, axis=0), mask=inside)


def softmax(x: Any, out: Any, rows: int, columns: int) -> None:
    """Softmax over the last axis of a contiguous (rows, columns) array."""
    softmax_kernel[(rows,)](out, x, columns, columns, BLOCK=triton.next_power_of_2(columns))


def reference(x: np.ndarray) -> np.ndarray:
    """The same in float64."""
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def cases() -> list[Case]:
    """The sizes that the demo shows."""
    rows, columns = 1823, 781
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    out = np.zeros_like(x)
    device_x, device_out = device_array(x), device_array(out)
    return [
        Case(
            "fused softmax",
            f"{rows}×{columns} fp32",
            lambda: softmax(device_x, device_out, rows, columns),
            out,
            reference(x),
            bytes_moved=2 * x.nbytes,
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
