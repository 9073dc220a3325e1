"""Tensors that come into a loop over strips, or leave it, through arrays give what the unrolled code gives.

The driver's budget is set low, so that tiles of a few registers are cut: every test says that there was a loop."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import driver_quirks
from triton.backends.spirv.transforms import strip_loops

from tests.device.helpers import device_capabilities

DRIVER = device_capabilities().driver


@pytest.fixture(autouse=True)
def loops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[int]]:
    """How many strips each loop had that was made in the test."""
    if DRIVER not in ("mesa_llvmpipe", "cpu"):
        pytest.skip("only CPUs cut tensors in strips")
    made: list[int] = []
    roll = strip_loops.roll

    def counted(block: Any, run: Any, strips: int, *others: Any) -> None:
        made.append(strips)
        roll(block, run, strips, *others)

    monkeypatch.setattr("triton.backends.spirv.transforms.strips.roll", counted)
    monkeypatch.setitem(driver_quirks.DRIVERS, DRIVER, replace(driver_quirks.DRIVERS[DRIVER], unrolled_elementwise=60))
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    yield made
    assert made, "nothing was cut in strips"


def numbers(dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(-9, 10, shape)).to(dtype)


def exact(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    return tensor.to(torch.float64).numpy()


@triton.jit
def scale_and_shift(x_ptr, scale_ptr, bias_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    scale = tl.load(scale_ptr + i, mask=i < m, other=0)
    bias = tl.load(bias_ptr + j, mask=j < n, other=0)
    inside = (i[:, None] < m) & (j < n)
    at = i[:, None] * n + j
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside, other=7) * scale[:, None] + bias, mask=inside)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8])
@pytest.mark.parametrize("offset", [0, 1])
def test_rows_and_columns_that_were_loaded_apart(dtype: torch.dtype, offset: int) -> None:
    m, n = 27, 61
    x, scale, bias = (numbers(dtype, count, seed=count)[offset:] for count in (m * n + offset, m + offset, n + offset))
    out = torch.full((offset + m * n + 64,), 99, dtype=dtype)
    scale_and_shift[(1,)](x, scale, bias, out[offset:], m, n, M=32, N=64, num_warps=1)
    wanted = exact(x).reshape(m, n) * exact(scale)[:, None] + exact(bias)
    assert np.array_equal(exact(out)[offset : offset + m * n].reshape(m, n), wanted)
    assert (out[:offset] == 99).all() and (out[offset + m * n :] == 99).all()


@triton.jit
def softmax_both_ways(x_ptr, g_ptr, out_ptr, grad_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j < n)
    at = i[:, None] * n + j
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf"))
    g = tl.load(g_ptr + at, mask=inside, other=0.0)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    p = e / tl.sum(e, 1)[:, None]
    tl.store(out_ptr + at, p, mask=inside)
    tl.store(grad_ptr + at, p * (g - tl.sum(p * g, 1)[:, None]), mask=inside)


@pytest.mark.parametrize(("m", "n"), [(16, 64), (13, 51)])
def test_softmax_and_its_gradient(m: int, n: int) -> None:
    x, g = (np.random.default_rng(seed).standard_normal((m, n)).astype(np.float32) for seed in (1, 2))
    out, grad = torch.full((m + 1, n), 7.0), torch.full((m + 1, n), 7.0)
    softmax_both_ways[(1,)](torch.from_numpy(x), torch.from_numpy(g), out, grad, m, n, M=16, N=64, num_warps=1)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    assert np.allclose(out[:m].numpy(), p, rtol=2e-6, atol=1e-7) and (out[m] == 7).all()
    assert np.allclose(grad[:m].numpy(), p * (g - (p * g).sum(1, keepdims=True)), rtol=1e-5, atol=1e-6)
    assert (grad[m] == 7).all()


@triton.jit
def softmax_in_place(x_ptr, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * N + j
    x = tl.load(x_ptr + at, mask=j < n, other=0)
    tl.store(x_ptr + at, x + tl.sum(x, 1)[:, None], mask=j < n)


def test_in_place_around_a_reduction() -> None:
    values = numbers(torch.int32, 16, 64)
    x = values.clone()
    softmax_in_place[(1,)](x, 61, M=16, N=64, num_warps=2)
    assert torch.equal(x[:, :61], values[:, :61] + values[:, :61].sum(1, keepdim=True))
    assert torch.equal(x[:, 61:], values[:, 61:])


@triton.jit
def reversed_around_a_sum(x_ptr, y_ptr, total_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(total_ptr, tl.sum(y))  # all invocations wait in it
    tl.store(y_ptr + at, y * 2 + x)
    tl.store(x_ptr + (BLOCK - 1 - at), x + y)


def test_reversed_in_place_behind_a_barrier() -> None:
    values, others = numbers(torch.int32, 512), numbers(torch.int32, 512, seed=1)
    x, y, total = values.clone(), others.clone(), torch.zeros(1, dtype=torch.int32)
    reversed_around_a_sum[(1,)](x, y, total, BLOCK=512, num_warps=1)
    assert torch.equal(x, (values + others).flip(0)) and torch.equal(y, others * 2 + values)
    assert int(total) == int(others.sum())


@triton.jit
def transposed_and_selected(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j)
    y = tl.load(y_ptr + j[:, None] * M + i)
    larger = tl.trans(x) > y  # a mask in another layout
    z = tl.where(larger, tl.trans(x) * 3, y - 1)
    tl.store(out_ptr + j[:, None] * M + i, z, mask=larger | (y > 0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.float64])
def test_masks_and_transpositions(dtype: torch.dtype) -> None:
    x, y = numbers(dtype, 32, 64), numbers(dtype, 64, 32, seed=1)
    out = torch.full((64, 32), 55, dtype=dtype)
    transposed_and_selected[(1,)](x, y, out, M=32, N=64, num_warps=1)
    t = x.T
    wanted = torch.where((t > y) | (y > 0), torch.where(t > y, t * 3, y - 1), torch.full_like(y, 55))
    assert torch.equal(out, wanted)


@triton.jit
def transposed(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * n + j, mask=(i[:, None] < m) & (j < n))
    tl.store(out_ptr + j[:, None] * m + i, tl.trans(x), mask=(j[:, None] < n) & (i < m))


@pytest.mark.parametrize("tile", [(64, 64), (128, 64), (128, 128), (32, 256)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8, torch.int64])
def test_large_tiles_are_transposed(dtype: torch.dtype, tile: tuple[int, int]) -> None:
    """Of odd sizes, from and to places that begin in the middle of a vector."""
    m, n = 167, 301
    x, out = numbers(dtype, m * n + 1)[1:], torch.full((m * n + 6,), 55, dtype=dtype)
    transposed[(triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))](x, out[3:], m, n, M=tile[0], N=tile[1], num_warps=1)
    assert torch.equal(out[3:-3].view(n, m), x.view(m, n).T)
    assert out[:3].tolist() == out[-3:].tolist() == [55] * 3


@triton.jit
def carried(x_ptr, out_ptr, steps, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    pointers = x_ptr + i[:, None] * N + j
    total = tl.zeros((M, N), tl.float32)
    best = tl.full((M,), -1e30, tl.float32)
    for step in range(steps):
        x = tl.load(pointers, mask=(j < N - step), other=0.0)
        new = tl.maximum(best, tl.max(x, 1))
        total = total * (best - new + 1)[:, None] + x
        best = new
        pointers += M * N
    tl.store(out_ptr + i[:, None] * N + j, total + best[:, None])


def test_values_and_pointers_that_a_loop_carries() -> None:
    m, n, steps = 16, 64, 5
    x = numbers(torch.float32, steps, m, n)
    out = torch.empty(m, n)
    carried[(1,)](x, out, steps, M=m, N=n, num_warps=1)
    total, best = np.zeros((m, n)), np.full(m, -1e30, np.float32)
    for step in range(steps):
        one = np.where(np.arange(n) < n - step, x[step].numpy(), 0)
        new = np.maximum(best, one.max(1))
        total = total * (best - new + np.float32(1)).astype(np.float64)[:, None] + one
        best = new
    assert np.allclose(out.numpy(), total + best[:, None], rtol=1e-5)


@triton.jit
def gathered(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at)
    place = tl.cumsum(index)  # pointers that are computed from what another part of the kernel gives
    tl.store(out_ptr + at, tl.load(x_ptr + place % BLOCK) + tl.max(index, 0))  # what only scans is not cut


def test_pointers_from_a_scan() -> None:
    size = 512
    x, index = numbers(torch.int32, size), numbers(torch.int32, size, seed=1).abs()
    out = torch.zeros(size, dtype=torch.int32)
    gathered[(1,)](x, index, out, BLOCK=size, num_warps=1)
    assert torch.equal(out, x[index.cumsum(0) % size] + index.max())


@triton.jit
def row_statistics(x_ptr, sum_ptr, max_ptr, at_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=-100)
    largest, at = tl.max(x, 0, return_indices=True)
    total = tl.sum(tl.where(i < n, x, 0))
    tl.store(sum_ptr, total)
    tl.store(max_ptr, largest)
    tl.store(at_ptr, at)
    tl.store(out_ptr + i, x * 2 - total, mask=i < n)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64, torch.int16])
def test_sums_and_places_of_a_row(dtype: torch.dtype, warps: int) -> None:
    """Whole numbers, so that every order of additions gives the same."""
    n = 2048 - 7
    x = numbers(dtype, n)
    sums, largest = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=dtype)
    at, out = torch.zeros(1, dtype=torch.int32), torch.full((n + 9,), 5, dtype=torch.int64)
    row_statistics[(1,)](x, sums, largest, at, out, n, N=2048, num_warps=warps)
    wanted = x.to(torch.int64)
    assert sums.item() == wanted.sum().item() and largest.item() == x.max().item()
    assert at.item() == int(np.argmax(x.numpy()))
    assert np.array_equal(out[:n].numpy(), (wanted * 2 - wanted.sum()).numpy()) and (out[n:] == 5).all()


@triton.jit
def both_ways(x_ptr, out_ptr, rows_ptr, columns_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j < n)
    at = i[:, None] * n + j
    x = tl.load(x_ptr + at, mask=inside, other=0)
    rows, columns = tl.sum(x, 1), tl.sum(x, 0)
    tl.store(out_ptr + at, x - rows[:, None] + 2 * columns, mask=inside)
    tl.store(rows_ptr + i, rows, mask=i < m)
    tl.store(columns_ptr + j, columns, mask=j < n)


@pytest.mark.parametrize(("m", "n"), [(61, 63), (4, 509), (500, 3)])
def test_sums_of_rows_and_columns(m: int, n: int) -> None:
    x = numbers(torch.float32, m, n)
    out, rows, columns = torch.zeros(m, n), torch.zeros(m), torch.zeros(n)
    M, N = triton.next_power_of_2(m), triton.next_power_of_2(n)
    both_ways[(1,)](x, out, rows, columns, m, n, M=M, N=N, num_warps=1)
    assert torch.equal(rows, x.sum(1)) and torch.equal(columns, x.sum(0))
    assert torch.equal(out, x - x.sum(1)[:, None] + 2 * x.sum(0))


@triton.jit
def softmax_rows(x_ptr, out_ptr, log_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j < n)
    x = tl.load(x_ptr + i[:, None] * n + j, mask=inside, other=-float("inf"))
    largest = tl.max(x, 1)
    powers = tl.exp(x - largest[:, None])
    total = tl.sum(powers, 1)
    tl.store(out_ptr + i[:, None] * n + j, powers / total[:, None], mask=inside)
    tl.store(log_ptr + i, largest + tl.log(total), mask=i < m)


@pytest.mark.parametrize(("m", "n"), [(29, 61), (3, 1000)])
def test_softmax_of_rows(m: int, n: int) -> None:
    x = torch.from_numpy(np.random.default_rng(4).standard_normal((m, n)).astype(np.float32))
    out, log = torch.zeros(m, n), torch.zeros(m)
    softmax_rows[(1,)](x, out, log, m, n, M=triton.next_power_of_2(m), N=triton.next_power_of_2(n), num_warps=1)
    assert torch.allclose(out.double(), torch.softmax(x.double(), 1), rtol=1e-6, atol=0)
    assert torch.allclose(log.double(), torch.logsumexp(x.double(), 1), rtol=1e-6, atol=0)
