"""tt.scan against NumPy: running sums, combinations that are not commutative, reverse."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

WARPS = (1, 2, 4, 8)


@triton.jit
def scan_1d(x_ptr, y_ptr, n, N: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(y_ptr + offsets, tl.cumsum(x, 0, reverse=REVERSE), mask=offsets < n)


@triton.jit
def scan_2d(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), AXIS, reverse=REVERSE))


@triton.jit
def scan_3d(x_ptr, y_ptr, L: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offsets = (tl.arange(0, L)[:, None, None] * M + tl.arange(0, M)[None, :, None]) * N + tl.arange(0, N)[None, None, :]
    tl.store(y_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), AXIS, reverse=REVERSE))


def running_sum(x: torch.Tensor, axis: int, reverse: bool) -> torch.Tensor:
    wide = x.double() if x.dtype.is_floating_point else x.long()
    return wide.flip(axis).cumsum(axis).flip(axis) if reverse else wide.cumsum(axis)


def draw(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    type_ = getattr(torch, dtype)
    if type_.is_floating_point:
        return torch.randn(shape, generator=generator).to(type_)
    return torch.randint(-100, 100, shape, generator=generator).to(type_)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("size", [1, 2, 16, 64, 1024])
def test_sizes_and_warps(size: int, warps: int, reverse: bool) -> None:
    x = draw((size,), "int32")
    y = torch.zeros_like(x)
    scan_1d[(1,)](x, y, size, N=size, REVERSE=reverse, num_warps=warps)
    assert torch.equal(y.long(), running_sum(x, 0, reverse))


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 16), (16, 1), (2, 64), (64, 2), (32, 32), (512, 4), (4, 512)])
def test_two_dimensions(shape: tuple[int, int], warps: int) -> None:
    x = draw(shape, "int32")
    for axis in (0, 1):
        y = torch.zeros_like(x)
        scan_2d[(1,)](x, y, M=shape[0], N=shape[1], AXIS=axis, REVERSE=axis == 1, num_warps=warps)
        assert torch.equal(y.long(), running_sum(x, axis, axis == 1))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 16, 32), (16, 2, 1), (8, 8, 8)])
def test_three_dimensions(shape: tuple[int, int, int], axis: int) -> None:
    x = draw(shape, "int32")
    for warps, reverse in ((1, False), (4, True), (8, False)):
        y = torch.zeros_like(x)
        scan_3d[(1,)](x, y, L=shape[0], M=shape[1], N=shape[2], AXIS=axis, REVERSE=reverse, num_warps=warps)
        assert torch.equal(y.long(), running_sum(x, axis, reverse))


@triton.jit
def _multiply(a1, b1, c1, d1, a2, b2, c2, d2):
    """The product of two 2x2 matrices: associative, not commutative."""
    return a1 * a2 + b1 * c2, a1 * b2 + b1 * d2, c1 * a2 + d1 * c2, c1 * b2 + d1 * d2


@triton.jit
def matrices(x_ptr, y_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, N) * 4
    values = (
        tl.load(x_ptr + offsets),
        tl.load(x_ptr + offsets + 1),
        tl.load(x_ptr + offsets + 2),
        tl.load(x_ptr + offsets + 3),
    )
    a, b, c, d = tl.associative_scan(values, 0, _multiply, reverse=REVERSE)
    tl.store(y_ptr + offsets, a)
    tl.store(y_ptr + offsets + 1, b)
    tl.store(y_ptr + offsets + 2, c)
    tl.store(y_ptr + offsets + 3, d)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("size", [2, 64, 512])
def test_matrix_products_keep_their_order(size: int, warps: int, reverse: bool) -> None:
    x = torch.randint(0, 5, (size, 2, 2), generator=torch.Generator().manual_seed(size), dtype=torch.int32)
    y = torch.zeros_like(x)
    matrices[(1,)](x, y, N=size, REVERSE=reverse, num_warps=warps)
    want = np.empty_like(x.numpy())
    running = np.eye(2, dtype=np.int32)
    for place in range(size)[::-1] if reverse else range(size):
        running = running @ x.numpy()[place]
        want[place] = running
    assert np.array_equal(y.numpy(), want)


@triton.jit
def _last_nonzero(a, b):
    if b == 0:
        result = a
    else:
        result = b
    return result


@triton.jit
def fill_forward(x_ptr, y_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(y_ptr + offsets, tl.associative_scan(tl.load(x_ptr + offsets), 0, _last_nonzero, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "int64"])
def test_a_combination_with_a_branch(dtype: str, reverse: bool) -> None:
    x = torch.randint(0, 100, (512,), generator=torch.Generator().manual_seed(9))
    x = torch.where(x > 20, 0, x + 1).to(getattr(torch, dtype))
    y = torch.zeros_like(x)
    fill_forward[(1,)](x, y, N=512, REVERSE=reverse)
    want, running = [], 0
    for value in (x.flip(0) if reverse else x).tolist():
        running = value or running
        want.append(running)
    assert y.tolist() == (want[::-1] if reverse else want)


@triton.jit
def _segmented(total_a, start_a, total_b, start_b):
    return tl.where(start_b, total_b, total_a + total_b), start_a | start_b


@triton.jit
def segments(x_ptr, start_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    total, _ = tl.associative_scan((tl.load(x_ptr + offsets), tl.load(start_ptr + offsets) != 0), 0, _segmented)
    tl.store(y_ptr + offsets, total)


@pytest.mark.parametrize("warps", WARPS)
def test_sums_of_segments(warps: int) -> None:
    """Two operands of different types, one of them boolean."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randint(-9, 9, (1024,), generator=generator, dtype=torch.int64)
    start = (torch.randint(0, 30, (1024,), generator=generator) == 0).to(torch.int8)
    y = torch.zeros_like(x)
    segments[(1,)](x, start, y, N=1024, num_warps=warps)
    want, running = [], 0
    for value, begins in zip(x.tolist(), start.tolist(), strict=True):
        running = value if begins else running + value
        want.append(running)
    assert y.tolist() == want


@triton.jit
def scan_of_a_reduction(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(y_ptr + tl.arange(0, M), tl.cumsum(tl.sum(x, 1), 0))


@pytest.mark.parametrize("warps", WARPS)
def test_scan_of_a_reduction(warps: int) -> None:
    x = draw((64, 16), "int32")
    y = torch.zeros(64, dtype=torch.int32)
    scan_of_a_reduction[(1,)](x, y, M=64, N=16, num_warps=warps)
    assert torch.equal(y.long(), x.long().sum(1).cumsum(0))


@triton.jit
def scans_in_a_loop(x_ptr, y_ptr, n, N: tl.constexpr):
    carried = tl.zeros((), tl.int32)
    for start in range(0, n, N):
        offsets = start + tl.arange(0, N)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
        tl.store(y_ptr + offsets, carried + tl.cumsum(x, 0), mask=offsets < n)
        carried += tl.sum(x, 0)


def test_scans_that_share_memory_in_a_loop() -> None:
    x = draw((1003,), "int32")
    y = torch.full((1005,), 77, dtype=torch.int32)
    scans_in_a_loop[(1,)](x, y[1:], 1003, N=64)
    assert torch.equal(y[1:-1].long(), x.long().cumsum(0)) and y[0] == 77 and y[-1] == 77
