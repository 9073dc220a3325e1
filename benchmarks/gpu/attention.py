"""Attention without its matrix of scores: forward, and the backward pass of ``examples/flash_attention.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples import flash_attention

from .cases import TERAFLOPS, Case, Sizes, normal, poisoned, relative_error

TILE = ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages")


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    length,
    scale,
    DEPTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr = False,
):
    """One block of queries of one head against all keys, or those up to each query, with a running maximum and sum of
    each row."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.program_id(1) * length * DEPTH
    depth = tl.arange(0, DEPTH)
    keys = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + head + rows[:, None] * DEPTH + depth[None, :])
    k_ptrs = k_ptr + head + keys[None, :] * DEPTH + depth[:, None]
    v_ptrs = v_ptr + head + keys[:, None] * DEPTH + depth[None, :]
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, DEPTH), tl.float32)
    end = (tl.program_id(0) + 1) * BLOCK_M if CAUSAL else length
    for start in range(0, end, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs)) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= start + keys[None, :], scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new_highest[:, None])
        shrink = tl.exp2(highest - new_highest)
        weight = weight * shrink + tl.sum(powers, axis=1)
        total = tl.dot(powers.to(tl.float16), tl.load(v_ptrs), total * shrink[:, None])
        highest = new_highest
        k_ptrs += BLOCK_N * DEPTH
        v_ptrs += BLOCK_N * DEPTH
    tl.store(out_ptr + head + rows[:, None] * DEPTH + depth[None, :], (total / weight[:, None]).to(tl.float16))


def _case(
    what: str,
    products: int,
    shape: tuple[int, int, int],
    causal: bool,
    out: Any,
    run: Callable[[dict[str, Any]], Any],
    error: Callable[[np.ndarray], float],
    tolerance: float,
    tiles: Iterable[tuple[Any, ...]],
    names: tuple[str, ...] = TILE,
) -> Case:
    """``products``: of length × length × depth for each head; ``names``: of what ``tiles`` have."""
    heads, length, depth = shape
    return Case(
        f"attention {heads}×{length}×{depth}{what}{' causal' if causal else ''}",
        TERAFLOPS,
        2 * products * heads * length * length * depth / (2 if causal else 1),
        out,
        run,
        error,
        tolerance,
        [dict(zip(names, tile, strict=True)) for tile in tiles],
    )


def forward(memory: Any, sizes: Sizes, depth: int = 64, causal: bool = False) -> Case:
    """The forward pass in fp16; ``depth`` is the extent of a head."""
    heads, length = sizes.heads, sizes.length
    q, k, v = (normal(heads, length, depth, dtype=np.float16) for _ in range(3))
    device = [memory.put(array) for array in (q, k, v)]
    out = memory.put(poisoned((heads, length, depth), np.float16))
    scale = depth**-0.5

    def run(config: dict[str, Any]) -> Any:
        return attention_kernel[(length // config["BLOCK_M"], heads)](
            *device, out, length, scale * 1.4426950408889634, DEPTH=depth, CAUSAL=causal, **config
        )

    def error(values: np.ndarray) -> float:
        rows = np.arange(0, length, 129)
        worst = 0.0
        for head in (0, heads - 1):
            scores = q[head, rows].astype(np.float64) @ k[head].astype(np.float64).T * scale
            if causal:
                scores = np.where(rows[:, None] >= np.arange(length)[None, :], scores, -np.inf)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            expected = powers / powers.sum(axis=1, keepdims=True) @ v[head].astype(np.float64)
            worst = max(worst, relative_error(values[head, rows], expected))
        return worst

    tiles = ((128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 2), (256, 64, 8, 3), (128, 32, 4, 3), (128, 128, 8, 3))
    return _case("", 2, q.shape, causal, out, run, error, 2e-3, tiles)


def backward(memory: Any, sizes: Sizes, depth: int = 64, causal: bool = False) -> Case:
    """The backward pass in fp16, of the three gradients. A configuration is the tile of the gradients of keys and
    values, and under ``queries`` the one of the other kernel."""
    heads, length = sizes.heads, sizes.length
    q, k, v, grad = (normal(heads, length, depth, dtype=np.float16) for _ in range(4))
    scale = depth**-0.5
    d_q, d_k, d_v, d_grad = (memory.put(array) for array in (q, k, v, grad))
    out = memory.put(poisoned(q.shape, np.float16))
    log_sum, product = (memory.put(poisoned((heads, length))) for _ in range(2))
    q_grad, k_grad, v_grad = (memory.put(poisoned(q.shape, np.float16)) for _ in range(3))
    flash_attention.forward_kernel[(length // 64, heads)](
        d_q, d_k, d_v, out, log_sum, length, scale, HEAD=depth, BLOCK_M=64, BLOCK_N=32, CAUSAL=causal
    )

    def run(config: dict[str, Any]) -> Any:
        common = (d_q, d_k, d_v, d_grad, log_sum, product)
        keys = {name: value for name, value in config.items() if name != "queries"}
        queries = dict(zip(TILE, config["queries"], strict=True))
        flash_attention.row_products_kernel[(heads * length // 64,)](
            out, d_grad, product, heads * length, HEAD=depth, BLOCK=64
        )
        flash_attention.key_gradients_kernel[(length // keys["BLOCK_N"], heads)](
            *common, k_grad, v_grad, length, scale, HEAD=depth, CAUSAL=causal, **keys
        )
        flash_attention.query_gradients_kernel[(length // queries["BLOCK_M"], heads)](
            *common, q_grad, length, scale, HEAD=depth, CAUSAL=causal, **queries
        )

    def error(values: np.ndarray) -> float:
        worst = 0.0
        for head in {0, heads - 1}:
            parts = [array[head : head + 1] for array in (q, k, v, grad)]
            expected = flash_attention.reference_gradients(parts[0], parts[1], parts[2], parts[3], scale, causal)
            found = (values, memory.get(k_grad), memory.get(v_grad))
            worst = max(worst, *(relative_error(one[head], two[0]) for one, two in zip(found, expected, strict=True)))
        return worst

    tiles = (
        (64, 64, 4, 2, (64, 64, 4, 2)),
        (128, 128, 8, 2, (128, 32, 4, 2)),
        (64, 64, 4, 2, (128, 32, 4, 2)),
        (128, 64, 4, 2, (64, 64, 4, 2)),
        (128, 64, 4, 2, (128, 64, 4, 2)),
        (32, 128, 4, 2, (128, 32, 4, 2)),
        (64, 128, 8, 2, (256, 32, 8, 2)),
    )
    return _case(" backward", 5, q.shape, causal, q_grad, run, error, 5e-3, tiles, (*TILE, "queries"))
