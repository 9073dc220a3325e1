"""Attention."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.users.rows import Data, Row


@triton.jit
def attention(q, k, v, out, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    head, first = tl.program_id(1), tl.program_id(0) * M
    row, at = first + tl.arange(0, M), tl.arange(0, D)
    begin = head * n * D
    place = begin + row[:, None] * D + at[None, :]
    query = tl.load(q + place, mask=row[:, None] < n, other=0.0)
    top, total = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, first + M if CAUSAL else n, N):
        column = start + tl.arange(0, N)
        keys = tl.load(k + begin + column[None, :] * D + at[:, None], mask=column[None, :] < n, other=0.0)
        scores = tl.dot(query, keys, input_precision="ieee") * scale
        visible = column[None, :] < n
        if CAUSAL:
            visible = visible & (column[None, :] <= row[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + begin + column[:, None] * D + at[None, :], mask=column[:, None] < n, other=0.0)
        result = tl.dot(weights, values, result * shrink[:, None], input_precision="ieee")
        top = higher
    tl.store(out + place, result / total[:, None], mask=row[:, None] < n)


@triton.jit
def decode(q, k, v, out, n, scale, D: tl.constexpr, N: tl.constexpr):
    """One query a head."""
    head, at = tl.program_id(0), tl.arange(0, D)
    query = tl.load(q + head * D + at)
    top, total, result = -float("inf"), 0.0, tl.zeros((D,), tl.float32)
    for start in range(0, n, N):
        column = start + tl.arange(0, N)
        mask = column[:, None] < n
        place = head * n * D + column[:, None] * D + at[None, :]
        scores = tl.sum(tl.load(k + place, mask=mask, other=0.0) * query[None, :], 1) * scale
        scores = tl.where(column < n, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 0))
        weights, shrink = tl.exp(scores - higher), tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 0)
        result = result * shrink + tl.sum(weights[:, None] * tl.load(v + place, mask=mask, other=0.0), 0)
        top = higher
    tl.store(out + head * D + at, result / total)


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    heads, n, d = 8, 500, 64
    q, k, v, out = (
        data.normal(heads, n, d),
        data.normal(heads, n, d),
        data.normal(heads, n, d),
        torch.zeros(heads, n, d),
    )
    for causal in (False, True):

        def other(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = causal) -> torch.Tensor:
            return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]

        yield Row(
            f"attention 8×500×64{', causal' if causal else ''}",
            lambda causal=causal: attention[(triton.cdiv(n, 64), heads)](  # type: ignore[misc]
                q, k, v, out, n, d**-0.5, CAUSAL=causal, D=d, M=64, N=64
            ),
            out,
            other(q.double(), k.double(), v.double()),
            data.sides(other, q, k, v),
            1e-3,
        )
    one, result = data.normal(heads, 1, d), torch.zeros(heads, 1, d)
    yield Row(
        "attention of one query",
        lambda: decode[(heads,)](one, k, v, result, n, d**-0.5, D=d, N=64),
        result,
        functional.scaled_dot_product_attention(one.double(), k.double(), v.double()),
        data.sides(functional.scaled_dot_product_attention, one, k, v),
        1e-3,
    )
