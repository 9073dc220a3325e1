"""Matrix multiplication in tiles, with an optional activation in the same kernel.

Programs are numbered so that those which run together share columns of B: GROUP rows of tiles at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
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
    # Rows and columns past the end are read from the start again; what they give is not stored.
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + steps[None, :] * stride_ak
    b_ptrs = b_ptr + steps[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=steps[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=steps[:, None] < K - k, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(
    a: Any, b: Any, c: Any, m: int, n: int, k: int, activation: str = "", block: tuple[int, int, int] = (64, 64, 32)
) -> None:
    """``c = activation(a @ b)`` for contiguous a (m, k), b (k, n), c (m, n)."""
    block_m, block_n, block_k = block
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    matmul_kernel[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        k,
        1,
        n,
        1,
        n,
        1,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP=8,
        ACTIVATION=activation,
    )


def case(size: int, dtype: Any, activation: str = "") -> Case:
    """A square product of the given dtype."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size), dtype=np.float32).astype(dtype) for _ in range(2))
    c = np.zeros((size, size), dtype)
    device_a, device_b, device_c = (device_array(array) for array in (a, b, c))
    product = a.astype(np.float64) @ b.astype(np.float64)
    name = {"float32": "fp32", "float16": "fp16"}[np.dtype(dtype).name]
    return Case(
        f"matmul, {activation}" if activation else "matmul",
        f"{size}³ {name}",
        lambda: matmul(device_a, device_b, device_c, size, size, size, activation),
        c,
        np.where(product < 0, 0.01 * product, product) if activation else product,
        operations=2 * size**3,
        tolerance=1e-3 if dtype == np.float32 else 0.1,
    )


def cases() -> list[Case]:
    """The sizes that the demo shows."""
    return [case(512, np.float32), case(512, np.float16), case(512, np.float16, "leaky_relu")]


if __name__ == "__main__":
    run_alone(cases)
