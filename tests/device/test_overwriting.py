"""A load sees what was there before the stores that follow it, in whichever order invocations come by."""

import inspect

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def counting_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.store(count_ptr, count + 1)
    tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32) + count)


@triton.jit
def branching_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.store(count_ptr, count + 1)
    if count == 0:
        tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32))


@triton.jit
def adding_kernel(count_ptr, out_ptr, SIZE: tl.constexpr):
    count = tl.load(count_ptr)
    tl.atomic_add(count_ptr, 1, sem="relaxed")
    tl.store(out_ptr + tl.arange(0, SIZE), tl.zeros((SIZE,), tl.int32) + count)


@pytest.mark.parametrize("kernel", [counting_kernel, branching_kernel, adding_kernel])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_a_number_that_all_invocations_hold(kernel, num_warps):
    count, out = torch.zeros(1, dtype=torch.int32), torch.full((256,), -1, dtype=torch.int32)
    kernel[(1,)](count, out, SIZE=256, num_warps=num_warps)
    assert count.item() == 1 and (out == 0).all()


@triton.jit
def rows_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + at, x + 1)
    tl.store(out_ptr + at[:, None] * SIZE + at[None, :], x[:, None] + tl.zeros((SIZE, SIZE), tl.int32))


def test_elements_that_several_invocations_hold():
    x, out = torch.arange(32, dtype=torch.int32), torch.full((32, 32), -1, dtype=torch.int32)
    rows_kernel[(1,)](x, out, SIZE=32, num_warps=8)
    assert (x == torch.arange(1, 33)).all()
    assert (out == torch.arange(32)[:, None]).all()


@triton.jit
def shifting_kernel(x_ptr, rounds, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    for _ in range(rounds):
        x = tl.load(x_ptr + at)
        tl.store(x_ptr + at + 1, x)
        tl.debug_barrier()


def test_elements_that_move():
    x = torch.arange(33, dtype=torch.int32)
    shifting_kernel[(1,)](x, 3, SIZE=32, num_warps=4)
    assert x.tolist() == [0, 0, 0, *range(30)]


@triton.jit
def in_place_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at, mask=at < SIZE - 1, other=0)
    tl.store(x_ptr + at, x * tl.load(y_ptr + at) + 1, mask=at < SIZE - 1)


def test_what_each_invocation_reads_and_writes_alone_waits_for_nobody():
    x, y = torch.arange(64, dtype=torch.int32), torch.full((64,), 2, dtype=torch.int32)
    for num_warps in (1, 16):
        kernel = in_place_kernel[(1,)](x, y, SIZE=64, num_warps=num_warps)
        assert "OpControlBarrier" not in kernel.asm["spvasm"], inspect.getsource(in_place_kernel.fn)
    assert x.tolist() == [*(4 * value + 3 for value in range(63)), 63]


@triton.jit
def overlapping_elements_kernel(x_ptr, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = x_ptr + tl.arange(0, ROWS)[:, None] * row + tl.arange(0, COLUMNS)[None, :] * column
    tl.store(at, tl.load(at) + 1)


@triton.jit
def overlapping_rows_kernel(x_ptr, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = x_ptr + tl.arange(0, ROWS)[:, None] * 4 + tl.arange(0, COLUMNS)[None, :]
    tl.store(at, tl.load(at) + 1)


@pytest.mark.parametrize("kernel", [overlapping_elements_kernel, overlapping_rows_kernel])
@pytest.mark.parametrize(("rows", "columns", "num_warps"), [(64, 64, 1), (64, 64, 4), (256, 64, 1), (64, 1, 8)])
def test_elements_that_one_tensor_of_pointers_has_several_times(kernel, rows, columns, num_warps):
    """Tiles of 256×64 are cut in strips on Mesa's CPU driver."""
    for row, column in ((4, 1), (0, 1), (1, 0)):
        x = torch.zeros(rows * 4 + columns, dtype=torch.int32)
        kernel[(1,)](x, row, column, ROWS=rows, COLUMNS=columns, num_warps=num_warps)
        assert x.max() == 1


@triton.jit
def loaded_early_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x_ptr + at)
    w = tl.load(x_ptr + (at + SIZE - 1) % SIZE)
    m = tl.max(v, 0)
    tl.store(y_ptr + at, w - m)


@triton.jit
def stored_late_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x_ptr + (SIZE - 1 - at))
    m = tl.max(tl.load(x_ptr + at), 0)
    tl.store(y_ptr + at, v - SIZE + 1)
    tl.store(y_ptr + SIZE, m)


@triton.jit
def stored_twice_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x_ptr + at)
    tl.store(y_ptr + (SIZE - 1 - at), v)
    m = tl.max(v, 0)
    tl.store(x_ptr + at, (at + SIZE - 1) % SIZE - SIZE + 1)
    tl.store(y_ptr + SIZE, m)


@triton.jit
def loaded_through_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    turned = tl.load(x_ptr + (SIZE - 1 - at))
    v = tl.load(x_ptr + (turned & (SIZE - 1)))
    m = tl.max(turned, 0)
    tl.store(x_ptr + at, v - m)
    tl.store(y_ptr + SIZE, m)


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        (loaded_through_kernel, lambda x: x.flip(0) - (len(x) - 1)),
        (loaded_early_kernel, lambda x: torch.roll(x, 1) - (len(x) - 1)),
        (stored_late_kernel, lambda x: x.flip(0) - (len(x) - 1)),
        (stored_twice_kernel, lambda x: torch.roll(x, 1) - (len(x) - 1)),
    ],
)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_two_arguments_that_are_one_tensor(kernel, wanted, num_warps):
    """All are loaded before the maximum of all is known, and stored after it, as on CUDA."""
    size = 8192
    x = torch.arange(size + 1, dtype=torch.int32)
    kernel[(1,)](x, x, SIZE=size, num_warps=num_warps)
    assert torch.equal(x[:size], wanted(torch.arange(size, dtype=torch.int32)))
