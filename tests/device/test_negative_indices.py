"""Indices that are quotients and remainders of negative numbers, which are divided towards zero: no vectors over 0."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import Guarded, to_torch

MIDDLE = tl.constexpr(4096)


@triton.jit
def indexed(x_ptr, y_ptr, base, SIZE: tl.constexpr, KIND: tl.constexpr, BY: tl.constexpr):
    at = tl.arange(0, SIZE)
    i = at + base * 64
    if KIND == "quotient":
        i = i // BY
    elif KIND == "remainder":
        i = i % BY
    elif KIND == "rounded":
        i = i // BY * BY
    else:
        i = at % BY + tl.where(i % BY < BY // 2, 1, 2)
    tl.store(y_ptr + at, tl.load(x_ptr + MIDDLE + i))


def expected(kind: str, base: int, size: int, by: int) -> np.ndarray:
    at = np.arange(size)
    i = at + base * 64
    remainder = np.fmod(i, by)
    if kind == "quotient":
        return (i - remainder) // by
    if kind == "remainder":
        return remainder
    return i - remainder if kind == "rounded" else at % by + np.where(remainder < by // 2, 1, 2)


@pytest.mark.parametrize("base", [-9, -4, -1, 0, 1])
@pytest.mark.parametrize("size", [32, 1024])
@pytest.mark.parametrize("by", [16, 32])
@pytest.mark.parametrize("kind", ["quotient", "remainder", "rounded", "chosen"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_index_of_divided_numbers(dtype: str, kind: str, by: int, size: int, base: int) -> None:
    x = (np.arange(2 * MIDDLE.value) % 113).astype(dtype)
    result = Guarded((size,), dtype)
    indexed[(1,)](to_torch(x), result.tensor, base, size, kind, by)
    assert (result.values() == x[MIDDLE.value + expected(kind, base, size, by)]).all()


@triton.jit
def masked(x_ptr, y_ptr, base, SIZE: tl.constexpr, BY: tl.constexpr):
    at = tl.arange(0, SIZE)
    i = at + base * 64
    mask = (i // BY == 0) | (i % BY == 0)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask, other=-7.0), mask=at < SIZE - 3)


@pytest.mark.parametrize("base", [-1, 0, 1])
def test_masks_of_divided_numbers(base: int) -> None:
    x, y = torch.randn(1024), torch.full((1024,), 9.0)
    masked[(1,)](x, y, base, 1024, 32)
    i = np.arange(1024) + base * 64
    wanted = torch.where(torch.tensor((np.abs(i) < 32) | (np.fmod(i, 32) == 0)), x, -7.0)
    wanted[-3:] = 9.0
    assert torch.equal(y, wanted)
