"""Tiles of hundreds of elements a lane give the same results as small ones, with their neighbours untouched."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from benchmarks.compile_cliffs import sine_kernel
from tests.device.helpers import device_capabilities

#: Elements of a tile for one warp: Mesa's CPU driver has 512 of them in a lane, and cuts the tile in strips.
BLOCK = 16384
GUARD = 64


@triton.jit
def chain_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    x, y = tl.load(x_ptr + at, mask=inside, other=0), tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x * 2 + y, mask=inside)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int8])
@pytest.mark.parametrize("offset", [0, 1])
def test_masked_rows(dtype: torch.dtype, offset: int) -> None:
    size = 2 * BLOCK - 77
    numbers = np.random.default_rng(0).integers(-30, 30, (2, offset + size))
    x, y = (torch.from_numpy(part).to(dtype)[offset:] for part in numbers)
    out = torch.full((GUARD + size + GUARD + offset,), 99, dtype=dtype)
    chain_kernel[(2,)](x, y, out[GUARD + offset :], size, BLOCK=BLOCK, num_warps=1)
    wanted = x.numpy().astype(np.float64) * 2 + y.numpy()
    assert np.array_equal(out.numpy()[GUARD + offset : GUARD + offset + size].astype(np.float64), wanted)
    assert (out[: GUARD + offset] == 99).all() and (out[GUARD + offset + size :] == 99).all()


@triton.jit
def tile_kernel(x_ptr, out_ptr, rows, columns, stride, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE), tl.arange(0, SIZE)
    inside = (i < rows)[:, None] & (j < columns)
    x = tl.load(x_ptr + i[:, None] * stride + j, mask=inside, other=5) + (i[:, None] * 3 - j).to(tl.float32)
    tl.store(out_ptr + i[:, None] * stride + j, x, mask=inside)


def test_tiles() -> None:
    rows, columns, size = 117, 101, 128
    x = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    out = torch.full((size, size), 7.0)
    tile_kernel[(1,)](torch.from_numpy(x), out, rows, columns, size, SIZE=size, num_warps=1)
    values = x[:rows, :columns] + 3.0 * np.arange(rows)[:, None] - np.arange(columns)
    wanted = np.full((size, size), 7.0)
    wanted[:rows, :columns] = values
    assert np.allclose(out.numpy(), wanted, rtol=0, atol=1e-4)


@triton.jit
def rotated_pairs(x_ptr, out_ptr, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    inside = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * stride + j, mask=inside, other=0)
    even, odd = tl.split(tl.reshape(x, (ROWS, COLUMNS // 2, 2)))
    turned = tl.reshape(tl.join(3 * even - 4 * odd, 4 * even + 3 * odd), (ROWS, COLUMNS))
    tl.store(out_ptr + i * stride + j, turned, mask=inside)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16])
@pytest.mark.parametrize("shape", [(64, 128), (1, 8192), (512, 2)], ids=str)
def test_pairs_are_split_and_joined(shape: tuple[int, int], dtype: torch.dtype) -> None:
    rows, columns = max(1, shape[0] - 3), shape[1] - 2 * (shape[1] > 2)
    x = torch.from_numpy(np.random.default_rng(2).integers(-30, 30, shape)).to(dtype)
    out = torch.full(shape, 99, dtype=dtype)
    kernel = rotated_pairs[(1,)](x, out, rows, columns, shape[1], *shape, num_warps=1)
    pairs = x[:rows, :columns].reshape(rows, -1, 2).to(torch.float64)
    wanted = torch.full(shape, 99.0, dtype=torch.float64)
    turned = torch.stack((3 * pairs[..., 0] - 4 * pairs[..., 1], 4 * pairs[..., 0] + 3 * pairs[..., 1]), -1)
    wanted[:rows, :columns] = turned.reshape(rows, columns)
    assert torch.equal(out.to(torch.float64), wanted)
    if shape == (64, 128) and device_capabilities().tile_products:
        assert len(kernel.asm["spv"]) < 30_000  # bytes; four times as many without loops over rows


@triton.jit
def in_place_kernel(x_ptr, copy_ptr, rounds, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for step in range(rounds):
        x = tl.load(x_ptr + at, mask=at < size)
        tl.store(x_ptr + at, x + step, mask=at < size)
    tl.debug_barrier()
    tl.store(copy_ptr + at, tl.load(x_ptr + (size - 1 - at), mask=at < size), mask=at < size)


def test_in_place_in_a_loop_and_read_after_it() -> None:
    size, rounds = BLOCK - 3, 7
    values = np.random.default_rng(2).integers(-1000, 1000, BLOCK).astype(np.int32)
    x, copy = torch.from_numpy(values.copy()), torch.zeros(BLOCK, dtype=torch.int32)
    in_place_kernel[(1,)](x, copy, rounds, size, BLOCK=BLOCK, num_warps=1)
    assert np.array_equal(x.numpy()[:size], values[:size] + 21) and np.array_equal(x.numpy()[size:], values[size:])
    assert np.array_equal(copy.numpy()[:size], values[:size][::-1] + 21) and not copy.numpy()[size:].any()


@triton.jit
def reversed_in_place_kernel(x_ptr, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + (size - 1 - at), tl.load(x_ptr + at, mask=at < size), mask=at < size)


@triton.jit
def shifted_in_place_kernel(x_ptr, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at + 1, tl.load(x_ptr + at, mask=at < size), mask=at < size)


@triton.jit
def folded_in_place_kernel(x_ptr, size, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK) % size
    tl.store(x_ptr + at, tl.load(x_ptr + at) + 1)


@pytest.mark.parametrize(
    ("kernel", "size", "wanted"),
    [
        (reversed_in_place_kernel, BLOCK, lambda x: x[::-1]),
        (shifted_in_place_kernel, BLOCK - 1, lambda x: np.concatenate([x[:1], x[:-1]])),
        (folded_in_place_kernel, 1024, lambda x: np.concatenate([x[:1024] + 1, x[1024:]])),
    ],
)
def test_all_elements_of_a_lane_are_loaded_before_others_are_stored(kernel, size, wanted) -> None:  # type: ignore[no-untyped-def]
    """In one warp, which runs in step: a GPU gives these results too."""
    values = np.arange(BLOCK, dtype=np.int32)
    x = torch.from_numpy(values.copy())
    kernel[(1,)](x, size, BLOCK=BLOCK, num_warps=1)
    assert np.array_equal(x.numpy(), wanted(values))


def test_long_functions_of_many_registers_in_a_loop() -> None:
    size, rounds = 2048, 3
    x = np.random.default_rng(3).uniform(-1e6, 1e6, size).astype(np.float32)
    out = torch.empty(size)
    sine_kernel[(1,)](torch.from_numpy(x), out, rounds, BLOCK=size, num_warps=1)
    arguments = [(x * np.float32(step)).astype(np.float64) for step in range(rounds)]
    assert np.allclose(out.numpy(), sum(np.sin(argument) for argument in arguments), rtol=0, atol=5e-7)
