"""The kernels of attention.py: FlashAttention-2, whose scores are never stored, and its gradient."""

# mypy: allow-untyped-defs
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _scores(
    scores, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL: tl.constexpr, MASK: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """Products of queries and keys as scores, -inf where a query does not look: times _factor() they are in units of
    log(2). ``row`` and ``column`` number the queries and keys. ``WHOLE``: all of them exist."""
    seen = (row < M) & (column < N)
    if MASK == "bias":
        bias = tl.load(mask + row * stride_mm + column * stride_mn, mask=seen, other=0.0).to(tl.float32)
        scaled = bias * 1.4426950408889634
        lost = (scaled == float("-inf")) & (bias != float("-inf"))  # of the smallest numbers, which masks are made of
        scores = scores * scale + tl.where(lost, -3.4028234663852886e38, scaled)
    if MASK == "bool":
        seen = seen & (tl.load(mask + row * stride_mm + column * stride_mn, mask=seen, other=0) != 0)
        scores = tl.where(seen, scores, float("-inf"))
    elif not WHOLE:
        scores = tl.where(seen, scores, float("-inf"))
    if CAUSAL:
        scores = tl.where(column <= row, scores, float("-inf"))
    return scores


@triton.jit
def _factor(scale, MASK: tl.constexpr):
    """What scores are still to be multiplied by, a positive number: the greatest of them stays the greatest."""
    return 1.0 if MASK == "bias" else scale


@triton.jit
def _head(pointer, H, stride_b, stride_h):
    """Where a program's matrix begins in a tensor of (B, H, rows, columns)."""
    return pointer + tl.program_id(1) // H * stride_b + tl.program_id(1) % H * stride_h


@triton.jit
def _row_block(CAUSAL: tl.constexpr):
    """Which queries a program has. In causal attention the last ones, which see the most keys, come first, so that
    programs that start late are short."""
    return tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)


@triton.jit
def _tile(pointer, i, stride_i, I, j, stride_j, J, WHOLE: tl.constexpr):  # noqa: E741
    """The elements at rows ``i`` of I and columns ``j`` of J of a matrix, 0 where there are none. ``WHOLE``: all are
    there."""
    place = pointer + i * stride_i + j * stride_j
    if WHOLE:
        return tl.load(place)
    return tl.load(place, mask=(i < I) & (j < J), other=0.0)


@triton.jit
def _row_numbers(pointer, m, M, other, WHOLE: tl.constexpr):
    """A number of each query ``m`` of M, ``other`` where there is none."""
    if WHOLE:
        return tl.load(pointer + m)
    return tl.load(pointer + m, mask=m < M, other=other)


@triton.jit
def _attended(
    start, queries, top, total, result, k, v, mask, row, d, e, M, N, D, E, scale,
    stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BN: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """(top, total, result) of forward_kernel after the keys from ``start`` on."""
    column = start + tl.arange(0, BN)[None, :]
    keys = _tile(k, column, stride_kn, N, d[:, None], stride_kd, D, WHOLE)
    products = tl.dot(queries, keys, input_precision="ieee")
    scores = _scores(products, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL, MASK, WHOLE)
    factor = _factor(scale, MASK)
    highest = tl.maximum(top, tl.max(scores, 1) * factor)  # NaN arrives by way of the weights
    base = tl.where(highest == float("-inf"), 0.0, highest)
    shrink = tl.exp2(top - base)
    weights = tl.exp2(scores * factor - base[:, None])
    total = total * shrink + tl.sum(weights, 1)
    values = _tile(v, start + tl.arange(0, BN)[:, None], stride_vn, N, e[None, :], stride_ve, E, WHOLE)
    result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None], input_precision="ieee")
    return highest, total, result


