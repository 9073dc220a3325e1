"""Kernels that test_ahead_of_time.py compiles here and runs without Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, inside, other=-float("inf"))
    above = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row + at, above / tl.sum(above, axis=0), inside)


@triton.jit
def guarded(out, n):
    at = tl.program_id(0)
    tl.device_assert(at < n, "past the end")
    tl.store(out + at, at)
