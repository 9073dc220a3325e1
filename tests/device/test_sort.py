"""tl.sort, tl.topk, tl.flip and tl.bitonic_merge against torch."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

WARPS = (1, 4)


@triton.jit
def sort_rows(
    x_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DESCENDING: tl.constexpr, OP: tl.constexpr
):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * n + columns, mask=columns < n, other=float("inf"))
    if OP == "sort":
        y = tl.sort(x, 1, descending=DESCENDING)
    elif OP == "topk":
        y = tl.topk(x, K, 1)
    elif OP == "flip":
        y = tl.flip(x, 1)
    else:
        y = tl.bitonic_merge(x, 1, descending=DESCENDING)
    tl.store(y_ptr + rows * K + tl.arange(0, K)[None, :], y)


def draw(rows: int, columns: int, dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rows * columns)
    type_ = getattr(torch, dtype)
    return (
        torch.randn(rows, columns, generator=generator).to(type_)
        if type_.is_floating_point
        else torch.randint(-100, 100, (rows, columns), generator=generator).to(type_)
    )


def run(x: torch.Tensor, op: str, warps: int, descending: bool = False, k: int | None = None) -> torch.Tensor:
    rows, n = x.shape
    columns = triton.next_power_of_2(n)
    y = torch.full((rows * (k or columns) + 2,), 77).to(x.dtype)
    sort_rows[(1,)](x, y[1:], n, M=rows, N=columns, K=k or columns, DESCENDING=descending, OP=op, num_warps=warps)
    assert y[0] == 77 and y[-1] == 77, "a neighbour was written"
    return y[1:-1].view(rows, -1)


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(1, 2), (1, 64), (8, 16), (1, 256)])
def test_sort(shape: tuple[int, int], descending: bool, warps: int) -> None:
    x = draw(*shape, "float32")
    assert torch.equal(run(x, "sort", warps, descending), x.sort(1, descending=descending).values)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"])
def test_types(dtype: str) -> None:
    x = draw(2, 32, dtype)
    assert torch.equal(run(x, "sort", 2), x.sort(1).values)


def test_a_row_that_is_no_power_of_two() -> None:
    x = draw(3, 100, "float32")[:2]
    assert torch.equal(run(x, "sort", 4)[:, :100], x.sort(1).values)


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("k", [1, 4, 16])
def test_topk(k: int, warps: int) -> None:
    x = draw(4, 64, "float32")
    assert torch.equal(run(x, "topk", warps, k=k), x.topk(k, dim=1).values)


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 2), (4, 64), (2, 256)])
def test_flip(shape: tuple[int, int], warps: int) -> None:
    x = draw(*shape, "int32")
    rows, columns = shape
    y = torch.zeros_like(x)
    flip_integers[(1,)](x, y, M=rows, N=columns, num_warps=warps)
    assert torch.equal(y, x.flip(1))


@triton.jit
def flip_integers(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + offsets, tl.flip(tl.load(x_ptr + offsets), 1))


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("descending", [False, True])
def test_bitonic_merge(descending: bool, warps: int) -> None:
    up, down = draw(2, 32, "float32").sort(1).values, draw(2, 32, "float32").sort(1, descending=True).values
    x = torch.cat((up, down), 1).contiguous()
    assert torch.equal(run(x, "merge", warps, descending), x.sort(1, descending=descending).values)
