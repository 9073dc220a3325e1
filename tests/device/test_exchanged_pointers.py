"""Pointers that programs exchange between lanes: gathered, scanned and reduced."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import OutOfBounds


def numbers(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(-50, 50, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@triton.jit
def gathered(x_ptr, out_ptr, index_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(tl.gather(x_ptr + i, tl.load(index_ptr + i), 0)))


@pytest.mark.parametrize(("block", "warps"), [(16, 1), (128, 4), (1024, 4)])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.int64])
def test_pointers_that_are_gathered(dtype: torch.dtype, block: int, warps: int) -> None:
    x = numbers(dtype, block + 1)[1:]
    index = torch.randperm(block, generator=torch.Generator().manual_seed(1)).int()
    out = torch.zeros(block, dtype=dtype)
    gathered[(1,)](x, out, index, BLOCK=block, num_warps=warps)
    assert torch.equal(out, x[index.long()])


@triton.jit
def columns(x_ptr, out_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    tl.store(tl.gather(out_ptr + at, tl.load(index_ptr + at), AXIS), tl.load(x_ptr + at))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_store_through_pointers_that_are_gathered(axis: int) -> None:
    m, n = 32, 16
    x = numbers(torch.float32, m, n)
    extent = (m, n)[axis]
    order = torch.randperm(extent, generator=torch.Generator().manual_seed(2))
    index = (order[:, None] if axis == 0 else order[None, :]).expand(m, n).contiguous().int()
    out = torch.zeros(m, n)
    columns[(1,)](x, out, index, M=m, N=n, AXIS=axis)
    assert torch.equal(out, x.index_select(axis, order.argsort()))


@triton.jit
def last_wanted(a, a_wanted, b, b_wanted):
    return tl.where(b_wanted, b, a), a_wanted | b_wanted


@triton.jit
def scanned(x_ptr, y_ptr, out_ptr, wanted_ptr, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    wanted = tl.load(wanted_ptr + i) != 0
    pointers = tl.where(i % 2 == 0, x_ptr + i, y_ptr + i)
    last, _ = tl.associative_scan((pointers, wanted), 0, last_wanted, reverse=REVERSE)
    tl.store(out_ptr + i, tl.load(last))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("block", "warps"), [(8, 1), (256, 4), (1024, 2)])
def test_pointers_that_are_scanned(block: int, warps: int, reverse: bool) -> None:
    """The place of the last number that is wanted, of two tensors in turn."""
    x, y = (numbers(torch.float32, block, seed=seed) for seed in (0, 1))
    wanted = torch.rand(block, generator=torch.Generator().manual_seed(3)) < 0.3
    wanted[-1 if reverse else 0] = True
    out = torch.zeros(block)
    scanned[(1,)](x, y, out, wanted.to(torch.int8), BLOCK=block, REVERSE=reverse, num_warps=warps)
    order = np.arange(block)[::-1] if reverse else np.arange(block)
    steps = np.where(wanted.numpy()[order], np.arange(block), 0)
    last = order[np.maximum.accumulate(steps)][order]
    assert np.array_equal(out.numpy(), np.where(last % 2 == 0, x.numpy()[last], y.numpy()[last]))


@triton.jit
def larger(a, a_value, b, b_value):
    return tl.where(a_value > b_value, a, b), tl.maximum(a_value, b_value)


@triton.jit
def reduced(x_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    pointers, _ = tl.reduce((x_ptr + at, tl.load(x_ptr + at)), 1, larger)
    tl.store(pointers, -1.0)


def test_pointers_that_are_reduced() -> None:
    """Each row's largest number becomes -1."""
    m, n = 16, 128
    x = torch.rand(m, n, generator=torch.Generator().manual_seed(4))
    wanted = x.clone()
    wanted[torch.arange(m), x.argmax(1)] = -1
    reduced[(1,)](x, M=m, N=n)
    assert torch.equal(x, wanted)


@triton.jit
def past_the_end(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(tl.gather(x_ptr + i, BLOCK - 1 - i, 0)))


def test_accesses_through_gathered_pointers_are_checked() -> None:
    x, out = torch.ones(60), torch.zeros(64)
    with pytest.raises(OutOfBounds, match="x_ptr"):
        past_the_end[(1,)](x, out, BLOCK=64, check_bounds=True)
