"""The kernels of attention.py: FlashAttention-2, whose scores are never stored, and its gradient."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _scores(
    q, k, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL: tl.constexpr, MASK: tl.constexpr
):  # fmt: skip
    """Scores of a tile of queries and keys, in units of log(2); -inf where a query does not look."""
    scores = tl.dot(q, k, input_precision="ieee") * scale
    seen = (row < M) & (column < N)
    if MASK == "bias":
        bias = tl.load(mask + row * stride_mm + column * stride_mn, mask=seen, other=0.0).to(tl.float32)
        scaled = bias * 1.4426950408889634
        lost = (scaled == float("-inf")) & (bias != float("-inf"))  # of the smallest numbers, which masks are made of
        scores += tl.where(lost, -3.4028234663852886e38, scaled)
    if MASK == "bool":
        seen = seen & (tl.load(mask + row * stride_mm + column * stride_mn, mask=seen, other=0) != 0)
    if CAUSAL:
        seen = seen & (column <= row)
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def _head(pointer, H, stride_b, stride_h):
    """Where a program's matrix begins in a tensor of (B, H, rows, columns)."""
    return pointer + tl.program_id(1) // H * stride_b + tl.program_id(1) % H * stride_h


@triton.jit
def _tile(pointer, i, stride_i, I, j, stride_j, J):  # noqa: E741
    """The elements at rows ``i`` of I and columns ``j`` of J of a matrix, 0 where there are none."""
    return tl.load(pointer + i * stride_i + j * stride_j, mask=(i < I) & (j < J), other=0.0)


