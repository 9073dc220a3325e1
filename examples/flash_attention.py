"""Attention without its matrix of scores (Dao et al., "FlashAttention", 2022): forward and backward.

A program holds one block of queries and walks over the blocks of keys, keeping for each row the largest score so far
and the sum of exponentials relative to it. The backward pass needs one number per row, the logarithm of that
sum, and computes the scores again. Scores are in units of log2, so that exp2 suffices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _last_key(first_query, length, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr):
    """The end of the keys that a block of queries sees."""
    if CAUSAL:
        return min(first_query + BLOCK_M, length)
    return length


@triton.jit
def _visible(queries, keys, length, CAUSAL: tl.constexpr):
    """Which scores of a block count: (queries, keys)."""
    inside = (queries[:, None] < length) & (keys[None, :] < length)
    if CAUSAL:
        inside = inside & (keys[None, :] <= queries[:, None])
    return inside


@triton.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    log_sum_ptr,
    length,
    scale,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1) * length
    queries = first + tl.arange(0, BLOCK_M)
    channels = tl.arange(0, HEAD)
    rows = (base + queries)[:, None] * HEAD + channels[None, :]
    inside = queries[:, None] < length
    q = tl.load(q_ptr + rows, mask=inside, other=0.0)
    highest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for start in range(0, _last_key(first, length, BLOCK_M, CAUSAL), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + (base + keys)[None, :] * HEAD + channels[:, None], mask=keys[None, :] < length, other=0.0)
        v = tl.load(v_ptr + (base + keys)[:, None] * HEAD + channels[None, :], mask=keys[:, None] < length, other=0.0)
        scores = tl.dot(q, k, input_precision="ieee") * (scale * LOG2_E)
        scores = tl.where(_visible(queries, keys, length, CAUSAL), scores, -1e30)
        raised = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - raised[:, None])
        shrink = tl.exp2(highest - raised)
        total = total * shrink + tl.sum(weights, axis=1)
        out = tl.dot(weights.to(v.dtype), v, out * shrink[:, None], input_precision="ieee")
        highest = raised
    tl.store(out_ptr + rows, (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(log_sum_ptr + base + queries, highest + tl.log2(total), mask=queries < length)


@triton.jit
def row_products_kernel(out_ptr, grad_ptr, product_ptr, rows, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """The inner product of each row of the output and its gradient."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = row[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    inside = row[:, None] < rows
    out = tl.load(out_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    tl.store(product_ptr + row, tl.sum(out * grad, axis=1), mask=row < rows)


@triton.jit
def key_gradients_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    grad_ptr,
    log_sum_ptr,
    product_ptr,
    k_grad_ptr,
    v_grad_ptr,
    length,
    scale,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """One block of keys, over all blocks of queries that see it."""
    first = tl.program_id(0) * BLOCK_N
    base = tl.program_id(1) * length
    keys = first + tl.arange(0, BLOCK_N)
    channels = tl.arange(0, HEAD)
    rows = (base + keys)[:, None] * HEAD + channels[None, :]
    inside = keys[:, None] < length
    k = tl.load(k_ptr + rows, mask=inside, other=0.0)
    v = tl.load(v_ptr + rows, mask=inside, other=0.0)
    k_grad = tl.zeros((BLOCK_N, HEAD), tl.float32)
    v_grad = tl.zeros((BLOCK_N, HEAD), tl.float32)
    start = first // BLOCK_M * BLOCK_M if CAUSAL else 0
    for block in range(start, length, BLOCK_M):
        queries = block + tl.arange(0, BLOCK_M)
        offsets = (base + queries)[:, None] * HEAD + channels[None, :]
        known = queries[:, None] < length
        q = tl.load(q_ptr + offsets, mask=known, other=0.0)
        grad = tl.load(grad_ptr + offsets, mask=known, other=0.0)
        log_sum = tl.load(log_sum_ptr + base + queries, mask=queries < length, other=0.0)
        product = tl.load(product_ptr + base + queries, mask=queries < length, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        weights = tl.where(_visible(queries, keys, length, CAUSAL), tl.exp2(scores - log_sum[:, None]), 0.0)
        v_grad = tl.dot(tl.trans(weights.to(grad.dtype)), grad, v_grad, input_precision="ieee")
        weight_grad = tl.dot(grad, tl.trans(v), input_precision="ieee")
        score_grad = weights * (weight_grad - product[:, None])
        k_grad = tl.dot(tl.trans(score_grad.to(q.dtype)), q, k_grad, input_precision="ieee")
    tl.store(k_grad_ptr + rows, (k_grad * scale).to(k_grad_ptr.dtype.element_ty), mask=inside)
    tl.store(v_grad_ptr + rows, v_grad.to(v_grad_ptr.dtype.element_ty), mask=inside)


@triton.jit
def query_gradients_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    grad_ptr,
    log_sum_ptr,
    product_ptr,
    q_grad_ptr,
    length,
    scale,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """One block of queries, over all blocks of keys that it sees."""
    first = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1) * length
    queries = first + tl.arange(0, BLOCK_M)
    channels = tl.arange(0, HEAD)
    rows = (base + queries)[:, None] * HEAD + channels[None, :]
    inside = queries[:, None] < length
    q = tl.load(q_ptr + rows, mask=inside, other=0.0)
    grad = tl.load(grad_ptr + rows, mask=inside, other=0.0)
    log_sum = tl.load(log_sum_ptr + base + queries, mask=queries < length, other=0.0)
    product = tl.load(product_ptr + base + queries, mask=queries < length, other=0.0)
    q_grad = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for start in range(0, _last_key(first, length, BLOCK_M, CAUSAL), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = (base + keys)[:, None] * HEAD + channels[None, :]
        known = keys[:, None] < length
        k = tl.load(k_ptr + offsets, mask=known, other=0.0)
        v = tl.load(v_ptr + offsets, mask=known, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        weights = tl.where(_visible(queries, keys, length, CAUSAL), tl.exp2(scores - log_sum[:, None]), 0.0)
        weight_grad = tl.dot(grad, tl.trans(v), input_precision="ieee")
        score_grad = weights * (weight_grad - product[:, None])
        q_grad = tl.dot(score_grad.to(k.dtype), k, q_grad, input_precision="ieee")
    tl.store(q_grad_ptr + rows, (q_grad * scale).to(q_grad_ptr.dtype.element_ty), mask=inside)


def forward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    log_sum: Any,
    heads: int,
    length: int,
    head: int,
    scale: float,
    causal: bool,
    block: int,
) -> None:
    """Attention over contiguous (heads, length, head) arrays; ``log_sum`` is (heads, length)."""
    forward_kernel[(triton.cdiv(length, block), heads)](
        q, k, v, out, log_sum, length, scale, HEAD=head, BLOCK_M=block, BLOCK_N=block, CAUSAL=causal
    )


def backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    grad: Any,
    log_sum: Any,
    product: Any,
    q_grad: Any,
    k_grad: Any,
    v_grad: Any,
    heads: int,
    length: int,
    head: int,
    scale: float,
    causal: bool,
    block: int = 32,
) -> None:
    """Gradients of ``forward``; ``product`` is (heads, length) scratch."""
    row_products_kernel[(triton.cdiv(heads * length, 64),)](out, grad, product, heads * length, HEAD=head, BLOCK=64)
    grid = (triton.cdiv(length, block), heads)
    key_gradients_kernel[grid](
        q,
        k,
        v,
        grad,
        log_sum,
        product,
        k_grad,
        v_grad,
        length,
        scale,
        HEAD=head,
        BLOCK_M=block,
        BLOCK_N=block,
        CAUSAL=causal,
    )
    query_gradients_kernel[grid](
        q, k, v, grad, log_sum, product, q_grad, length, scale, HEAD=head, BLOCK_M=block, BLOCK_N=block, CAUSAL=causal
    )


def _weights(q: np.ndarray, k: np.ndarray, scale: float, causal: bool) -> np.ndarray:
    scores = q @ k.transpose(0, 2, 1) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool) -> np.ndarray:
    """Attention in float64, with the matrix of scores."""
    return _weights(q.astype(np.float64), k.astype(np.float64), scale, causal) @ v.astype(np.float64)


