"""Loads and stores: alignment, masks, strides, hints; nothing beside the output may be touched."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import DTYPES, GUARD, Guarded, assert_same, host_memory, inputs, numpy_dtype, to_torch


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, at < n), at < n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_misaligned_pointers(dtype):
    """Slices that start at any element: an access may not assume more than the pointer's own alignment."""
    for source_offset, target_offset in ((0, 0), (1, 0), (0, 1), (2, 2), (3, 5), (4, 8), (7, 15), (8, 4), (15, 1)):
        for n in (1, 7, 127, 256, 300):
            x = inputs(dtype, n + source_offset, n)
            out = Guarded(n, dtype, target_offset)
            copy_kernel[(triton.cdiv(n, 128),)](to_torch(x)[source_offset:], out.tensor, n, BLOCK=128)
            assert_same(out.values(), x[source_offset:], (dtype, source_offset, target_offset, n))


@triton.jit
def masked_kernel(x_ptr, mask_ptr, scalar_ptr, tensor_ptr, nothing_ptr, y_ptr, n, other, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    mask = tl.load(mask_ptr + at, inside, other=0)
    tl.store(scalar_ptr + at, tl.load(x_ptr + at, mask & inside, other=other), inside)
    others = (at * 2).to(x_ptr.dtype.element_ty)
    tl.store(tensor_ptr + at, tl.load(x_ptr + at, mask & inside, other=others), inside)
    tl.store(nothing_ptr + at, tl.load(x_ptr + at, mask & inside), inside)
    tl.store(y_ptr + at, others, mask & inside)


@pytest.mark.parametrize(
    "dtype", ("int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")
)
@pytest.mark.parametrize(("n", "block", "warps"), [(5, 8, 4), (45, 64, 2), (1000, 1024, 4)])
def test_masks_and_other(dtype, n, block, warps):
    rng = np.random.default_rng(n)
    x, mask = inputs(dtype, n, 4), rng.integers(0, 2, n).astype(bool)
    scalar, tensor, nothing, stored = (Guarded(n, dtype) for _ in range(4))
    masked_kernel[(1,)](
        to_torch(x),
        to_torch(mask),
        scalar.tensor,
        tensor.tensor,
        nothing.tensor,
        stored.tensor,
        n,
        11,
        BLOCK=block,
        num_warps=warps,
    )
    kind = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        others = (np.arange(n) * 2).astype(kind)
    assert_same(scalar.values(), np.where(mask, x, np.array(11, kind)), "scalar other")
    assert_same(tensor.values(), np.where(mask, x, others), "tensor other")
    assert_same(nothing.values()[mask], x[mask], "without other")
    untouched = np.full(n * kind.itemsize, GUARD, np.uint8).view(kind)
    assert (stored.values().view(np.uint8) == np.where(mask, others, untouched).astype(kind).view(np.uint8)).all()


@triton.jit
def store_count_kernel(counter_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(counter_ptr + at, 1)
    tl.atomic_add(counter_ptr + BLOCK, 1)


@pytest.mark.parametrize("block", (1, 2, 8, 16))
def test_blocks_smaller_than_the_workgroup_write_once(block):
    counter = torch.zeros(block + 1, dtype=torch.int32)
    store_count_kernel[(3,)](counter, BLOCK=block, num_warps=8)
    assert counter.tolist() == [3] * (block + 1)


@triton.jit
def increment_kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) + 1)


@pytest.mark.parametrize(("block", "warps"), [(1, 1), (2, 8), (16, 4), (64, 8), (2048, 1)])
def test_in_place(block, warps):
    out = Guarded(block, "int64", fill=0)
    increment_kernel[(1,)](out.tensor, BLOCK=block, num_warps=warps)
    assert_same(out.values(), np.ones(block, np.int64), "in place")


@triton.jit
def strided_kernel(x_ptr, y_ptr, M, N, x_row, x_column, y_row, y_column, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    columns = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < M) & (columns < N)
    x = tl.load(x_ptr + rows * x_row + columns * x_column, mask)
    tl.store(y_ptr + rows * y_row + columns * y_column, x, mask)


