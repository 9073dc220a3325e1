"""The kernels, as a user writes them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def chain(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(x + at, mask=mask), tl.load(y + at, mask=mask)
    value = tl.maximum(a * b + a, 0.0) * 0.5 - b
    tl.store(out + at, tl.where(value > 1.0, value * value, value + a), mask=mask)


@triton.jit
def exponential(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.exp(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=at < n)


@triton.jit
def uniform(out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.rand(seed, at), mask=at < n)


@triton.jit
def rms_norm(x, weight, out, stride, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, mask=at < n, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(out + row * stride + at, value * scale * tl.load(weight + at, mask=at < n), mask=at < n)


@triton.jit
def reduce_rows(x, out, n, MAXIMUM: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=float("-inf") if MAXIMUM else 0.0)
    tl.store(out + row, tl.max(value, 0) if MAXIMUM else tl.sum(value, 0))


@triton.jit
def reduce_columns(x, out, m, n, MAXIMUM: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    start: tl.constexpr = float("-inf") if MAXIMUM else 0.0
    total = tl.full((ROWS, COLUMNS), start, tl.float32)
    for first in range(0, m, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row[:, None] < m) & (column[None, :] < n)
        value = tl.load(x + row[:, None] * n + column[None, :], mask=mask, other=start)
        total = tl.maximum(total, value) if MAXIMUM else total + value
    tl.store(out + column, tl.max(total, 0) if MAXIMUM else tl.sum(total, 0), mask=column < n)


@triton.jit
def batched(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch = tl.program_id(2)
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    a += batch * m * k
    b += batch * k * n
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, k, K):
        step = first + tl.arange(0, K)
        left = tl.load(a + row[:, None] * k + step[None, :], mask=(row[:, None] < m) & (step[None, :] < k), other=0.0)
        right = tl.load(
            b + step[:, None] * n + column[None, :], mask=(step[:, None] < k) & (column[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    place = c + batch * m * n + row[:, None] * n + column[None, :]
    tl.store(place, total, mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def cumulative(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(out + row * n + at, tl.cumsum(value, 0), mask=at < n)


@triton.jit
def gather(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.store(out + at, tl.load(x + place, mask=at < n), mask=at < n)


@triton.jit
def scatter(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.store(out + place, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def embedding(table, index, out, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(table + tl.load(index + row) * width + at, mask=at < width)
    tl.store(out + row * width + at, value, mask=at < width)


@triton.jit
def transpose(x, out, m, n, TILE: tl.constexpr):
    row, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    value = tl.load(x + row[:, None] * n + column[None, :], mask=(row[:, None] < m) & (column[None, :] < n))
    place = out + column[:, None] * m + row[None, :]
    tl.store(place, tl.trans(value), mask=(column[:, None] < n) & (row[None, :] < m))


@triton.jit
def largest(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row, tl.argmax(tl.load(x + row * n + at, mask=at < n, other=float("-inf")), 0))


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def sort(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=float("inf"))
    tl.store(out + row * n + at, tl.sort(value, 0), mask=at < n)


@triton.jit
def top(x, out, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=float("-inf"))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(value, K))


@triton.jit
def multiply_adds(out, n):
    """Chains of multiply-adds that stay in registers: what the processor can do."""
    lane = tl.arange(0, 16)
    factor = lane * 1e-9 + 0.999
    a, b, c, d = factor, factor + 1, factor + 2, factor + 3
    e, f, g, h = factor + 4, factor + 5, factor + 6, factor + 7
    for _ in range(n):
        a, b, c, d = a * factor + 1e-3, b * factor + 1e-3, c * factor + 1e-3, d * factor + 1e-3
        e, f, g, h = e * factor + 1e-3, f * factor + 1e-3, g * factor + 1e-3, h * factor + 1e-3
    tl.store(out + tl.program_id(0) * 16 + lane, a + b + c + d + e + f + g + h)
