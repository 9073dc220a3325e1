"""Layer normalisation, forward: mean and variance of each row in two passes over blocks of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone


@triton.jit
def layer_norm_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, row_stride, columns, epsilon, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    x_ptr += row * row_stride
    out_ptr += row * row_stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns

    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
        centred = tl.where(offsets < columns, x - mean, 0.0)
        total += centred * centred
    rstd = tl.rsqrt(tl.sum(total, axis=0) / columns + epsilon)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        inside = offsets < columns
        weight = tl.load(weight_ptr + offsets, mask=inside)
        bias = tl.load(bias_ptr + offsets, mask=inside)
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + offsets, (x - mean) * rstd * weight + bias, mask=inside)


def layer_norm(
    x: Any, out: Any, weight: Any, bias: Any, mean: Any, rstd: Any, rows: int, columns: int, epsilon: float = 1e-5
) -> None:
    """Normalises each row of a contiguous (rows, columns) array; mean and rstd are (rows,)."""
    block = min(1024, triton.next_power_of_2(columns))
    layer_norm_kernel[(rows,)](x, out, weight, bias, mean, rstd, columns, columns, epsilon, BLOCK=block)


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    """The same in float64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) * weight + bias


def cases() -> list[Case]:
    """The sizes that the demo shows."""
    rows, columns = 1151, 1000
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, columns), dtype=np.float32)
    weight, bias = (random.standard_normal(columns, dtype=np.float32) for _ in range(2))
    out, mean, rstd = np.zeros_like(x), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    arguments = [device_array(array) for array in (x, out, weight, bias, mean, rstd)]
    return [
        Case(
            "layer norm",
            f"{rows}×{columns} fp32",
            lambda: layer_norm(*arguments, rows, columns),
            out,
            reference(x, weight, bias),
            bytes_moved=2 * x.nbytes,
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