@triton.jit
def forward_kernel(
    out, tops, shares, q, k, v, mask, H, M, N, D, E, scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, WHOLE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """out (B, H, M, E), and of each query's scores the greatest and the reciprocal of the sum of exponentials, tops and
    shares (B, H, M): one number, the logarithm of both, would lose the sum beside a great score. ``WHOLE``: all tiles
    are. Of causal attention, only the tiles on the diagonal have keys that a query does not see."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    mask = _head(mask, H, stride_mb, stride_mh)
    first = _row_block(CAUSAL) * BM
    row = first + tl.arange(0, BM)[:, None]
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    queries = _tile(q, row, stride_qm, M, d[None, :], stride_qd, D, WHOLE)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, BE), tl.float32)
    end = tl.minimum(N, first + BM) if CAUSAL else N
    diagonal = tl.minimum(first // BN * BN, end) if CAUSAL else 0
    if CAUSAL:
        for start in range(0, diagonal, BN):
            top, total, result = _attended(
                start, queries, top, total, result, k, v, mask, row, d, e, M, N, D, E, scale,
                stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn, False, MASK, BN, WHOLE,
            )  # fmt: skip
    for start in range(diagonal, end, BN):
        top, total, result = _attended(
            start, queries, top, total, result, k, v, mask, row, d, e, M, N, D, E, scale,
            stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn, CAUSAL, MASK, BN, WHOLE,
        )  # fmt: skip
    nothing = total == 0
    share = 1.0 / tl.where(nothing, 1.0, total)
    result = result / tl.where(nothing, 1.0, total)[:, None]
    place = _head(out, H, stride_ob, stride_oh) + row * stride_om + e[None, :] * stride_oe
    tl.store(place, result.to(out.dtype.element_ty), mask=(row < M) & (e < E)[None, :])
    m = first + tl.arange(0, BM)
    # Of a query that looks nowhere every weight is to be 0: the difference to any score is -inf.
    tl.store(tops + tl.program_id(1) * M + m, tl.where(nothing, float("inf"), top), mask=m < M)
    tl.store(shares + tl.program_id(1) * M + m, share, mask=m < M)


@triton.jit
def _query_gradient(
    start, queries, grads, top, share, delta, total, k, v, mask, row, d, e, M, N, D, E, scale,
    stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BN: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """``total`` of query_kernel after the keys from ``start`` on."""
    n = start + tl.arange(0, BN)
    column = n[None, :]
    keys = _tile(k, n[:, None], stride_kn, N, d[None, :], stride_kd, D, WHOLE)
    values = _tile(v, n[:, None], stride_vn, N, e[None, :], stride_ve, E, WHOLE)
    products = tl.dot(queries, tl.trans(keys), input_precision="ieee")
    scores = _scores(products, mask, row, column, N, M, stride_mm, stride_mn, scale, CAUSAL, MASK, WHOLE)
    weights = tl.exp2(scores * _factor(scale, MASK) - top[:, None]) * share[:, None]
    gradients = weights * (tl.dot(grads, tl.trans(values), input_precision="ieee") - delta[:, None])
    return tl.dot(gradients.to(keys.dtype), keys, total, input_precision="ieee")


@triton.jit
def query_kernel(
    dq, q, k, v, do, tops, shares, delta, mask, H, M, N, D, E, scale, factor,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, WHOLE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """dq (B, H, M, D), contiguous; the strides with o are the strides of the output's gradient do."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    do = _head(do, H, stride_ob, stride_oh)
    mask = _head(mask, H, stride_mb, stride_mh)
    first = _row_block(CAUSAL) * BM
    m = first + tl.arange(0, BM)
    row = m[:, None]
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    queries = _tile(q, row, stride_qm, M, d[None, :], stride_qd, D, WHOLE)
    grads = _tile(do, row, stride_om, M, e[None, :], stride_oe, E, WHOLE)
    top = _row_numbers(tops + tl.program_id(1) * M, m, M, float("inf"), WHOLE)
    share = _row_numbers(shares + tl.program_id(1) * M, m, M, 1.0, WHOLE)
    products = _row_numbers(delta + tl.program_id(1) * M, m, M, 0.0, WHOLE)
    total = tl.zeros((BM, BD), tl.float32)
    end = tl.minimum(N, first + BM) if CAUSAL else N
    diagonal = tl.minimum(first // BN * BN, end) if CAUSAL else 0
    if CAUSAL:
        for start in range(0, diagonal, BN):
            total = _query_gradient(
                start, queries, grads, top, share, products, total, k, v, mask, row, d, e, M, N, D, E, scale,
                stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn, False, MASK, BN, WHOLE,
            )  # fmt: skip
    for start in range(diagonal, end, BN):
        total = _query_gradient(
            start, queries, grads, top, share, products, total, k, v, mask, row, d, e, M, N, D, E, scale,
            stride_kn, stride_kd, stride_vn, stride_ve, stride_mm, stride_mn, CAUSAL, MASK, BN, WHOLE,
        )  # fmt: skip
    place = dq + (tl.program_id(1) * M + row) * D + d[None, :]
    tl.store(place, (total * factor).to(dq.dtype.element_ty), mask=(row < M) & (d < D)[None, :])


@triton.jit
def _key_gradients(
    start, keys, values, total_k, total_v, q, do, tops, shares, delta, mask, n, d, e, M, N, D, E, scale,
    stride_qm, stride_qd, stride_om, stride_oe, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, BM: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The totals of key_kernel after the queries from ``start`` on. Scores are (queries, keys); the compiler computes
    them transposed on matrix units (transforms/gpu/turn_dots.py)."""
    m = start + tl.arange(0, BM)
    queries = _tile(q, m[:, None], stride_qm, M, d[None, :], stride_qd, D, WHOLE)
    grads = _tile(do, m[:, None], stride_om, M, e[None, :], stride_oe, E, WHOLE)
    products = tl.dot(queries, keys, input_precision="ieee")
    scores = _scores(
        products, mask, m[:, None], n[None, :], N, M, stride_mm, stride_mn, scale, CAUSAL, MASK, WHOLE
    )  # fmt: skip
    top = _row_numbers(tops, m, M, float("inf"), WHOLE)[:, None]
    weights = tl.exp2(scores * _factor(scale, MASK) - top) * _row_numbers(shares, m, M, 1.0, WHOLE)[:, None]
    total_v = tl.dot(tl.trans(weights.to(grads.dtype)), grads, total_v, input_precision="ieee")
    of_weights = tl.dot(grads, values, input_precision="ieee")
    gradients = weights * (of_weights - _row_numbers(delta, m, M, 0.0, WHOLE)[:, None])
    total_k = tl.dot(tl.trans(gradients.to(queries.dtype)), queries, total_k, input_precision="ieee")
    return total_k, total_v


@triton.jit
def key_kernel(
    dk, dv, q, k, v, do, tops, shares, delta, mask, H, M, N, D, E, scale, factor,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_ve, stride_ob, stride_oh, stride_om, stride_oe,
    stride_mb, stride_mh, stride_mm, stride_mn,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, WHOLE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """dk (B, H, N, D) and dv (B, H, N, E), contiguous."""
    q = _head(q, H, stride_qb, stride_qh)
    k = _head(k, H, stride_kb, stride_kh)
    v = _head(v, H, stride_vb, stride_vh)
    do = _head(do, H, stride_ob, stride_oh)
    mask = _head(mask, H, stride_mb, stride_mh)
    tops += tl.program_id(1) * M
    shares += tl.program_id(1) * M
    delta += tl.program_id(1) * M
    first = tl.program_id(0) * BN
    n = first + tl.arange(0, BN)
    d, e = tl.arange(0, BD), tl.arange(0, BE)
    keys = _tile(k, n[None, :], stride_kn, N, d[:, None], stride_kd, D, WHOLE)
    values = _tile(v, n[None, :], stride_vn, N, e[:, None], stride_ve, E, WHOLE)
    total_k = tl.zeros((BN, BD), tl.float32)
    total_v = tl.zeros((BN, BE), tl.float32)
    begin = first // BM * BM if CAUSAL else 0
    seen = tl.minimum(tl.cdiv(first + BN, BM) * BM, M) if CAUSAL else 0
    if CAUSAL:
        for start in range(begin, seen, BM):
            total_k, total_v = _key_gradients(
                start, keys, values, total_k, total_v, q, do, tops, shares, delta, mask, n, d, e, M, N, D, E, scale,
                stride_qm, stride_qd, stride_om, stride_oe, stride_mm, stride_mn, True, MASK, BM, WHOLE,
            )  # fmt: skip
    for start in range(seen, M, BM):
        total_k, total_v = _key_gradients(
            start, keys, values, total_k, total_v, q, do, tops, shares, delta, mask, n, d, e, M, N, D, E, scale,
            stride_qm, stride_qd, stride_om, stride_oe, stride_mm, stride_mn, False, MASK, BM, WHOLE,
        )  # fmt: skip
    row = n[:, None]
    place = dk + (tl.program_id(1) * N + row) * D + d[None, :]
    tl.store(place, (total_k * factor).to(dk.dtype.element_ty), mask=(row < N) & (d < D)[None, :])
    place = dv + (tl.program_id(1) * N + row) * E + e[None, :]
    tl.store(place, total_v.to(dv.dtype.element_ty), mask=(row < N) & (e < E)[None, :])
