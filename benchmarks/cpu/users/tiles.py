"""Tiles of two dimensions with their neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.kernels import transpose
from benchmarks.cpu.users.rows import Data, Row, numba


@triton.jit
def stencil(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    place = row * n + column
    inner = (row > 0) & (row < m - 1) & (column > 0) & (column < n - 1)
    value = tl.load(x + place, mask=inner, other=0.0) * -4.0
    value += tl.load(x + place - 1, mask=inner, other=0.0) + tl.load(x + place + 1, mask=inner, other=0.0)
    value += tl.load(x + place - n, mask=inner, other=0.0) + tl.load(x + place + n, mask=inner, other=0.0)
    tl.store(out + place, value, mask=inner)


@triton.jit
def bias_gelu(x, bias, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row[:, None] < m) & (column[None, :] < n)
    place = row[:, None] * n + column[None, :]
    value = tl.load(x + place, mask=mask) + tl.load(bias + column, mask=column < n)[None, :]
    tl.store(out + place, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=mask)


@triton.jit
def pool(x, out, n, BLOCK: tl.constexpr):
    """The largest of 2×2; a program has a row of the result."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    half = n // 2
    first = x + 2 * row * n + 2 * at
    top = tl.maximum(tl.load(first, mask=at < half), tl.load(first + 1, mask=at < half))
    low = tl.maximum(tl.load(first + n, mask=at < half), tl.load(first + n + 1, mask=at < half))
    tl.store(out + row * half + at, tl.maximum(top, low), mask=at < half)


def _stencil(x, out):  # type: ignore[no-untyped-def]
    for row in range(1, x.shape[0] - 1):
        for column in range(1, x.shape[1] - 1):
            out[row, column] = (
                x[row, column - 1] + x[row, column + 1] + x[row - 1, column] + x[row + 1, column] - 4 * x[row, column]
            )


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    n = 1024
    x, out = data.normal(n, n), torch.zeros(n, n)
    kernel = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])

    def by_slices(x: torch.Tensor) -> torch.Tensor:
        return x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] - 4 * x[1:-1, 1:-1]

    expected = torch.zeros(n, n).double()
    expected[1:-1, 1:-1] = by_slices(x.double())
    others = data.sides(by_slices, x, numba=numba(_stencil, x, torch.zeros(n, n)))
    others["convolution"] = lambda: functional.conv2d(x[None, None], kernel[None, None])
    for r, c in ((16, 64), (1, 1024), (32, 32)):
        yield Row(
            f"stencil, tiles of {r}×{c}",
            lambda r=r, c=c: stencil[(n // r, n // c)](x, out, n, n, ROWS=r, COLUMNS=c),  # type: ignore[misc]
            out,
            expected,
            others,
        )
    wide, turned = data.normal(500, 1000), torch.zeros(1000, 500)
    yield Row(
        "transpose 500×1000",
        lambda: transpose[(16, 32)](wide, turned, 500, 1000, TILE=32),
        turned,
        wide.t(),
        data.sides(lambda wide: wide.t().contiguous(), wide),
    )
    bias = data.normal(n)

    def biased(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.gelu(x + bias)

    yield Row(
        "bias and GELU, tiles of 16×64",
        lambda: bias_gelu[(n // 16, n // 64)](x, bias, out, n, n, ROWS=16, COLUMNS=64),
        out,
        biased(x.double(), bias.double()),
        data.sides(biased, x, bias),
    )
    pooled = torch.zeros(n // 2, n // 2)
    yield Row(
        "pooling 2×2",
        lambda: pool[(n // 2,)](x, pooled, n, BLOCK=n // 2),
        pooled,
        functional.max_pool2d(x[None], 2)[0],
        data.sides(lambda x: functional.max_pool2d(x[None], 2), x),
    )
