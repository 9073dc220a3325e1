"""Kernels that memory bounds: vector add, softmax, layer norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from .cases import GIGABYTES, Case, Sizes, normal, poisoned, relative_error


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(
        out_ptr + offsets, tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside), mask=inside
    )


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + offsets, mask=inside, other=-float("inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + offsets, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, columns, epsilon, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    row = tl.program_id(0) * columns
    x = tl.load(x_ptr + row + offsets, mask=inside, other=0.0)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    weight = tl.load(weight_ptr + offsets, mask=inside)
    bias = tl.load(bias_ptr + offsets, mask=inside)
    tl.store(out_ptr + row + offsets, centred * scale * weight + bias, mask=inside)


def vector_add(memory: Any, sizes: Sizes) -> Case:
    """Of fp32."""
    n = sizes.elements
    x, y = normal(n), normal(n)
    device_x, device_y, out = memory.put(x), memory.put(y), memory.put(poisoned((n,)))

    def run(config: dict[str, Any]) -> Any:
        return add_kernel[(triton.cdiv(n, config["BLOCK"]),)](device_x, device_y, out, n, **config)

    return Case(
        f"vector add {n:,} fp32",
        GIGABYTES,
        3 * x.nbytes,
        out,
        run,
        lambda values: relative_error(values, x.astype(np.float64) + y),
        1e-6,
        [{"BLOCK": block, "num_warps": warps} for block, warps in ((1024, 4), (1024, 8), (2048, 8), (512, 4))],
    )


def _rows(
    memory: Any, sizes: Sizes, name: str, launch: Callable[..., Any], reference: Callable[[np.ndarray], np.ndarray]
) -> Case:
    """A kernel that maps each row of a matrix."""
    rows, columns = sizes.rows, sizes.columns
    x = normal(rows, columns)
    device_x, out = memory.put(x), memory.put(poisoned((rows, columns)))
    sample = np.arange(0, rows, 97)
    return Case(
        f"{name} {rows}×{columns} fp32",
        GIGABYTES,
        2 * x.nbytes,
        out,
        lambda config: launch((rows,), device_x, out, columns, config),
        lambda values: relative_error(values[sample], reference(x[sample].astype(np.float64))),
        1e-5,
        [{"BLOCK": columns, "num_warps": warps} for warps in (4, 8, 16)],
    )


def softmax(memory: Any, sizes: Sizes) -> Case:
    """Of each row."""

    def reference(x: np.ndarray) -> np.ndarray:
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return _rows(
        memory,
        sizes,
        "softmax",
        lambda grid, x, out, columns, config: softmax_kernel[grid](x, out, columns, **config),
        reference,
    )


def layer_norm(memory: Any, sizes: Sizes) -> Case:
    """Of each row, with weight and bias."""
    weight, bias = normal(sizes.columns), normal(sizes.columns)
    device_weight, device_bias = memory.put(weight), memory.put(bias)

    def reference(x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias

    def launch(grid: Any, x: Any, out: Any, columns: int, config: dict[str, Any]) -> Any:
        return layer_norm_kernel[grid](x, device_weight, device_bias, out, columns, 1e-5, **config)

    return _rows(memory, sizes, "layer norm", launch, reference)
