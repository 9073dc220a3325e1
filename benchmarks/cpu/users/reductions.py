"""Sums, means and norms along rows and columns."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.kernels import largest
from benchmarks.cpu.users.rows import Data, Row


@triton.jit
def layer_norm(x, weight, bias, out, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + row * n + at, mask=mask, other=0.0)
    mean = tl.sum(value, 0) / n
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * n + at, result, mask=mask)


@triton.jit
def rms_norm(x, weight, out, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(out + row * n + at, value * scale * tl.load(weight + at, mask=at < n), mask=at < n)


@triton.jit
def sum_rows(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, n, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        mask = (row[:, None] < m) & (column[None, :] < n)
        total += tl.load(x + row[:, None] * n + column[None, :], mask=mask, other=0.0)
    tl.store(out + row, tl.sum(total, 1), mask=row < m)


@triton.jit
def sum_columns(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, m, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row[:, None] < m) & (column[None, :] < n)
        total += tl.load(x + row[:, None] * n + column[None, :], mask=mask, other=0.0)
    tl.store(out + column, tl.sum(total, 0), mask=column < n)


@triton.jit
def loss(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gap = tl.load(x + at, mask=at < n, other=0.0) - tl.load(y + at, mask=at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(gap * gap, 0))


@triton.jit
def batch_norm(x, out, batch, channels, pixels, eps, BLOCK: tl.constexpr):
    """Of NCHW; a program has a channel."""
    channel, at = tl.program_id(0), tl.arange(0, BLOCK)
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for image in range(batch):
        value = tl.load(x + (image * channels + channel) * pixels + at, mask=at < pixels, other=0.0)
        total += value
        squares += value * value
    mean = tl.sum(total, 0) / (batch * pixels)
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / (batch * pixels) - mean * mean + eps)
    for image in range(batch):
        place = (image * channels + channel) * pixels + at
        tl.store(out + place, (tl.load(x + place, mask=at < pixels) - mean) * scale, mask=at < pixels)


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    m, n = 512, 1000
    x, weight, bias, out = data.normal(m, n), data.normal(n), data.normal(n), torch.zeros(m, n)
    yield Row(
        "layer norm 512×1000",
        lambda: layer_norm[(m,)](x, weight, bias, out, n, 1e-5, BLOCK=1024),
        out,
        functional.layer_norm(x.double(), [n], weight.double(), bias.double()),
        data.sides(functional.layer_norm, x, [n], weight, bias),
    )
    yield Row(
        "RMS norm 512×1000",
        lambda: rms_norm[(m,)](x, weight, out, n, 1e-5, BLOCK=1024),
        out,
        functional.rms_norm(x.double(), [n], weight.double(), 1e-5),
        data.sides(functional.rms_norm, x, [n], weight, 1e-5),
    )
    big, sums, totals = data.normal(1000, 2000), torch.zeros(1000), torch.zeros(2000)
    yield Row(
        "sum of rows in a loop of 16×64",
        lambda: sum_rows[(63,)](big, sums, 1000, 2000, ROWS=16, COLUMNS=64),
        sums,
        big.double().sum(1),
        data.sides(torch.sum, big, 1),
        1e-3,
    )
    yield Row(
        "sum of columns in a loop of 32×64",
        lambda: sum_columns[(32,)](big, totals, 1000, 2000, ROWS=32, COLUMNS=64),
        totals,
        big.double().sum(0),
        data.sides(torch.sum, big, 0),
        1e-3,
    )
    places = torch.zeros(m, dtype=torch.int32)
    yield Row(
        "argmax 512×1000",
        lambda: largest[(m,)](x, places, n, BLOCK=1024),
        places,
        x.argmax(1),
        data.sides(torch.argmax, x, 1),
        0,
    )
    a, b, parts = data.normal(1 << 20), data.normal(1 << 20), torch.zeros(256)

    def squares(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a - b).square().reshape(256, 4096).sum(1)

    yield Row(
        "sum of squares by blocks",
        lambda: loss[(256,)](a, b, parts, 1 << 20, BLOCK=4096),
        parts,
        squares(a.double(), b.double()),
        data.sides(squares, a, b),
        1e-2,
    )
    images, normal = data.normal(8, 64, 28, 28), torch.zeros(8, 64, 28, 28)
    yield Row(
        "batch norm 8×64×28×28",
        lambda: batch_norm[(64,)](images, normal, 8, 64, 784, 1e-5, BLOCK=1024),
        normal,
        functional.batch_norm(images.double(), None, None, training=True),
        data.sides(lambda images: functional.batch_norm(images, None, None, training=True), images),
        1e-3,
    )
