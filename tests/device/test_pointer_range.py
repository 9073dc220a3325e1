"""Kernels whose pointers are 32-bit offsets (negative, in views, wrapping, in loops), and kernels whose are not."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime import array, selected

from tests.device.helpers import Guarded, assert_same


@triton.jit
def shifted_kernel(x_ptr, y_ptr, shift, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at + shift, at < n), at < n)


def specialised(kernel: object) -> int:
    """How many arguments are held as a base and a 32-bit offset."""
    return kernel.asm["ttgir"].count("tt.pointer_range = 32")  # type: ignore[attr-defined]


class Typed:
    """An address and a type, as kernel libraries pass them: it tells no size of its memory."""

    def __init__(self, tensor):
        self.data_ptr, self.dtype = tensor.data_ptr, tensor.dtype

    def untyped_storage(self):
        return self


def test_addresses_of_unknown_memory():
    """They are taken where kernels reach all memory, and refused where memory has to be copied."""
    x, out = torch.arange(100, dtype=torch.int32), Guarded(100, "int32", fill=0)
    try:
        kernel = shifted_kernel[(1,)](Typed(x), Typed(out.tensor), 0, 100, BLOCK=128)
    except TypeError as error:
        assert "does not give the size of its memory" in str(error) and selected().driver != "cpu"
        return
    assert specialised(kernel) == 0
    assert_same(out.values(), x.numpy(), "typed")


@pytest.mark.parametrize("index_type", (None, torch.int64))
@pytest.mark.parametrize("shift", (-900, -1, 0, 100))
def test_views_and_negative_offsets(shift, index_type):
    """Offsets count from the pointer that is passed, which lies in the middle of its storage."""
    whole = torch.arange(2000, dtype=torch.int32)
    out = Guarded(100, "int32", fill=0)
    if index_type is None:
        kernel = shifted_kernel[(1,)](whole[1000:1100], out.tensor, shift, 100, BLOCK=128)
    else:
        kernel = shifted_by_table_kernel[(1,)](whole[1000:1100], torch.tensor([shift]), out.tensor, 100, BLOCK=128)
    assert specialised(kernel) >= 2
    assert_same(out.values(), np.arange(1000 + shift, 1100 + shift, dtype=np.int32), shift)


@triton.jit
def shifted_by_table_kernel(x_ptr, shift_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x_ptr += tl.load(shift_ptr)
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n), at < n)


@pytest.mark.parametrize("step", (1, -1, -3))
def test_numpy_views(step):
    whole = np.arange(3000, dtype=np.int16)
    view = whole[1500:1800]
    result = np.zeros(64, np.int16)
    strided_kernel[(1,)](array(view), array(result), step, BLOCK=64)
    assert (result == whole[1500 + step * np.arange(64)]).all()


@triton.jit
def strided_kernel(x_ptr, y_ptr, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at * step))


@triton.jit
def there_and_back_kernel(x_ptr, y_ptr, far, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = x_ptr + far + at
    pointers = pointers + far
    pointers = pointers - far - far
    masked = tl.load(pointers + at * far, (at < n) & (at * far == 0), other=-1)
    tl.store(y_ptr + at, tl.load(pointers, at < n) + masked, at < n)


@pytest.mark.parametrize("far", (0, 2**29, 2**30 + 3, 2**31 - 5, -(2**31) + 8, 2**40 + 1))
def test_sums_that_leave_32_bits_and_come_back(far):
    """Only the address of an access has to fit; masked-off lanes may have any."""
    x = torch.arange(100, dtype=torch.int64) + 7
    out = Guarded(100, "int64")
    there_and_back_kernel[(1,)](x, out.tensor, far, 100, BLOCK=128)
    expected = x.numpy() + np.where((np.arange(100) * far).astype(np.int64) == 0, x.numpy(), -1)
    if -(2**31) <= far < 2**31:
        # The product is of 32 bits in the kernel, and the offset counts elements.
        wrapped = (np.arange(100) * far).astype(np.int32)
        expected = x.numpy() + np.where(wrapped == 0, x.numpy(), -1)
    assert_same(out.values(), expected, far)


@triton.jit
def loops_kernel(x_ptr, y_ptr, rows, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    forward, backward = x_ptr + at, x_ptr + (rows - 1) * stride + at
    total = tl.zeros((BLOCK,), tl.int32)
    row = 0
    while row < rows:
        total = total * 3 + tl.load(forward) - tl.load(backward)
        if row % 2 == 0:
            forward += 2 * stride
        else:
            forward -= stride
        for _ in range(row % 2 + 1):
            backward -= stride
        if row % 2 == 1:
            backward += stride
        row += 1
    tl.store(y_ptr + at, total)


def test_pointers_that_loops_and_branches_carry():
    rows, width = 9, 64
    x = torch.randint(-1000, 1000, (rows + 2, width), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
    out = Guarded(width, "int32")
    kernel = loops_kernel[(1,)](x, out.tensor, rows, width, BLOCK=width)
    assert specialised(kernel) == 2
    total, forward, backward = np.zeros(width, np.int32), 0, rows - 1
    with np.errstate(over="ignore"):
        for row in range(rows):
            total = total * np.int32(3) + x[forward].numpy() - x[backward].numpy()
            forward += 2 if row % 2 == 0 else -1
            backward -= 1
    assert_same(out.values(), total, "carried")


@triton.jit
def chosen_kernel(x_ptr, z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = tl.where(at % 2 == 0, x_ptr + at, z_ptr - at + n)
    tl.store(y_ptr + at, tl.load(pointers))
    tl.store(y_ptr + BLOCK + at, tl.load(tl.where(at % 2 == 0, x_ptr + at, x_ptr - at + n)))


def test_pointers_of_two_allocations():
    x, z = torch.arange(200, dtype=torch.int32), torch.arange(200, dtype=torch.int32) + 1000
    out = Guarded(128, "int32")
    chosen_kernel[(1,)](x, z, out.tensor, 64, BLOCK=64)
    at = np.arange(64)
    expected = np.concatenate([np.where(at % 2 == 0, at, 1064 - at), np.where(at % 2 == 0, at, 64 - at)])
    assert_same(out.values(), expected.astype(np.int32), "chosen")


@triton.jit
def reached_kernel(x_ptr, z_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    distance = (z_ptr.to(tl.int64) - x_ptr.to(tl.int64)) // 4
    tl.store(y_ptr + at, tl.load(x_ptr + distance + at))


def test_one_allocation_reached_from_another(tmp_path):
    """A kernel that works with addresses as numbers keeps 64 bits."""
    whole = torch.from_numpy(np.memmap(tmp_path / "sparse", np.int32, "w+", shape=(2**30 + 2**10,)))
    z = whole[2**30 :]
    z[:64] = torch.arange(64, dtype=torch.int32)
    x, out = torch.zeros(64, dtype=torch.int32), Guarded(64, "int32")
    reached_kernel[(1,)](x, z, out.tensor, BLOCK=64)
    assert_same(out.values(), np.arange(64, dtype=np.int32), "reached")


@triton.jit
def two_dimensions_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    pointers = (x_ptr + rows[:, None] * N) + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.atomic_add(y_ptr + rows[:, None] + columns[None, :] * M, tl.load(pointers, mask, other=0), mask)


def test_broadcast_and_atomics():
    x = torch.arange(20 * 30, dtype=torch.int32).reshape(20, 30)
    out = Guarded((30, 20), "int32", fill=0)
    two_dimensions_kernel[(1,)](x, out.tensor, 20, 30, BM=32, BN=32)
    assert_same(out.values(), np.ascontiguousarray(x.numpy().T), "transposed")
