"""Kernels that test_cpu_app.py compiles for processors, and runs from C++."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + scale * tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, inside, other=-float("inf")).to(tl.float32)
    above = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row + at, above / tl.sum(above, axis=0), inside)


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + at[None, :], (rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + columns[None, :], (at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def chain(counter, out):
    """Each program waits for the one before it."""
    number = tl.program_id(0)
    while tl.atomic_add(counter, 0) != number:
        pass
    tl.store(out + number, number)
    tl.atomic_add(counter, 1)


@triton.jit
def sort(out, x, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def count(programs, ids, BLOCK: tl.constexpr):
    """Counts itself at its place; it takes a while."""
    place = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.int32)
    for number in range(0, 50):
        total += tl.arange(0, BLOCK) * number
    tl.atomic_add(programs + place, tl.where(tl.sum(total) >= 0, 1, 2))
    tl.store(ids + place, place)
