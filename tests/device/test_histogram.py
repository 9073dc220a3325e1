"""tl.histogram against NumPy."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def histogram(x_ptr, y_ptr, n, N: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    if MASKED:
        counts = tl.histogram(x, BINS, mask=(offsets < n) & (x != 3))
    else:
        counts = tl.histogram(x, BINS)
    tl.store(y_ptr + tl.arange(0, BINS), counts)


@pytest.mark.parametrize(("size", "masked"), [(5000, False), (8192, True)])
def test_lanes_count_many_elements(size: int, masked: bool) -> None:
    """In a loop over registers."""
    x = torch.randint(-3, 70, (size,), generator=torch.Generator().manual_seed(size), dtype=torch.int32)
    y = torch.full((66,), -7, dtype=torch.int32)
    histogram[(1,)](x, y[1:], size, N=8192, BINS=64, MASKED=masked, num_warps=1)
    counted = x.numpy()[(x >= 0) & (x < 64) & ((x != 3) | (not masked))]
    expected = np.bincount(counted, minlength=64)
    expected[0] += 0 if masked else 8192 - size
    assert y[0] == -7 and y[-1] == -7, "a neighbour was written"
    assert np.array_equal(y[1:-1].numpy(), expected)


@triton.jit
def histogram_of_blocks(x_ptr, y_ptr, n, N: tl.constexpr, BINS: tl.constexpr):
    total = tl.zeros((BINS,), tl.int32)
    for start in range(0, n, N):
        offsets = start + tl.arange(0, N)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
        total += tl.histogram(x, BINS, mask=offsets < n)
    tl.store(y_ptr + tl.arange(0, BINS), total)


def test_blocks_in_a_loop() -> None:
    x = torch.randint(0, 32, (1003,), generator=torch.Generator().manual_seed(2), dtype=torch.int32)
    y = torch.zeros(32, dtype=torch.int32)
    histogram_of_blocks[(1,)](x, y, 1003, N=64, BINS=32)
    assert np.array_equal(y.numpy(), np.bincount(x.numpy(), minlength=32))