@triton.jit
def forward_kernel(
    out, tops, totals, q, k, v, mask, H, M, N, D, E, scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """out (B, H, M, E), and of each query's scores the greatest and the sum of exponentials, tops and totals (B, H, M):
    one number, the logarithm of both, would lose the sum beside a great score."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    mask = _head(mask, H, stride_mb, stride_mh)
    first = tl.program_id(0) * BM
    row = first + tl.arange(0, BM)[:, None]
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    queries = _tile(q, row, stride_qm, M, d[None, :], stride_qd, D)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, BE), tl.float32)
    end = tl.minimum(N, first + BM) if CAUSAL else N
    for start in range(0, end, BN):
        column = start + tl.arange(0, BN)[None, :]
        keys = _tile(k, column, stride_kn, N, d[:, None], stride_kd, D)
        scores = _scores(queries, keys, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL, MASK)
        highest = tl.maximum(top, tl.max(scores, 1))  # NaN arrives by way of the weights
        base = tl.where(highest == float("-inf"), 0.0, highest)
        shrink = tl.exp2(top - base)
        weights = tl.exp2(scores - base[:, None])
        total = total * shrink + tl.sum(weights, 1)
        values = _tile(v, start + tl.arange(0, BN)[:, None], stride_vn, N, e[None, :], stride_ve, E)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None], input_precision="ieee")
        top = highest
    nothing = total == 0
    result = result / tl.where(nothing, 1.0, total)[:, None]
    place = _head(out, H, stride_ob, stride_oh) + row * stride_om + e[None, :] * stride_oe
    tl.store(place, result.to(out.dtype.element_ty), mask=(row < M) & (e < E)[None, :])
    m = first + tl.arange(0, BM)
    # Of a query that looks nowhere every weight is to be 0: the difference to any score is -inf.
    tl.store(tops + tl.program_id(1) * M + m, tl.where(nothing, float("inf"), top), mask=m < M)
    tl.store(totals + tl.program_id(1) * M + m, tl.where(nothing, 1.0, total), mask=m < M)


@triton.jit
def _weights_and_gradients(
    queries, keys, values, grads, tops, totals, delta, mask, row, m, column, N, M, stride_mm, stride_mn, scale,
    CAUSAL: tl.constexpr, MASK: tl.constexpr,
):  # fmt: skip
    """(weights, gradients of the scores) of a tile; keys are (D, N), values (E, N)."""
    scores = _scores(queries, keys, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL, MASK)
    weights = tl.exp2(scores - tl.load(tops + m, mask=m < M, other=float("inf"))[:, None])
    weights /= tl.load(totals + m, mask=m < M, other=1.0)[:, None]
    products = tl.dot(grads, values, input_precision="ieee")
    return weights, weights * (products - tl.load(delta + m, mask=m < M, other=0.0)[:, None])


@triton.jit
def query_kernel(
    dq, q, k, v, do, tops, totals, delta, mask, H, M, N, D, E, scale, factor,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """dq (B, H, M, D), contiguous; the strides with o are the strides of the output's gradient do."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    do = _head(do, H, stride_ob, stride_oh)
    mask = _head(mask, H, stride_mb, stride_mh)
    tops += tl.program_id(1) * M
    totals += tl.program_id(1) * M
    delta += tl.program_id(1) * M
    first = tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    row = m[:, None]
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    queries = _tile(q, row, stride_qm, M, d[None, :], stride_qd, D)
    grads = _tile(do, row, stride_om, M, e[None, :], stride_oe, E)
    total = tl.zeros((BM, BD), tl.float32)
    end = tl.minimum(N, first + BM) if CAUSAL else N
    for start in range(0, end, BN):
        column = start + tl.arange(0, BN)[None, :]
        keys = _tile(k, column, stride_kn, N, d[:, None], stride_kd, D)
        values = _tile(v, column, stride_vn, N, e[:, None], stride_ve, E)
        _, gradients = _weights_and_gradients(
            queries, keys, values, grads, tops, totals, delta, mask, row, m, column, N, M, stride_mm, stride_mn, scale,
            CAUSAL, MASK,
        )  # fmt: skip
        total = tl.dot(gradients.to(keys.dtype), tl.trans(keys), total, input_precision="ieee")
    place = dq + (tl.program_id(1) * M + row) * D + d[None, :]
    tl.store(place, (total * factor).to(dq.dtype.element_ty), mask=(row < M) & (d < D)[None, :])


@triton.jit
def key_kernel(
    dk, dv, q, k, v, do, tops, totals, delta, mask, H, M, N, D, E, scale, factor,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """dk (B, H, N, D) and dv (B, H, N, E), contiguous."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    do = _head(do, H, stride_ob, stride_oh)
    mask = _head(mask, H, stride_mb, stride_mh)
    tops += tl.program_id(1) * M
    totals += tl.program_id(1) * M
    delta += tl.program_id(1) * M
    first = tl.program_id(0) * BN
    n = first + tl.arange(0, BN)
    column = n[None, :]
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    keys = _tile(k, column, stride_kn, N, d[:, None], stride_kd, D)
    values = _tile(v, column, stride_vn, N, e[:, None], stride_ve, E)
    total_k = tl.zeros((BN, BD), tl.float32)
    total_v = tl.zeros((BN, BE), tl.float32)
    begin = first // BM * BM if CAUSAL else 0
    for start in range(begin, M, BM):
        m = start + tl.arange(0, BM)
        row = m[:, None]
        queries = _tile(q, row, stride_qm, M, d[None, :], stride_qd, D)
        grads = _tile(do, row, stride_om, M, e[None, :], stride_oe, E)
        weights, gradients = _weights_and_gradients(
            queries, keys, values, grads, tops, totals, delta, mask, row, m, column, N, M, stride_mm, stride_mn, scale,
            CAUSAL, MASK,
        )  # fmt: skip
        total_v = tl.dot(tl.trans(weights.to(grads.dtype)), grads, total_v, input_precision="ieee")
        total_k = tl.dot(tl.trans(gradients.to(queries.dtype)), queries, total_k, input_precision="ieee")
    row = n[:, None]
    place = dk + (tl.program_id(1) * N + row) * D + d[None, :]
    tl.store(place, (total_k * factor).to(dk.dtype.element_ty), mask=(row < N) & (d < D)[None, :])
    place = dv + (tl.program_id(1) * N + row) * E + e[None, :]
    tl.store(place, total_v.to(dv.dtype.element_ty), mask=(row < N) & (e < E)[None, :])
