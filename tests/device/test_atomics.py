"""No update of an element that many invocations change at once is lost, whatever the width and the memory order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.errors import UnsupportedOperation

#: Elements that are changed, and others beside them that stay: two of 16 bits share a word.
CHANGED, PROGRAMS, BLOCK = 3, 5, 256


@triton.jit
def add_kernel(x_ptr, CHANGED: tl.constexpr, BLOCK: tl.constexpr, SEM: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ones = tl.full((BLOCK,), 1, x_ptr.dtype.element_ty)
    tl.atomic_add(x_ptr + at % CHANGED, ones, sem=SEM)


@triton.jit
def max_kernel(x_ptr, CHANGED: tl.constexpr, BLOCK: tl.constexpr, SEM: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = (tl.program_id(0) * BLOCK + at).to(x_ptr.dtype.element_ty)
    tl.atomic_max(x_ptr + at % CHANGED, values, sem=SEM)


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32])
def test_sums_are_whole(dtype: torch.dtype, sem: str) -> None:
    blocks = 1 if dtype == torch.bfloat16 else PROGRAMS  # bfloat16 counts to 256
    x = torch.zeros(CHANGED + 1, dtype=dtype)
    add_kernel[(blocks,)](x, CHANGED, BLOCK, sem)
    wanted = [blocks * len(range(first, BLOCK, CHANGED)) for first in range(CHANGED)]
    assert x.tolist() == [*wanted, 0]


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
def test_the_largest_is_found(dtype: torch.dtype, sem: str) -> None:
    x = torch.zeros(CHANGED + 1, dtype=dtype)
    max_kernel[(PROGRAMS,)](x, CHANGED, BLOCK, sem)
    last = (PROGRAMS - 1) * BLOCK
    wanted = [last + int(np.arange(first, BLOCK, CHANGED)[-1]) for first in range(CHANGED)]
    assert x.tolist() == [*wanted, 0]


@triton.jit
def and_of_floats(x_ptr):
    tl.atomic_and(x_ptr, 1.5)


def test_atomic_bits_of_floats_are_refused_with_advice() -> None:
    with pytest.raises(UnsupportedOperation, match="atomic 'and' is for integers.*elements are f32; use pointers"):
        and_of_floats[(1,)](torch.zeros(1))
