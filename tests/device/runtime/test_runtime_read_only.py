"""Memory that a kernel must not write, and what is known of what it writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.runtime import array


@triton.jit
def copy_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, offsets < size), offsets < size)


@triton.jit
def choose_kernel(x_ptr, y_ptr, z_ptr, first):
    target = y_ptr if first else z_ptr
    tl.store(target, tl.load(x_ptr))


@triton.jit
def count_kernel(x_ptr, count_ptr):
    tl.atomic_add(count_ptr, tl.load(x_ptr))


def read_only(values: Any) -> np.ndarray:
    values = np.asarray(values)
    values.setflags(write=False)
    return values


def test_read_only_arrays_are_read() -> None:
    x, y = read_only(np.arange(100, dtype=np.float32)), np.zeros(100, np.float32)
    copy_kernel[(1,)](array(x), array(y), 100, BLOCK=128)
    np.testing.assert_array_equal(y, x)


def test_mapped_files_are_read(tmp_path: Path) -> None:
    np.arange(100, dtype=np.float32).tofile(tmp_path / "x")
    x, y = np.memmap(tmp_path / "x", np.float32, mode="r"), np.zeros(100, np.float32)
    copy_kernel[(1,)](array(x), array(y), 100, BLOCK=128)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("mapped", [False, True])
def test_read_only_arrays_are_not_written(mapped: bool, tmp_path: Path) -> None:
    x = np.ones(100, np.float32)
    y = read_only(np.zeros(100, np.float32))
    if mapped:
        y.tofile(tmp_path / "y")
        y = np.memmap(tmp_path / "y", np.float32, mode="r")
    with pytest.raises(
        ValueError,
        match="kernel 'copy_kernel', argument 'y_ptr': the kernel writes it, but the array is read-only; pass a copy",
    ):
        copy_kernel[(1,)](array(x), array(y), 100, BLOCK=128)
    assert (y == 0).all()


def test_what_a_kernel_may_write() -> None:
    def written(kernel: Any, *arguments: Any, **options: Any) -> list[int]:
        return list(kernel[(1,)](*arguments, **options).metadata.written_arguments)

    x, y, z = (array(np.ones(100, np.float32)) for _ in range(3))
    assert written(copy_kernel, x, y, 100, BLOCK=128) == [1]
    assert written(choose_kernel, x, y, z, 0) == [1, 2]
    assert written(count_kernel, x, y) == [1]


@triton.jit
def detour_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    distance = (y_ptr.to(tl.int64) - x_ptr.to(tl.int64)) // 4
    tl.store(x_ptr + distance + tl.arange(0, BLOCK), 9.0)


@pytest.mark.parametrize("check_bounds", [False, True])
def test_a_store_by_the_distance_of_two_tensors(check_bounds: bool) -> None:
    """What is computed from addresses may lead from one tensor to the other: nothing is known of such kernels."""
    whole = np.zeros(128, np.float32)
    x, y = whole[:64], whole[64:]
    compiled = detour_kernel[(1,)](array(x), array(y), BLOCK=64, check_bounds=check_bounds)
    assert compiled.metadata.written_arguments is None
    assert (x == 0).all() and (y == 9).all()


def test_all_memory_of_a_strided_view_is_the_arguments() -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(64, np.float32)
    view = np.lib.stride_tricks.as_strided(y[:1], (32,), (0,))
    assert array(view).storage()[:2] == (y.ctypes.data, y.nbytes)
    copy_kernel[(1,)](array(x), array(view), 32, BLOCK=32)
    np.testing.assert_array_equal(y, np.concatenate([x, np.zeros(32)]))
