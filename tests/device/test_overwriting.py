"""A load sees what was there before the stores that follow it, in whichever order invocations come by."""

from __future__ import annotations

import inspect

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def counting_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.store(count_ptr, count + 1)
    tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32) + count)


@triton.jit
def branching_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.store(count_ptr, count + 1)
    if count == 0:
        tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32))


@triton.jit
def adding_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.atomic_add(count_ptr, 1, sem="relaxed")
    tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32) + count)


@pytest.mark.parametrize("kernel", [counting_kernel, branching_kernel, adding_kernel])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_a_number_that_all_invocations_hold(kernel, num_warps):
    count, out = torch.zeros(1, dtype=torch.int32), torch.full((256,), -1, dtype=torch.int32)
    kernel[(1,)](count, out, SIZE=256, num_warps=num_warps)
    assert count.item() == 1 and (out == 0).all()


@triton.jit
def rows_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + at, x + 1)
    tl.store(out_ptr + at[:, None] * SIZE + at[None, :], x[:, None] + tl.zeros((SIZE, SIZE), tl.int32))


def test_elements_that_several_invocations_hold():
    x, out = torch.arange(32, dtype=torch.int32), torch.full((32, 32), -1, dtype=torch.int32)
    rows_kernel[(1,)](x, out, SIZE=32, num_warps=8)
    assert (x == torch.arange(1, 33)).all()
    assert (out == torch.arange(32)[:, None]).all()


@triton.jit
def shifting_kernel(x_ptr, rounds, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    for _ in range(rounds):
        x = tl.load(x_ptr + at)
        tl.store(x_ptr + at + 1, x)
        tl.debug_barrier()


def test_elements_that_move():
    x = torch.arange(33, dtype=torch.int32)
    shifting_kernel[(1,)](x, 3, SIZE=32, num_warps=4)
    assert x.tolist() == [0, 0, 0, *range(30)]


@triton.jit
def in_place_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at, mask=at < SIZE - 1, other=0)
    tl.store(x_ptr + at, x * tl.load(y_ptr + at) + 1, mask=at < SIZE - 1)


def test_what_each_invocation_reads_and_writes_alone_waits_for_nobody():
    x, y = torch.arange(64, dtype=torch.int32), torch.full((64,), 2, dtype=torch.int32)
    for num_warps in (1, 16):
        kernel = in_place_kernel[(1,)](x, y, SIZE=64, num_warps=num_warps)
        assert "OpControlBarrier" not in kernel.asm["spvasm"], inspect.getsource(in_place_kernel.fn)
    assert x.tolist() == [*(4 * value + 3 for value in range(63)), 63]
