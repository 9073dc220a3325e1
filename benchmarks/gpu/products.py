"""Matmul: fp32 in full precision and as tf32, fp16, bf16, int8."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from .cases import BFLOAT16, RNG, TERAFLOPS, Case, Sizes, normal, poisoned, relative_error


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    TOTAL: tl.constexpr = tl.float32,
    PRECISION: tl.constexpr = "ieee",
):
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = program // (GROUP * tiles_n) * GROUP
    group = min(tiles_m - first_m, GROUP)
    tile_m = first_m + program % (GROUP * tiles_n) % group
    tile_n = program % (GROUP * tiles_n) // group
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + steps[None, :]
    b_ptrs = b_ptr + steps[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), TOTAL)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total, input_precision=PRECISION, out_dtype=TOTAL)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(c_ptr.dtype.element_ty))


def _product(
    memory: Any, size: int, dtype: Any, tolerance: float, blocks: Iterable[tuple[int, ...]], precision: str = "ieee"
) -> Case:
    """C = A B of square matrices; ``precision`` is that of matmul in fp32."""
    whole = dtype == np.int8
    a, b = (
        RNG.integers(-128, 128, (size, size), np.int8) if whole else normal(size, size, dtype=dtype) for _ in range(2)
    )
    out_type = np.int32 if whole else dtype
    device_a, device_b = memory.put(a), memory.put(b)
    out = memory.put(np.full((size, size), -1, np.int32) if whole else poisoned((size, size), out_type))
    sample = np.arange(0, size, 101)

    def run(config: dict[str, Any]) -> Any:
        grid = (size // config["BLOCK_M"] * (size // config["BLOCK_N"]),)
        total = tl.int32 if whole else tl.float32
        return matmul_kernel[grid](
            device_a, device_b, out, size, size, size, TOTAL=total, PRECISION=precision, **config
        )

    keys = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
    names = {"float32": "fp32" if precision == "ieee" else precision, "float16": "fp16", "bfloat16": "bf16"}
    return Case(
        f"matmul {size}³ {names.get(np.dtype(dtype).name, np.dtype(dtype).name)}",
        TERAFLOPS,
        2 * size**3,
        out,
        run,
        lambda values: relative_error(values[sample], a[sample].astype(np.float64) @ b.astype(np.float64)),
        tolerance,
        [{**dict(zip(keys, block, strict=True)), "GROUP": 8} for block in blocks],
    )


#: Tiles of matmul on matrix units: BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages.
TILES = (
    (128, 128, 32, 4, 3),
    (128, 256, 64, 8, 3),
    (128, 128, 64, 8, 3),
    (64, 64, 32, 4, 3),
    (128, 128, 32, 8, 2),
    (128, 256, 32, 8, 3),
    (128, 128, 64, 4, 3),
)


#: The same for multiply-adds.
TILES_FP32 = (
    (128, 128, 16, 8, 3),
    (64, 64, 16, 4, 3),
    (128, 64, 16, 4, 3),
    (128, 128, 32, 8, 2),
    (64, 64, 32, 4, 2),
    (128, 128, 8, 8, 3),
)


def fp32(memory: Any, sizes: Sizes) -> Case:
    """In full precision."""
    return _product(memory, sizes.square, np.float32, 1e-5, TILES_FP32)


def tf32(memory: Any, sizes: Sizes) -> Case:
    """As tf32, or as three products of bf16, where the device has their matrices."""
    return _product(memory, sizes.square, np.float32, 2e-3, TILES_FP32 + TILES, "tf32")


def fp16(memory: Any, sizes: Sizes) -> Case:
    """Added in fp32."""
    return _product(memory, sizes.square, np.float16, 1e-3, TILES)


def fp16_large(memory: Any, sizes: Sizes) -> Case:
    """Of larger matrices."""
    return _product(memory, sizes.large, np.float16, 1e-3, TILES)


def bf16(memory: Any, sizes: Sizes) -> Case:
    """Added in fp32."""
    return _product(memory, sizes.square, BFLOAT16, 8e-3, TILES)


def bf16_large(memory: Any, sizes: Sizes) -> Case:
    """Of larger matrices."""
    return _product(memory, sizes.large, BFLOAT16, 8e-3, TILES)


def int8(memory: Any, sizes: Sizes) -> Case:
    """Added in int32."""
    return _product(
        memory, sizes.square, np.int8, 0.0, ((128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (64, 64, 64, 4, 3))
    )
