"""Vector addition: one program per block of elements, the last block masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    y = tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, x + y, mask=inside)


def add(x: Any, y: Any, out: Any, size: int) -> None:
    """``out = x + y`` for arrays of ``size`` elements of one dtype."""
    add_kernel[(triton.cdiv(size, 1024),)](x, y, out, size, BLOCK=1024)


def cases() -> list[Case]:
    """The sizes that the demo shows."""
    size = 1 << 20
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(size, dtype=np.float32) for _ in range(2))
    out = np.zeros(size, np.float32)
    arguments = [device_array(array) for array in (x, y, out)]
    return [
        Case(
            "vector add",
            f"{size} fp32",
            lambda: add(*arguments, size),
            out,
            x.astype(np.float64) + y,
            bytes_moved=3 * 4 * size,
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
