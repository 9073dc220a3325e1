"""Layer normalisation, backward: gradients of input, weight and bias.

The gradients of weight and bias are sums over all rows. Each program adds up its rows in registers and
stores one partial sum; a second kernel adds the partial sums. No locks, no atomics, the same result each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone

PARTS = 64


@triton.jit
def input_gradient_kernel(
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    grad_ptr,
    x_grad_ptr,
    weight_parts_ptr,
    bias_parts_ptr,
    rows,
    columns,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    weight = tl.load(weight_ptr + offsets, mask=inside, other=0.0)
    weight_sum = tl.zeros((BLOCK,), tl.float32)
    bias_sum = tl.zeros((BLOCK,), tl.float32)
    for row in range(part, rows, tl.num_programs(0)):
        rstd = tl.load(rstd_ptr + row)
        x = tl.load(x_ptr + row * columns + offsets, mask=inside, other=0.0)
        grad = tl.load(grad_ptr + row * columns + offsets, mask=inside, other=0.0)
        normalised = tl.where(inside, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        weighted = grad * weight
        # A change of x also moves the row's mean and variance: what that costs is taken off.
        along = tl.sum(weighted * normalised, axis=0) / columns
        average = tl.sum(weighted, axis=0) / columns
        tl.store(x_grad_ptr + row * columns + offsets, (weighted - normalised * along - average) * rstd, mask=inside)
        weight_sum += grad * normalised
        bias_sum += grad
    tl.store(weight_parts_ptr + part * columns + offsets, weight_sum, mask=inside)
    tl.store(bias_parts_ptr + part * columns + offsets, bias_sum, mask=inside)


@triton.jit
def sum_parts_kernel(parts_ptr, out_ptr, parts, columns, BLOCK_PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK_PARTS, BLOCK), tl.float32)
    for first in range(0, parts, BLOCK_PARTS):
        part = first + tl.arange(0, BLOCK_PARTS)
        total += tl.load(
            parts_ptr + part[:, None] * columns + offsets[None, :],
            mask=(part[:, None] < parts) & (offsets[None, :] < columns),
            other=0.0,
        )
    tl.store(out_ptr + offsets, tl.sum(total, axis=0), mask=offsets < columns)


def layer_norm_backward(
    x: Any,
    weight: Any,
    mean: Any,
    rstd: Any,
    grad: Any,
    x_grad: Any,
    weight_grad: Any,
    bias_grad: Any,
    weight_parts: Any,
    bias_parts: Any,
    rows: int,
    columns: int,
) -> None:
    """Gradients of a layer norm over contiguous (rows, columns) arrays; the parts are (PARTS, columns) scratch."""
    input_gradient_kernel[(PARTS,)](
        x,
        weight,
        mean,
        rstd,
        grad,
        x_grad,
        weight_parts,
        bias_parts,
        rows,
        columns,
        BLOCK=triton.next_power_of_2(columns),
    )
    grid = (triton.cdiv(columns, 128),)
    sum_parts_kernel[grid](weight_parts, weight_grad, PARTS, columns, BLOCK_PARTS=32, BLOCK=128)
    sum_parts_kernel[grid](bias_parts, bias_grad, PARTS, columns, BLOCK_PARTS=32, BLOCK=128)


def reference(
    x: np.ndarray, weight: np.ndarray, grad: np.ndarray, epsilon: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of input, weight and bias in float64."""
    wide, weight, grad = (array.astype(np.float64) for array in (x, weight, grad))
    centred = wide - wide.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon)
    normalised = centred * rstd
    weighted = grad * weight
    along = (weighted * normalised).mean(axis=1, keepdims=True)
    x_grad = (weighted - normalised * along - weighted.mean(axis=1, keepdims=True)) * rstd
    return x_grad, (grad * normalised).sum(axis=0), grad.sum(axis=0)


def cases() -> list[Case]:
    """One size; the three gradients lie one after another in the checked output."""
    rows, columns = 500, 1000
    random = np.random.default_rng(0)
    x, grad = (random.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    weight = random.standard_normal(columns, dtype=np.float32)
    mean = x.mean(axis=1)
    rstd = (1 / np.sqrt(x.var(axis=1) + 1e-5)).astype(np.float32)
    out = np.zeros((rows + 2, columns), np.float32)
    parts = np.zeros((2, PARTS, columns), np.float32)
    arguments = [
        device_array(array)
        for array in (x, weight, mean, rstd, grad, out[:rows], out[rows], out[rows + 1], parts[0], parts[1])
    ]
    x_grad, weight_grad, bias_grad = reference(x, weight, grad)
    return [
        Case(
            "layer norm backward",
            f"{rows}×{columns} fp32",
            lambda: layer_norm_backward(*arguments, rows, columns),
            out,
            np.concatenate([x_grad, weight_grad[None], bias_grad[None]]),
            bytes_moved=3 * x.nbytes,
            tolerance=2e-4,
        )
    ]


if __name__ == "__main__":
    run_alone(cases)
