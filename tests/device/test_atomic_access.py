"""tl.atomic_load, tl.atomic_store and tl.atomic_poll."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import assert_same, inputs, to_numpy, to_torch


@triton.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.atomic_load(x_ptr + offsets, mask=offsets < size, sem="acquire")
    tl.atomic_store(out_ptr + offsets, value, mask=offsets < size, sem="release")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("block", [4, 256])
def test_copy(dtype: str, block: int) -> None:
    x = inputs(dtype, block)
    out = to_torch(np.zeros_like(x))
    size = block - 1
    copy_kernel[(1,)](to_torch(x), out, size, BLOCK=block)
    expected = x.copy()
    expected[size:] = 0
    assert_same(to_numpy(out), expected)


@triton.jit
def shared_value_kernel(x_ptr, out_ptr):
    value = tl.atomic_load(x_ptr)
    offsets = tl.arange(0, 128)
    tl.store(out_ptr + offsets, offsets + value)


def test_every_invocation_gets_a_scalar() -> None:
    out = torch.zeros(128, dtype=torch.int32)
    shared_value_kernel[(1,)](torch.tensor([7], dtype=torch.int32), out)
    assert out.tolist() == list(range(7, 135))


@triton.jit
def poll_once_kernel(x_ptr, out_ptr, expected):
    offsets = tl.arange(0, 64)
    found = tl.atomic_poll(x_ptr + offsets, tl.zeros((64,), tl.int32) + expected, timeout_ns=0)
    tl.store(out_ptr + offsets, found.to(tl.int32))


@pytest.mark.parametrize("num_warps", [1, 4, 8, 16])  # at the last, several invocations hold each element
def test_poll_once(num_warps: int) -> None:
    x = torch.arange(64, dtype=torch.int32) % 3
    out = torch.full((64,), -1, dtype=torch.int32)
    poll_once_kernel[(1,)](x, out, 2, num_warps=num_warps)
    assert out.tolist() == [int(value == 2) for value in x.tolist()]


@triton.jit
def poll_kernel(x_ptr, out_ptr, expected):
    offsets = tl.arange(0, 64)
    found = tl.atomic_poll(x_ptr + offsets, tl.zeros((64,), tl.int32) + expected)
    tl.store(out_ptr + offsets, found.to(tl.int32))
    tl.store(out_ptr + 64, tl.atomic_poll(x_ptr, expected).to(tl.int32))


@pytest.mark.parametrize("num_warps", [1, 4, 8, 16])
def test_poll_result_reaches_all_that_hold_an_element(num_warps: int) -> None:
    out = torch.full((66,), -1, dtype=torch.int32)
    poll_kernel[(1,)](torch.full((64,), 5, dtype=torch.int32), out, 5, num_warps=num_warps)
    assert out.tolist() == [1] * 65 + [-1]


@triton.jit
def turns_kernel(turn_ptr, order_ptr):
    program = tl.program_id(0)
    tl.atomic_poll(turn_ptr, program, sem="acquire")
    position = tl.load(order_ptr + 64, volatile=True)
    tl.store(order_ptr + position, program)
    tl.store(order_ptr + 64, position + 1)
    tl.atomic_store(turn_ptr, program + 1, sem="release")


def test_poll_waits_for_its_turn() -> None:
    turn, order = torch.zeros(1, dtype=torch.int32), torch.zeros(65, dtype=torch.int32)
    turns_kernel[(8,)](turn, order)
    assert turn.item() == 8
    assert order[:8].tolist() == list(range(8)) and order[64].item() == 8


@triton.jit
def timeout_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.atomic_poll(x_ptr, 1, timeout_ns=1000).to(tl.int32))


def test_timeout_is_refused() -> None:
    with pytest.raises(Exception, match=r"test_atomic_access\.py:\d+.*tt\.atomic_poll.*clock.*timeout_ns=0"):
        timeout_kernel[(1,)](torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))
