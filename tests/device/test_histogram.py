"""tl.histogram against NumPy."""

from __future__ import annotations

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


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("bins", [1, 2, 16, 256])
@pytest.mark.parametrize("size", [1, 32, 1024])
def test_counts(size: int, bins: int, warps: int) -> None:
    x = torch.randint(0, bins, (size,), generator=torch.Generator().manual_seed(size + bins), dtype=torch.int32)
    y = torch.full((bins + 2,), -7, dtype=torch.int32)
    histogram[(1,)](x, y[1:], size, N=size, BINS=bins, MASKED=False, num_warps=warps)
    assert y[0] == -7 and y[-1] == -7, "a neighbour was written"
    assert np.array_equal(y[1:-1].numpy(), np.bincount(x.numpy(), minlength=bins))


@pytest.mark.parametrize("warps", [1, 4])
def test_masked_elements_are_not_counted(warps: int) -> None:
    x = torch.randint(0, 8, (777,), generator=torch.Generator().manual_seed(1), dtype=torch.int32)
    y = torch.zeros(8, dtype=torch.int32)
    histogram[(1,)](x, y, 777, N=1024, BINS=8, MASKED=True, num_warps=warps)
    values = x.numpy()
    assert np.array_equal(y.numpy(), np.bincount(values[values != 3], minlength=8))


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


def test_values_without_a_bin_are_not_counted() -> None:
    x = torch.tensor([-1, 0, 1, 7, 8, 2**31 - 1, -(2**31), 3], dtype=torch.int32)
    y = torch.zeros(8, dtype=torch.int32)
    histogram[(1,)](x, y, 8, N=8, BINS=8, MASKED=False)
    assert y.tolist() == [1, 1, 0, 1, 0, 0, 0, 1]


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
