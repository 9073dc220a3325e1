"""Products of matrices."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch.nn import functional

from benchmarks.cpu.users.rows import Data, Row


@triton.jit
def matmul(a, b, c, m, n, k, RELU: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    step = tl.arange(0, K)
    total = tl.zeros((M, N), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for first in range(0, k, K):
        left = tl.load(
            a + row[:, None] * k + (first + step)[None, :],
            mask=(row[:, None] < m) & ((first + step)[None, :] < k),
            other=0,
        )
        right = tl.load(
            b + (first + step)[:, None] * n + column[None, :],
            mask=((first + step)[:, None] < k) & (column[None, :] < n),
            other=0,
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    if RELU:
        total = tl.maximum(total, 0.0)
    mask = (row[:, None] < m) & (column[None, :] < n)
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def gemv(w, x, out, n, k, ROWS: tl.constexpr, K: tl.constexpr):
    row, step = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, K)
    total = tl.zeros((ROWS, K), tl.float32)
    for first in range(0, k, K):
        mask = (row[:, None] < n) & ((first + step)[None, :] < k)
        left = tl.load(w + row[:, None] * k + (first + step)[None, :], mask=mask, other=0.0).to(tl.float32)
        total += left * tl.load(x + first + step, mask=first + step < k, other=0.0).to(tl.float32)[None, :]
    tl.store(out + row, tl.sum(total, 1).to(out.dtype.element_ty), mask=row < n)


@triton.jit
def convolution(x, w, out, height, width, channels, filters, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """3×3 of NHWC without edges, as an implicit product; the weights are 9·channels × filters."""
    pixel, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    wide = width - 2
    y, z = pixel // wide, pixel % wide
    inside = pixel < (height - 2) * wide
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, 9 * channels, K):
        step = first + tl.arange(0, K)
        tap, channel = step // channels, step % channels
        place = ((y[:, None] + (tap // 3)[None, :]) * width + z[:, None] + (tap % 3)[None, :]) * channels
        left = tl.load(x + place + channel[None, :], mask=inside[:, None], other=0.0)
        right = tl.load(w + step[:, None] * filters + column[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(out + pixel[:, None] * filters + column[None, :], total, mask=inside[:, None])


def rows(data: Data) -> Iterator[Row]:
    """The family's rows."""
    n = 512
    a, b, c = data.normal(n, n), data.normal(n, n), torch.zeros(n, n)
    tiles = {"M": 64, "N": 64, "K": 32}
    exact = a.double() @ b.double()

    def relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).relu()

    yield Row(
        "matmul 512³",
        lambda: matmul[(8, 8)](a, b, c, n, n, n, RELU=False, **tiles),
        c,
        exact,
        data.sides(torch.matmul, a, b),
        1e-2,
    )
    yield Row(
        "matmul 512³ and ReLU",
        lambda: matmul[(8, 8)](a, b, c, n, n, n, RELU=True, **tiles),
        c,
        exact.relu(),
        data.sides(relu, a, b),
        1e-2,
    )
    odd, small, result = data.normal(300, 77), data.normal(77, 130), torch.zeros(300, 130)
    yield Row(
        "matmul 300×130×77",
        lambda: matmul[(10, 5)](odd, small, result, 300, 130, 77, RELU=False, M=32, N=32, K=32),
        result,
        odd.double() @ small.double(),
        data.sides(torch.matmul, odd, small),
        1e-3,
    )
    half = [value.bfloat16() for value in (a, b)]
    halves = torch.zeros(n, n, dtype=torch.bfloat16)
    yield Row(
        "matmul 512³ of bf16",
        lambda: matmul[(8, 8)](*half, halves, n, n, n, RELU=False, **tiles),
        halves,
        half[0].double() @ half[1].double(),
        data.sides(torch.matmul, *half),
        1.0,
    )
    codes = [(data.integers(255, n, n) - 127).to(torch.int8) for _ in range(2)]
    counts = torch.zeros(n, n, dtype=torch.int32)
    yield Row(
        "matmul 512³ of int8",
        lambda: matmul[(8, 8)](*codes, counts, n, n, n, RELU=False, **tiles),
        counts,
        codes[0].double() @ codes[1].double(),
        data.sides(torch._int_mm, *codes),
        0,
    )
    k, wide = 1024, 2752
    w, x = data.normal(wide, k), data.normal(1, k)
    for name, dtype, error in (("", torch.float32, 1e-3), (" of bf16", torch.bfloat16, 1.0)):
        weights, one, out = w.to(dtype), x.to(dtype), torch.zeros(1, wide, dtype=dtype)
        yield Row(
            f"GEMV 2752×1024{name}",
            lambda weights=weights, one=one, out=out: gemv[(172,)](  # type: ignore[misc]
                weights, one, out, wide, k, ROWS=16, K=64
            ),
            out,
            one.double() @ weights.double().t(),
            data.sides(functional.linear, one, weights),
            error,
        )
        turned = weights.t().contiguous()
        yield Row(
            f"one row by tl.dot 1024×2752{name}",
            lambda turned=turned, one=one, out=out: matmul[(1, 43)](  # type: ignore[misc]
                one, turned, out, 1, wide, k, RELU=False, M=16, N=64, K=32
            ),
            out,
            one.double() @ weights.double().t(),
            data.sides(torch.matmul, one, turned),
            error,
        )
    size, channels, filters = 30, 64, 64
    image, taps = data.normal(size, size, channels), data.normal(9 * channels, filters)
    convolved = torch.zeros(28, 28, filters)
    planes = image.permute(2, 0, 1)[None]
    kernel = taps.reshape(3, 3, channels, filters).permute(3, 2, 0, 1).contiguous()
    yield Row(
        "convolution 3×3, 28×28×64",
        lambda: convolution[(25, 1)](image, taps, convolved, size, size, channels, filters, M=32, N=64, K=32),
        convolved,
        functional.conv2d(planes.double(), kernel.double())[0].permute(1, 2, 0),
        data.sides(functional.conv2d, planes, kernel),
        1e-2,
    )
