"""No update of an element that many invocations change at once is lost, whatever the width and the memory order."""

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


@triton.jit
def counts(places, values, totals, before, n, WANTED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.load(places + i, mask=i < n, other=-1)
    value = tl.load(values + i, mask=i < n, other=0)
    found = tl.atomic_add(totals + place, value, mask=place >= 0, sem="relaxed")
    if value.dtype.primitive_bitwidth > 16:
        tl.atomic_max(totals + 64 + place, value, mask=place >= 0)
    tl.atomic_add(totals + 128 + 0 * i, 1 + tl.zeros((BLOCK,), value.dtype))
    if WANTED:
        tl.store(before + i, found, mask=i < n)


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int32, torch.int64])
def test_many_elements_of_a_lane(dtype: torch.dtype, wanted: bool) -> None:
    """In loops over registers; equal additions count each, and those under a mask that is false do not."""
    n, block = 1000, 1024
    places = torch.randint(-1, 64, (n,), dtype=torch.int32)
    values = torch.randint(1, 3, (n,)).to(dtype)
    totals, before = torch.zeros(200, dtype=dtype), torch.full((n,), -5, dtype=dtype)
    counts[(1,)](places, values, totals, before, n, wanted, BLOCK=block)
    mine = places >= 0
    expected = torch.zeros(64, dtype=torch.float64).index_add_(0, places[mine].long(), values[mine].double())
    largest = torch.zeros(64, dtype=torch.float64).index_reduce_(0, places[mine].long(), values[mine].double(), "amax")
    torch.testing.assert_close(totals[:64].double(), expected)
    if dtype.itemsize > 2:
        torch.testing.assert_close(totals[64:128].double(), largest)
    assert totals[128] == block and not totals[129:].any()
    if wanted:  # what each found is the sum of some of the others at its place
        assert (before[mine] >= 0).all() and (before[~mine] == 0).all()
        assert (before[mine] + values[mine] <= totals[:64][places[mine].long()]).all()
        last = torch.zeros(64, dtype=dtype).index_reduce_(0, places[mine].long(), (before + values)[mine], "amax")
        torch.testing.assert_close(last, totals[:64])
