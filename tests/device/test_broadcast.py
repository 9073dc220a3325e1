"""Shapes: broadcast, expand_dims, reshape, trans, permute, join, split, cat, views of constants."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.device.helpers import Guarded, assert_same, inputs, to_torch


@triton.jit
def broadcast_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    a, b = tl.load(a_ptr + m), tl.load(b_ptr + n)
    at = m[:, None] * N + n[None, :]
    tl.store(out_ptr + at, tl.where(m[:, None] > n[None, :], a[:, None], b[None, :]))
    tl.store(out_ptr + M * N + at, tl.broadcast_to(a[:, None], [M, N]))
    tl.store(out_ptr + 2 * M * N + at, tl.broadcast_to(b[None, :], [M, N]))


@pytest.mark.parametrize("dtype", ("bool", "int8", "bfloat16", "float32", "int64"))
@pytest.mark.parametrize(("M", "N", "warps"), [(1, 1, 1), (2, 64, 4), (64, 2, 8), (32, 16, 2)])
def test_broadcast(dtype, M, N, warps):
    a, b = inputs(dtype, M, 1), inputs(dtype, N, 2)
    out = Guarded((3, M, N), dtype)
    broadcast_kernel[(1,)](to_torch(a), to_torch(b), out.tensor, M, N, num_warps=warps)
    chosen, rows, columns = out.values()
    where = np.arange(M)[:, None] > np.arange(N)[None, :]
    assert_same(chosen, np.where(where, a[:, None], b[None, :]), "where")
    assert_same(rows, np.ascontiguousarray(np.broadcast_to(a[:, None], (M, N))), "rows")
    assert_same(columns, np.ascontiguousarray(np.broadcast_to(b, (M, N))), "columns")


@triton.jit
def shape_kernel(
    x_ptr,
    reshaped_ptr,
    transposed_ptr,
    permuted_ptr,
    joined_ptr,
    even_ptr,
    odd_ptr,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr,
):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    x = tl.load(x_ptr + (a * B + b) * C + c)
    flat = tl.arange(0, A * B * C)
    tl.store(reshaped_ptr + flat, tl.reshape(x, [A * B * C]))
    square = tl.reshape(x, [A * B, C])
    rows, columns = tl.arange(0, C)[:, None], tl.arange(0, A * B)[None, :]
    tl.store(transposed_ptr + rows * (A * B) + columns, tl.trans(square))
    moved = tl.permute(x, (2, 0, 1))
    at = (tl.arange(0, C)[:, None, None] * A + tl.arange(0, A)[None, :, None]) * B + tl.arange(0, B)[None, None, :]
    tl.store(permuted_ptr + at, moved)
    joined = tl.join(square, square * 2)
    at = (tl.arange(0, A * B)[:, None, None] * C + tl.arange(0, C)[None, :, None]) * 2 + tl.arange(0, 2)[None, None, :]
    tl.store(joined_ptr + at, joined)
    even, odd = tl.split(tl.reshape(x, [A * B, C // 2, 2]))
    at = tl.arange(0, A * B)[:, None] * (C // 2) + tl.arange(0, C // 2)[None, :]
    tl.store(even_ptr + at, even)
    tl.store(odd_ptr + at, odd)


@pytest.mark.parametrize("dtype", ("int8", "float16", "int32", "float64"))
@pytest.mark.parametrize(("shape", "warps"), [((2, 4, 8), 4), ((1, 2, 2), 1), ((16, 2, 8), 2), ((4, 32, 2), 8)])
def test_shape_operations(dtype, shape, warps):
    A, B, C = shape
    x = np.arange(A * B * C).astype(dtype).reshape(shape)
    shapes = ((A * B * C,), (C, A * B), (C, A, B), (A * B, C, 2), (A * B, C // 2), (A * B, C // 2))
    outputs = [Guarded(each, dtype) for each in shapes]
    shape_kernel[(1,)](to_torch(x), *(output.tensor for output in outputs), A, B, C, num_warps=warps)
    square = x.reshape(A * B, C)
    expected = (
        x.ravel(),
        square.T,
        x.transpose(2, 0, 1),
        np.stack([square, square * x.dtype.type(2)], -1),
        square[:, ::2],
        square[:, 1::2],
    )
    for name, output, values in zip(
        ("reshape", "trans", "permute", "join", "even", "odd"), outputs, expected, strict=True
    ):
        assert_same(output.values(), np.ascontiguousarray(values), name)


@triton.jit
def cat_kernel(x_ptr, out_ptr, sum_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    both = tl.cat(x, x + 1000)
    tl.store(sum_ptr, tl.sum(both))
    tl.store(out_ptr + tl.arange(0, 2 * N), tl.interleave(x, x + 1000))


@pytest.mark.parametrize("n", (1, 16, 256))
def test_cat_and_interleave(n):
    x = np.arange(n, dtype=np.int32)
    out, total = Guarded(2 * n, "int32"), Guarded(1, "int32")
    cat_kernel[(1,)](to_torch(x), out.tensor, total.tensor, n)
    assert_same(out.values(), np.stack([x, x + 1000], -1).ravel(), "interleave")
    assert total.values()[0] == 2 * x.sum() + 1000 * n


@triton.jit
def arange_kernel(out_ptr, START: tl.constexpr, END: tl.constexpr):
    at = tl.arange(START, END)
    tl.store(out_ptr + at - START, at)
    tl.store(out_ptr + (END - START) + tl.arange(0, END - START), tl.full([END - START], 7, tl.int32))


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 7), (100, 356), (1, 4097)])
def test_ranges_and_constants(start, end):
    n = end - start
    out = Guarded(2 * n, "int32")
    arange_kernel[(1,)](out.tensor, start, end)
    assert_same(out.values(), np.concatenate([np.arange(start, end), np.full(n, 7)]).astype(np.int32), "arange")


@triton.jit
def grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    at = (z * ny + y) * nx + x
    tl.store(out_ptr + at, ((x * 100 + y) * 100 + z) * 1000 + nx * 100 + ny * 10 + nz)


@pytest.mark.parametrize("grid", [(1,), (5,), (3, 2), (2, 3, 4)])
def test_program_ids(grid):
    full = (*grid, 1, 1)[:3]
    out = Guarded(full[::-1], "int32")
    grid_kernel[grid](out.tensor)
    z, y, x = np.indices(full[::-1])
    expected = ((x * 100 + y) * 100 + z) * 1000 + full[0] * 100 + full[1] * 10 + full[2]
    assert_same(out.values(), expected.astype(np.int32), "program ids")
