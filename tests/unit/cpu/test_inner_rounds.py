"""Loops over strips around the rounds of a loop: sums of rows stay as they are to the bit, and which loops change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.objects import make

from tests.unit.cpu.kernels import block_of, compiled, launch

REWRITE = "put rounds into loops over strips"
GUARD = 99.0


@triton.jit
def by_counter(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total = tl.zeros((ROWS, K), tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
    tl.store(out + row, tl.sum(total, 1), mask=row < n)


@triton.jit
def by_pointers(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total = tl.zeros((ROWS, K), tl.float32)
    lefts, rights = w + row[:, None] * stride + step[None, :], x + step
    for first in range(0, k, K):
        mask = (row[:, None] < n) & (step[None, :] < k - first)
        total += tl.load(lefts, mask=mask, other=0.0) * tl.load(rights, mask=step < k - first, other=0.0)[None, :]
        lefts += K
        rights += K
    tl.store(out + row, tl.sum(total, 1), mask=row < n)


@triton.jit
def two_sums(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total, most = tl.zeros((ROWS, K), tl.float32), tl.full((ROWS, K), -1e30, tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        right = tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
        most = tl.maximum(most, left)
        total += left * right
    tl.store(out + row, tl.sum(total, 1), mask=row < n)
    tl.store(last + row, tl.max(most, 1), mask=row < n)


@triton.jit
def counted(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    """What else the loop carries is needed behind it."""
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total, rounds = tl.zeros((ROWS, K), tl.float32), 0
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
        rounds += 1
    tl.store(out + row, tl.sum(total, 1), mask=row < n)
    tl.store(last + row, rounds.to(tl.float32), mask=row < n)


@triton.jit
def backwards(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total = tl.zeros((ROWS, K), tl.float32)
    for number in range(0, k, K):
        at = k - 1 - number - step
        mask = (row[:, None] < n) & (at[None, :] >= 0)
        left = tl.load(w + row[:, None] * stride + at[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + at, mask=at >= 0, other=0.0)[None, :]
    tl.store(out + row, tl.sum(total, 1), mask=row < n)


@triton.jit
def stored(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    """What a round stores, a later one of another row may load."""
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total = tl.zeros((ROWS, K), tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
        tl.store(last + first // K, first.to(tl.float32))
    tl.store(out + row, tl.sum(total, 1), mask=row < n)


@triton.jit
def with_product(w, x, out, last, n, k, stride, ROWS: tl.constexpr, K: tl.constexpr):
    """What another array holds changes in each round, once."""
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total, product = tl.zeros((ROWS, K), tl.float32), tl.zeros((ROWS, 16), tl.float32)
    ones = tl.full((16, 16), 1.0, tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * stride + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + first + step, mask=first + step < k, other=0.0)[None, :]
        some = first + tl.arange(0, 16)
        part = tl.load(w + row[:, None] * stride + some, mask=(row[:, None] < n) & (some[None, :] < k), other=0.0)
        product = tl.dot(part, ones, product, input_precision="ieee")
    tl.store(out + row, tl.sum(total, 1), mask=row < n)
    tl.store(last + row, tl.sum(product, 1), mask=row < n)


CHANGES = {
    by_counter: True,
    by_pointers: True,
    two_sums: True,
    counted: False,
    backwards: False,
    stored: False,
    with_product: False,
}


def launched(
    profile: str, kernel: Any, grid: int, arguments: list[Any], constants: dict[str, int], *without: str
) -> bytes:
    """Runs a kernel that is compiled ``without`` something; its SPIR-V."""
    found = compiled(profile, kernel, arguments, constants, without=without)
    code = make(found.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
    launch(code.code, code.scratch, found.metadata.name, block_of(arguments), (grid,))
    return bytes(found.asm["spv"])


@pytest.mark.parametrize("kernel", CHANGES, ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize(
    ("n", "k", "rows", "block"), [(37, 131, 16, 64), (16, 0, 16, 64), (5, 64, 4, 256), (70, 999, 32, 32)]
)
def test_sums_of_rows(profile: str, kernel: Any, n: int, k: int, rows: int, block: int) -> None:
    random, stride = np.random.default_rng(k), k + 3
    w, x = random.standard_normal((n + 1, stride)).astype(np.float32), random.standard_normal(k + 1).astype(np.float32)
    w[:, k:], w[n:], x[k:] = np.nan, np.nan, np.nan
    results, modules = [], []
    for without in ((), (REWRITE,)):
        out, last = (np.full(n + 200, GUARD, np.float32) for _ in range(2))
        arguments, constants = [w, x, out, last, n, k, stride], {"ROWS": rows, "K": block}
        modules.append(launched(profile, kernel, -(-n // rows), arguments, constants, *without))
        results.append((out, last))
    wide = w[:n, :k].astype(float)
    bound = np.abs(wide) @ np.abs(x[:k]) * (k + 1) * np.finfo(np.float32).eps
    assert (np.abs(results[0][0][:n] - wide @ x[:k].astype(float)) <= bound).all()
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert (ours[n:] == GUARD).all() or kernel is stored
    if rows >= 16:  # else strips are of columns
        assert (modules[0] != modules[1]) == CHANGES[kernel]