def reference_gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad: np.ndarray, scale: float, causal: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of q, k and v in float64."""
    q, k, v, grad = (array.astype(np.float64) for array in (q, k, v, grad))
    weights = _weights(q, k, scale, causal)
    weight_grad = grad @ v.transpose(0, 2, 1)
    score_grad = weights * (weight_grad - (weights * weight_grad).sum(axis=2, keepdims=True)) * scale
    return score_grad @ k, score_grad.transpose(0, 2, 1) @ q, weights.transpose(0, 2, 1) @ grad


def forward_case(heads: int, length: int, head: int, causal: bool, dtype: Any = np.float32) -> Case:
    """The forward pass."""
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((heads, length, head), dtype=np.float32).astype(dtype) for _ in range(3))
    out, log_sum = np.zeros_like(q), np.zeros((heads, length), np.float32)
    scale = head**-0.5
    # Blocks of q, k and v are in shared memory together, of which some devices have 32 KiB.
    block = 128 // q.itemsize
    arguments = [device_array(array) for array in (q, k, v, out, log_sum)]
    name = {"float32": "fp32", "float16": "fp16"}[np.dtype(dtype).name]
    return Case(
        "causal attention" if causal else "attention",
        f"{heads}×{length}×{head} {name}",
        lambda: forward(*arguments, heads, length, head, scale, causal, block),
        out,
        reference(q, k, v, scale, causal),
        operations=4 * heads * length**2 * head // (2 if causal else 1),
        tolerance=1e-5 if dtype == np.float32 else 5e-3,
    )


def backward_case(heads: int, length: int, head: int, causal: bool) -> Case:
    """The backward pass: the gradients of q, k and v lie behind one another in the checked output."""
    random = np.random.default_rng(0)
    q, k, v, grad = (random.standard_normal((heads, length, head), dtype=np.float32) for _ in range(4))
    out = np.zeros_like(q)
    log_sum, product = np.zeros((heads, length), np.float32), np.zeros((heads, length), np.float32)
    gradients = np.zeros((3, *q.shape), np.float32)
    scale = head**-0.5
    d_q, d_k, d_v, d_out, d_log_sum = (device_array(array) for array in (q, k, v, out, log_sum))
    forward(d_q, d_k, d_v, d_out, d_log_sum, heads, length, head, scale, causal, block=32)
    arguments = (
        d_q,
        d_k,
        d_v,
        d_out,
        device_array(grad),
        d_log_sum,
        device_array(product),
        *(device_array(part) for part in gradients),
    )
    return Case(
        "causal attention backward" if causal else "attention backward",
        f"{heads}×{length}×{head} fp32",
        lambda: backward(*arguments, heads, length, head, scale, causal),
        gradients,
        np.stack(reference_gradients(q, k, v, grad, scale, causal)),
        operations=10 * heads * length**2 * head // (2 if causal else 1),
        tolerance=2e-5,
    )


def cases() -> list[Case]:
    """Forward and backward, causal and not; the length is no multiple of the block."""
    return [
        forward_case(2, 200, 64, causal=False),
        forward_case(2, 200, 64, causal=True),
        forward_case(2, 200, 64, causal=True, dtype=np.float16),
        backward_case(2, 200, 32, causal=False),
        backward_case(2, 200, 32, causal=True),
    ]


if __name__ == "__main__":
    run_alone(cases)
