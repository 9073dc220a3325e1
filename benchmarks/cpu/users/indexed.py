"""Places that indices say, and numbers of four bits."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.kernels import embedding, gather
from benchmarks.cpu.users.rows import Data, Row, numba


@triton.jit
def sparse_rows(starts, columns, values, x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(first, last, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        column = tl.load(columns + at, mask=at < last, other=0)
        total += tl.load(values + at, mask=at < last, other=0.0) * tl.load(x + column, mask=at < last, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def gemv_int4(packed, scales, x, out, k, GROUP: tl.constexpr, ROWS: tl.constexpr):
    """Two weights in a byte, and a scale for each group of weights."""
    row, half = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, GROUP // 2)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(0, k, GROUP):
        two = tl.load(packed + row[:, None] * (k // 2) + first // 2 + half[None, :])
        low, high = (two & 15).to(tl.float32) - 8, (two >> 4).to(tl.float32) - 8
        even, odd = tl.load(x + first + 2 * half), tl.load(x + first + 2 * half + 1)
        scale = tl.load(scales + row * (k // GROUP) + first // GROUP)
        total += scale * tl.sum(low * even[None, :] + high * odd[None, :], 1)
    tl.store(out + row, total)


@triton.jit
def unpack_int4(packed, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    two = tl.load(packed + at, mask=at < n, other=0)
    both = tl.join((two & 15).to(tl.float32) - 8, (two >> 4).to(tl.float32) - 8)
    place = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out + place, tl.reshape(both, (2 * BLOCK,)), mask=place < 2 * n)


@triton.jit
def cache_write(keys, slots, cache, width, BLOCK: tl.constexpr):
    token, at = tl.program_id(0), tl.arange(0, BLOCK)
    slot = tl.load(slots + token)
    tl.store(cache + slot * width + at, tl.load(keys + token * width + at, mask=at < width), mask=at < width)


def _sparse(starts, columns, values, x, out):  # type: ignore[no-untyped-def]
    for row in range(out.size):
        total = values[0] * 0
        for at in range(starts[row], starts[row + 1]):
            total += values[at] * x[columns[at]]
        out[row] = total


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    n = 1 << 18
    x, index, out = data.normal(1 << 16), data.integers(1 << 16, n), torch.zeros(n)
    yield Row(
        "gather of elements",
        lambda: gather[(n // 1024,)](x, index, out, n, BLOCK=1024),
        out,
        x[index],
        data.sides(lambda: x[index]),
    )
    table, words, found = data.normal(10000, 384), data.integers(10000, 1024), torch.zeros(1024, 384)
    yield Row(
        "embedding 1024×384",
        lambda: embedding[(1024,)](table, words, found, 384, BLOCK=512),
        found,
        table[words],
        data.sides(functional.embedding, words, table),
    )
    m = 4096
    dense = torch.where(torch.from_numpy(data.random.random((m, m))) < 0.01, data.normal(m, m), torch.zeros(()))
    sparse = dense.to_sparse_csr()
    starts, columns = sparse.crow_indices().int(), sparse.col_indices().int()
    values, vector, product = sparse.values(), data.normal(m), torch.zeros(m)
    yield Row(
        "sparse rows 4096×4096, 1%",
        lambda: sparse_rows[(m,)](starts, columns, values, vector, product, BLOCK=64),
        product,
        dense.double() @ vector.double(),
        data.sides(lambda: sparse @ vector, numba=numba(_sparse, starts, columns, values, vector, torch.zeros(m))),
        1e-3,
    )
    k, group = 1024, 64
    packed, scales = data.integers(256, k, k // 2, dtype=torch.uint8), data.normal(k, k // group)
    result, one = torch.zeros(k), data.normal(k)

    def weights(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        both = torch.stack([packed & 15, packed >> 4], -1).reshape(k, k // group, group)
        return ((both.to(scales.dtype) - 8) * scales[:, :, None]).reshape(k, k)

    full = weights(packed, scales)
    yield Row(
        "GEMV of int4 1024×1024",
        lambda: gemv_int4[(k // 16,)](packed, scales, one, result, k, GROUP=group, ROWS=16),
        result,
        weights(packed, scales.double()) @ one.double(),
        data.sides(lambda packed, scales, one: weights(packed, scales) @ one, packed, scales, one)
        | {"torch, of fp32 weights": lambda: full @ one},
        1e-3,
    )
    bytes_, unpacked = data.integers(256, n, dtype=torch.uint8), torch.zeros(2 * n)

    def apart(packed: torch.Tensor) -> torch.Tensor:
        return torch.stack([packed & 15, packed >> 4], -1).reshape(-1).float() - 8

    yield Row(
        "int4 to fp32",
        lambda: unpack_int4[(n // 1024,)](bytes_, unpacked, n, BLOCK=1024),
        unpacked,
        apart(bytes_),
        data.sides(apart, bytes_),
    )
    keys, slots, cache = data.normal(512, 512), torch.randperm(2048)[:512], torch.zeros(2048, 512)
    expected = torch.zeros(2048, 512).index_copy(0, slots, keys)
    yield Row(
        "keys into a cache",
        lambda: cache_write[(512,)](keys, slots, cache, 512, BLOCK=512),
        cache,
        expected,
        data.sides(lambda: cache.index_copy_(0, slots, keys)),
    )