@pytest.mark.parametrize("dtype", ("int8", "float16", "bfloat16", "float32", "float64", "bool"))
@pytest.mark.parametrize(("M", "N"), [(1, 1), (33, 70), (64, 31)])
def test_strided_and_transposed(dtype, M, N):
    x = inputs(dtype, M * N).reshape(M, N)
    source = to_torch(x)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 32))
    plain, transposed, wide = Guarded((M, N), dtype), Guarded((N, M), dtype), Guarded((M, 2 * N), dtype, fill=1)
    strided_kernel[grid](source, plain.tensor, M, N, *source.stride(), *plain.tensor.stride(), BM=16, BN=32)
    assert_same(plain.values(), x, "rows")
    strided_kernel[grid](
        source, transposed.tensor, M, N, *source.stride(), *transposed.tensor.stride()[::-1], BM=16, BN=32
    )
    assert_same(transposed.values(), np.ascontiguousarray(x.T), "columns")
    strided_kernel[grid](source, wide.tensor, M, N, *source.stride(), 2 * N, 2, BM=16, BN=32, num_warps=2)
    written = wide.values()
    assert_same(np.ascontiguousarray(written[:, ::2]), x, "every other")
    assert (written[:, 1::2].copy().view(np.uint8) == 1).all(), "elements between the stored ones were written"


def test_negative_strides():
    x = inputs("float32", 40 * 20).reshape(40, 20)
    source, out = to_torch(x), Guarded((40, 20), "float32")
    last = source.view(-1)[-1:]
    strided_kernel[(3, 1)](last, out.tensor, 40, 20, -20, -1, 20, 1, BM=16, BN=32)
    assert_same(out.values(), np.ascontiguousarray(x[::-1, ::-1]), "reversed")


@triton.jit
def wide_offset_kernel(x_ptr, y_ptr, base, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    far = base.to(tl.int64) + at
    tl.store(y_ptr + at, tl.load(x_ptr + far, at < n), at < n)
    narrow = (at - n).to(tl.int8)
    tl.store(y_ptr + n + at, tl.load(x_ptr + base + n + narrow, at < n), at < n)


@pytest.mark.parametrize("base", (5, 2**20, 2**31 + 7))
def test_64_bit_offsets(base, tmp_path):
    """Element offsets past 2^31 into a sparse file that is mapped whole; only one page is touched."""
    whole = torch.from_numpy(np.memmap(tmp_path / "sparse", np.uint8, "w+", shape=(base + 200,)))
    whole[base : base + 100] = torch.arange(100, dtype=torch.uint8)
    out = Guarded(200, "uint8")
    wide_offset_kernel[(1,)](whole, out.tensor, base, 100, BLOCK=128)
    assert_same(out.values(), np.tile(np.arange(100, dtype=np.uint8), 2), base)


@triton.jit
def scalar_memory_kernel(x_ptr, y_ptr, n):
    total = tl.load(x_ptr)
    for index in range(1, n):
        total += tl.load(x_ptr + index)
    tl.store(y_ptr, total)
    tl.store(y_ptr + 1, total, mask=n > 100)
    tl.store(y_ptr + 2, tl.load(x_ptr + 1, mask=n > 3, other=77))
    tl.store(y_ptr + 3, tl.load(x_ptr + 1, mask=n > 100, other=77))


@pytest.mark.parametrize("dtype", ("int8", "int32", "int64", "float16", "float32", "float64"))
def test_scalar_loads_and_stores(dtype):
    x = np.array([3, 1, 4, 1, 5, 9, 2], dtype)
    out = Guarded(4, dtype, fill=0)
    scalar_memory_kernel[(1,)](to_torch(x), out.tensor, 7)
    assert_same(out.values(), np.array([25, 0, 1, 77], dtype), "scalars")


@triton.jit
def hints_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.max_contiguous(tl.multiple_of(at, BLOCK), BLOCK)
    mask = at < n
    a = tl.load(x_ptr + at, mask, cache_modifier=".ca", eviction_policy="evict_first")
    b = tl.load(x_ptr + at, mask, cache_modifier=".cg", eviction_policy="evict_last")
    c = tl.load(x_ptr + at, mask, cache_modifier=".cv", volatile=True)
    d = tl.load(x_ptr + at, mask, volatile=True, other=0)
    tl.store(y_ptr + at, a + b, mask, cache_modifier=".wb")
    tl.store(y_ptr + n + at, b + c, mask, cache_modifier=".cg", eviction_policy="evict_first")
    tl.store(y_ptr + 2 * n + at, c + d, mask, cache_modifier=".cs")
    tl.store(y_ptr + 3 * n + at, d + a, mask, cache_modifier=".wt")


def test_cache_hints_change_no_value():
    x = inputs("int32", 1000)
    out = Guarded((4, 1000), "int32")
    hints_kernel[(4,)](to_torch(x), out.tensor, 1000, BLOCK=256)
    with np.errstate(over="ignore"):
        assert_same(out.values(), np.tile(x + x, (4, 1)), "hints")


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    index = tl.load(index_ptr + at, mask, other=0)
    tl.store(y_ptr + at, tl.load(x_ptr + index, mask), mask)
    tl.store(z_ptr + index, tl.load(x_ptr + at, mask), mask)


@pytest.mark.parametrize("dtype", ("uint8", "float16", "int64"))
@pytest.mark.parametrize("index_dtype", ("int16", "int32", "int64"))
def test_indirect_accesses(dtype, index_dtype):
    x, index = inputs(dtype, 500), np.random.default_rng(2).permutation(500).astype(index_dtype)
    gathered, scattered = Guarded(500, dtype), Guarded(500, dtype)
    gather_kernel[(1,)](to_torch(x), to_torch(index), gathered.tensor, scattered.tensor, 500, BLOCK=512)
    expected = np.empty_like(x)
    expected[index] = x
    assert_same(gathered.values(), x[index], "gather")
    assert_same(scattered.values(), expected, "scatter")


@triton.jit
def pointer_table_kernel(table_ptr, y_ptr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for number in range(COUNT):
        source = tl.load(table_ptr + number).to(tl.pointer_type(tl.float32))
        tl.store(y_ptr + number * BLOCK + at, tl.load(source + at))
    pointers = tl.load(table_ptr + tl.arange(0, COUNT)).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr + COUNT * BLOCK + tl.arange(0, COUNT), tl.load(pointers + 1))


@pytest.mark.skipif(
    host_memory() != "zero-copy",
    reason="an address that a kernel reads from memory is the host's; only passed tensors are copied",
)
def test_pointers_from_memory():
    sources = [torch.arange(64, dtype=torch.float32) + 100 * number for number in range(4)]
    table = torch.tensor([source.data_ptr() for source in sources], dtype=torch.int64)
    out = Guarded(4 * 64 + 4, "float32")
    pointer_table_kernel[(1,)](table, out.tensor, COUNT=4, BLOCK=64)
    values = out.values()
    assert_same(values[:256], torch.cat(sources).numpy(), "scalar pointers")
    assert_same(values[256:], np.array([1, 101, 201, 301], np.float32), "tensor of pointers")


@triton.jit
def overlapping_kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x_ptr + at)
    tl.debug_barrier()
    tl.store(x_ptr + at + 1, values)


