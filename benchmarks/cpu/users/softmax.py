"""Softmax and what has exponentials of rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.users.rows import Data, Row


@triton.jit
def softmax(x, out, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    place = row[:, None] * n + at[None, :]
    mask = (row[:, None] < m) & (at[None, :] < n)
    value = tl.load(x + place, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(out + place, value / tl.sum(value, 1)[:, None], mask=mask)


@triton.jit
def softmax_row(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * n + at, value / tl.sum(value, 0), mask=at < n)


@triton.jit
def causal(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    value = tl.where(at <= row, value, -float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * n + at, value / tl.sum(value, 0), mask=at < n)


@triton.jit
def online(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    top, total = tl.full((BLOCK,), -float("inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        value = tl.load(x + row * n + first + at, mask=first + at < n, other=-float("inf"))
        higher = tl.maximum(top, value)
        total = total * tl.exp(top - higher) + tl.exp(value - higher)
        top = higher
    most = tl.max(top, 0)
    whole = tl.sum(total * tl.exp(top - most), 0)
    for first in range(0, n, BLOCK):
        mask = first + at < n
        value = tl.load(x + row * n + first + at, mask=mask, other=-float("inf"))
        tl.store(out + row * n + first + at, tl.exp(value - most) / whole, mask=mask)


@triton.jit
def log_softmax(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    value -= tl.max(value, 0)
    tl.store(out + row * n + at, value - tl.log(tl.sum(tl.exp(value), 0)), mask=at < n)


@triton.jit
def cross_entropy(x, target, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    top, total = -float("inf"), 0.0
    for first in range(0, n, BLOCK):
        value = tl.load(x + row * n + first + at, mask=first + at < n, other=-float("inf"))
        higher = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), 0)
        top = higher
    chosen = tl.load(x + row * n + tl.load(target + row))
    tl.store(out + row, top + tl.log(total) - chosen)


@triton.jit
def softmax_backward(y, dy, dx, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    p, g = tl.load(y + row * n + at, mask=at < n, other=0.0), tl.load(dy + row * n + at, mask=at < n, other=0.0)
    tl.store(dx + row * n + at, p * (g - tl.sum(p * g, 0)), mask=at < n)


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    m, n = 1823, 781
    x, out = data.normal(m, n), torch.zeros(m, n)
    expected, sides = x.double().softmax(1), data.sides(torch.softmax, x, 1)
    yield Row("softmax 1823×781", lambda: softmax_row[(m,)](x, out, n, BLOCK=1024), out, expected, sides)
    for count in (4, 16):
        grid = (triton.cdiv(m, count),)
        yield Row(
            f"softmax 1823×781, {count} rows a tile",
            lambda grid=grid, count=count: softmax[grid](x, out, m, n, ROWS=count, BLOCK=1024),  # type: ignore[misc]
            out,
            expected,
            sides,
        )
    scores, probabilities = data.normal(1024, 1024), torch.zeros(1024, 1024)
    below = torch.ones(1024, 1024, dtype=torch.bool).tril()

    def masked(scores: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
        return scores.masked_fill(~below, -float("inf")).softmax(1)

    yield Row(
        "causal softmax 1024×1024",
        lambda: causal[(1024,)](scores, probabilities, 1024, BLOCK=1024),
        probabilities,
        masked(scores.double(), below),
        data.sides(masked, scores, below),
    )
    wide, long = data.normal(64, 20000), torch.zeros(64, 20000)
    yield Row(
        "softmax 64×20000 in a loop",
        lambda: online[(64,)](wide, long, 20000, BLOCK=1024),
        long,
        wide.double().softmax(1),
        data.sides(torch.softmax, wide, 1),
    )
    yield Row(
        "log softmax 1823×781",
        lambda: log_softmax[(m,)](x, out, n, BLOCK=1024),
        out,
        x.double().log_softmax(1),
        data.sides(torch.log_softmax, x, 1),
    )
    target, losses = data.integers(20000, 64), torch.zeros(64)

    def loss(wide: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(wide, target, reduction="none")

    yield Row(
        "cross entropy 64×20000",
        lambda: cross_entropy[(64,)](wide, target, losses, 20000, BLOCK=1024),
        losses,
        loss(wide.double(), target),
        data.sides(loss, wide, target),
    )
    y, dy, dx = x.softmax(1), data.normal(m, n), torch.zeros(m, n)

    def backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten._softmax_backward_data(dy, y, 1, torch.float32)

    yield Row(
        "softmax's backward 1823×781",
        lambda: softmax_backward[(m,)](y, dy, dx, n, BLOCK=1024),
        dx,
        y.double() * (dy.double() - (y.double() * dy.double()).sum(1, keepdim=True)),
        data.sides(backward, y, dy),
    )
