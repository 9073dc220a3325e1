"""Shapes: reshape, cat, join, split, interleave, permute, trans, broadcast."""

import inspect

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import device_capabilities

WARPS = (1, 2, 4, 8)
#: Triton 3.10 takes can_reorder away: there is nothing left to test.
until_3_10 = pytest.mark.skipif(
    "can_reorder" not in inspect.signature(tl.reshape).parameters, reason="this Triton has no can_reorder"
)


@triton.jit
def reordered_sum(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(y_ptr, tl.sum(x))
    tl.store(y_ptr + 1, tl.max(tl.reshape(x, (M * N,), can_reorder=True), 0))


@until_3_10
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("shape", [(2, 2), (1, 64), (16, 32), (128, 4)])
def test_reshape_that_may_reorder(shape: tuple[int, int], warps: int) -> None:
    x = torch.randint(-1000, 1000, shape, dtype=torch.int32)
    y = torch.zeros(2, dtype=torch.int32)
    kernel = reordered_sum[(1,)](x, y, M=shape[0], N=shape[1], num_warps=warps)
    assert y.tolist() == [int(x.sum()), int(x.max())]
    if device_capabilities().tile_products:
        assert "allow_reorder" not in kernel.asm["ttgir"]  # loops over rows go on behind it


@triton.jit
def copied_in_any_order(x_ptr, y_ptr, P: tl.constexpr, Q: tl.constexpr):
    at = tl.reshape(tl.arange(0, P * Q), (P, Q), can_reorder=True)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


@until_3_10
@pytest.mark.parametrize("shape", [(16, 16), (4, 64), (2, 512)])
def test_indices_in_any_order_are_no_runs(shape: tuple[int, int]) -> None:
    """Elements that lie next to each other have indices that do not, so that no vectors are loaded and stored."""
    x, y = torch.randn(shape), torch.zeros(shape)
    copied_in_any_order[(1,)](x, y, *shape)
    assert torch.equal(y, x)


@triton.jit
def cat_sorted(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    both = tl.cat(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), can_reorder=True)
    tl.store(z_ptr + tl.arange(0, 2 * N), both)


@until_3_10
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("n", [1, 8, 64])
def test_cat_has_the_elements_of_both(n: int, warps: int) -> None:
    x, y, z = torch.arange(n), torch.arange(n, 2 * n), torch.zeros(2 * n, dtype=torch.int64)
    cat_sorted[(1,)](x, y, z, N=n, num_warps=warps)
    assert torch.equal(z.sort().values, torch.arange(2 * n))


@triton.jit
def of_reshaped(x_ptr, where_ptr, counts_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    flat = tl.reshape(x, [M * N])
    tl.store(where_ptr, tl.argmax(flat, 0))
    tl.store(where_ptr + 1, tl.argmin(tl.ravel(x), 0))
    again = tl.reshape(x & 15, [M * N])
    tl.store(counts_ptr + tl.arange(0, 16), tl.histogram(again, 16, mask=tl.arange(0, M * N) < 100))


@pytest.mark.parametrize("warps", [1, 4])
def test_places_in_a_reshaped_tensor_are_those_of_row_major_order(warps: int) -> None:
    """Upstream lets reshapes reorder whose users are reductions and histograms, of several operands, too."""
    x = np.random.default_rng(0).permutation(512).astype(np.int32).reshape(16, 32)
    where, counts = torch.zeros(2, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    of_reshaped[(1,)](torch.from_numpy(x), where, counts, M=16, N=32, num_warps=warps)
    assert where.tolist() == [x.argmax(), x.argmin()]
    np.testing.assert_array_equal(counts.numpy(), np.bincount(x.ravel()[:100] & 15, minlength=16))


@triton.jit
def constants(x_ptr, y_ptr, DTYPE: tl.constexpr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x + 1e-9)
    tl.store(y_ptr + 16 + i, x * 2**-16)
    tl.store(y_ptr + 32 + i, tl.full((16,), 1.23456e-7, DTYPE))
    tl.store(y_ptr + 48 + i, tl.full((16,), -0.0, DTYPE))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float64"])
def test_python_numbers_become_the_nearest_ones(name: str) -> None:
    dtype = getattr(torch, name)
    x, y = torch.arange(16).to(dtype), torch.zeros((4, 16), dtype=dtype)
    constants[(1,)](x, y, DTYPE=getattr(tl, name))
    small = torch.tensor(1.23456e-7, dtype=torch.float64).to(dtype)
    assert torch.equal(y[0], x + torch.tensor(1e-9, dtype=torch.float64).to(dtype))
    assert torch.equal(y[1], x * 2**-16)
    assert torch.equal(y[2], small.expand(16))
    assert torch.signbit(y[3]).all() and not y[3].any()


@triton.jit
def turned_tile_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(y_ptr + columns[:, None] * M + rows[None, :], tl.trans(x))


@pytest.mark.parametrize(("shape", "num_warps"), [((64, 128), 8), ((128, 64), 8), ((128, 128), 16)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_a_tile_of_more_bytes_than_there_is_shared_memory_is_transposed(shape, num_warps, dtype):
    """It goes through it in rounds. With many warps, and subgroups of 32, warps take turns in storing."""
    rows, columns = shape
    x = torch.arange(rows * columns, dtype=dtype).reshape(shape)
    y = torch.full((columns * rows + 1,), -1, dtype=dtype)
    compiled = turned_tile_kernel[(1,)](x, y, rows, columns, num_warps=num_warps)
    assert torch.equal(y[:-1].reshape(columns, rows), x.T) and y[-1] == -1
    assert compiled.metadata.shared <= device_capabilities().shared_bytes


@triton.jit
def sum_of_joined(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    pairs = tl.sum(tl.reshape(tl.join(x, x), [M, N, 2]), 2)
    tl.store(out_ptr + at, tl.sum(tl.reshape(pairs, [M * N])) + pairs)


def test_what_pairs_of_lanes_share_is_summed():
    """The sum over the last dimension is in pairs of lanes, and is read in the order of a whole vector's."""
    x = torch.arange(32, dtype=torch.int32).reshape(2, 16)
    out = torch.zeros_like(x)
    sum_of_joined[(1,)](x, out, M=2, N=16)
    assert torch.equal(out, 2 * x.sum().int() + 2 * x)