def test_overlapping_input_and_output():
    """Every lane has loaded before any stores."""
    out = Guarded(129, "float32", fill=0)
    out.tensor.copy_(torch.arange(129, dtype=torch.float32))
    overlapping_kernel[(1,)](out.tensor, BLOCK=128, num_warps=4)
    assert_same(out.values(), np.concatenate([[0], np.arange(128)]).astype(np.float32), "shifted")


@triton.jit
def unmapped_kernel(address, out, n, BLOCK: tl.constexpr):
    """Reads nothing where ``n`` is 0: by a mask, a branch, loops, and by lanes that share an address."""
    nothing = address.to(tl.int64).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    total = tl.load(nothing, mask=n > 0, other=1.0) + tl.load(nothing + n * n, mask=n > 0, other=2.0)
    if n > 0:
        total += tl.load(nothing) + tl.load(nothing + 1)
    for i in range(n):
        total += tl.load(nothing + i)
        total += tl.sum(tl.load(nothing + at * 0, mask=at < n, other=0.0))
    shared = tl.load(nothing + at * 0, mask=at < n, other=4.0)
    each = tl.load(nothing + at, mask=at < n, other=8.0)
    tl.store(out + at, total + shared + each)


def test_what_no_lane_reads_is_not_read():
    """Nothing is mapped at the first addresses. A driver may not read for lanes that are inactive either."""
    out = Guarded(16, "float32")
    unmapped_kernel[(1,)](16, out.tensor, 0, BLOCK=16)
    assert_same(out.values(), np.full(16, 15.0, np.float32))
