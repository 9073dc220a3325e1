"""Tensor descriptors, made on the host and in the kernel: blocks in, across and past the edges of the tensor.

Upstream 3.9 has no block pointers any more; its error says so.
"""

import itertools

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.device.helpers import Guarded, assert_same, inputs, to_torch

#: Offsets of blocks of 8 × 16 in a tensor of 21 × 40: inside, across each edge, before and past the end.
PLACES = [
    (0, 0),
    (8, 16),
    (16, 32),
    (20, 39),
    (-3, 0),
    (0, -5),
    (-7, -15),
    (-8, 0),
    (21, 0),
    (0, 40),
    (100, 100),
    (-2147483648, 0),
    (2147483632, 2147483632),
]
ROWS, COLUMNS, BM, BN = 21, 40, 8, 16


def block_of(x: np.ndarray, place: tuple[int, ...], block: tuple[int, ...], padding: float = 0) -> np.ndarray:
    """The block at ``place``, with ``padding`` where the tensor is not."""
    out = np.full(block, padding, x.dtype)
    for at in itertools.product(*map(range, block)):
        source = tuple(p + i for p, i in zip(place, at, strict=True))
        if all(0 <= i < extent for i, extent in zip(source, x.shape, strict=True)):
            out[at] = x[source]
    return out


@triton.jit
def load_made_here(x_ptr, out_ptr, places_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN], padding_option=PADDING)
    program = tl.program_id(0)
    row, column = tl.load(places_ptr + 2 * program), tl.load(places_ptr + 2 * program + 1)
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + program * BM * BN + at, x.load([row, column]))


@triton.jit
def load_passed(x, out_ptr, places_ptr, BM: tl.constexpr, BN: tl.constexpr):
    program = tl.program_id(0)
    row, column = tl.load(places_ptr + 2 * program), tl.load(places_ptr + 2 * program + 1)
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + program * BM * BN + at, x.load([row, column]))


def places() -> torch.Tensor:
    return torch.tensor(PLACES, dtype=torch.int32)


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize(
    ("dtype", "padding"),
    [
        ("int16", "zero"),
        ("int64", "zero"),
        ("float16", "zero"),
        ("float16", "nan"),
        ("float32", "nan"),
        ("bfloat16", "nan"),
        ("float64", "zero"),
    ],
)
def test_loads_at_every_edge(dtype: str, padding: str, passed: bool) -> None:
    x = inputs(dtype, ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    out = Guarded((len(PLACES), BM, BN), dtype)
    if passed:
        descriptor = TensorDescriptor.from_tensor(to_torch(x), [BM, BN], padding=padding)
        load_passed[(len(PLACES),)](descriptor, out.tensor, places(), BM=BM, BN=BN)
    else:
        load_made_here[(len(PLACES),)](to_torch(x), out.tensor, places(), ROWS, COLUMNS, BM=BM, BN=BN, PADDING=padding)
    filler = np.nan if padding == "nan" else 0
    expected = np.stack([block_of(x, place, (BM, BN), filler) for place in PLACES])
    assert_same(out.values(), expected, (dtype, padding))


@triton.jit
def store_passed(x_ptr, y, places_ptr, BM: tl.constexpr, BN: tl.constexpr, COUNT: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    for number in range(COUNT):
        row, column = tl.load(places_ptr + 2 * number), tl.load(places_ptr + 2 * number + 1)
        y.store([row, column], tl.load(x_ptr + number * BM * BN + at))
        tl.debug_barrier()


def test_stores_at_every_edge_leave_the_rest() -> None:
    blocks = inputs("float32", len(PLACES) * BM * BN).reshape(len(PLACES), BM, BN)
    out = Guarded((ROWS, COLUMNS), "float32", fill=0)
    store_passed[(1,)](
        to_torch(blocks), TensorDescriptor.from_tensor(out.tensor, [BM, BN]), places(), BM=BM, BN=BN, COUNT=len(PLACES)
    )
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    for (row, column), block in zip(PLACES, blocks, strict=True):
        for i, j in itertools.product(range(BM), range(BN)):
            if 0 <= row + i < ROWS and 0 <= column + j < COLUMNS:
                expected[row + i, column + j] = block[i, j]
    assert_same(out.values(), expected, "stores")


@triton.jit
def whole(x, y, SHAPE: tl.constexpr, BLOCK: tl.constexpr):
    """Copies block after block; every rank counts its blocks in its own way."""
    RANK: tl.constexpr = len(SHAPE)
    if RANK == 1:
        for a in range(0, SHAPE[0], BLOCK[0]):
            y.store([a], x.load([a]) + 1)
    elif RANK == 3:
        for a in range(0, SHAPE[0], BLOCK[0]):
            for b in range(0, SHAPE[1], BLOCK[1]):
                for c in range(0, SHAPE[2], BLOCK[2]):
                    y.store([a, b, c], x.load([a, b, c]) + 1)
    else:
        for a in range(0, SHAPE[0], BLOCK[0]):
            for e in range(0, SHAPE[4], BLOCK[4]):
                y.store([a, 0, 0, 0, e], x.load([a, 0, 0, 0, e]) + 1)


@pytest.mark.parametrize(
    ("shape", "block"), [((37,), (16,)), ((5, 7, 12), (2, 4, 8)), ((3, 1, 2, 3, 20), (2, 1, 2, 4, 8))]
)
def test_ranks(shape: tuple[int, ...], block: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    out = Guarded(shape, "int32")
    descriptors = [TensorDescriptor.from_tensor(tensor, list(block)) for tensor in (to_torch(x), out.tensor)]
    whole[(1,)](*descriptors, SHAPE=shape, BLOCK=block)
    assert_same(out.values(), x + 1, shape)


def test_a_view_with_longer_rows() -> None:
    """Strides of the tensor, not of its block: what lies between the rows is neither read nor written."""
    x = torch.arange(20 * 32, dtype=torch.int32).reshape(20, 32)
    y = torch.full((20, 32), -1, dtype=torch.int32)
    out = torch.full((len(PLACES), BM, BN), -1, dtype=torch.int32)
    view = x[2:15, 4:20]
    load_passed[(len(PLACES),)](TensorDescriptor.from_tensor(view, [BM, BN]), out, places(), BM=BM, BN=BN)
    expected = np.stack([block_of(view.numpy(), place, (BM, BN)) for place in PLACES])
    assert np.array_equal(out.numpy(), expected)
    blocks = torch.ones(len(PLACES), BM, BN, dtype=torch.int32)
    store_passed[(1,)](
        blocks, TensorDescriptor.from_tensor(y[2:15, 4:20], [BM, BN]), places(), BM=BM, BN=BN, COUNT=len(PLACES)
    )
    outside = torch.ones_like(y, dtype=torch.bool)
    outside[2:15, 4:20] = False
    assert (y[outside] == -1).all() and (y[2:10, 4:20] == 1).all()


@triton.jit
def reduce_into(y, values_ptr, row, column, BM: tl.constexpr, BN: tl.constexpr, OP: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    values = tl.load(values_ptr + at)
    if OP == "add":
        y.atomic_add([row, column], values)
    elif OP == "min":
        y.atomic_min([row, column], values)
    elif OP == "max":
        y.atomic_max([row, column], values)
    elif OP == "and":
        y.atomic_and([row, column], values)
    elif OP == "or":
        y.atomic_or([row, column], values)
    else:
        y.atomic_xor([row, column], values)


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(("op", "dtype"), [("add", "float32"), *itertools.product(REDUCTIONS, ["int32", "uint32"])])
def test_reductions_into_memory(op: str, dtype: str) -> None:
    x = (
        inputs(dtype, ROWS * COLUMNS)
        if dtype != "float32"
        else np.random.default_rng(1).standard_normal(ROWS * COLUMNS).astype(np.float32)
    ).reshape(ROWS, COLUMNS)
    values = (
        inputs(dtype, BM * BN, seed=2)
        if dtype != "float32"
        else np.random.default_rng(2).standard_normal(BM * BN).astype(np.float32)
    ).reshape(BM, BN)
    for place in ((0, 0), (16, 32), (-3, -5), (30, 0)):
        out = Guarded((ROWS, COLUMNS), dtype)
        out.tensor.copy_(to_torch(x))
        reduce_into[(3,)](
            TensorDescriptor.from_tensor(out.tensor, [BM, BN]), to_torch(values), *place, BM=BM, BN=BN, OP=op
        )
        expected = x.copy()
        for i, j in itertools.product(range(BM), range(BN)):
            at = place[0] + i, place[1] + j
            if 0 <= at[0] < ROWS and 0 <= at[1] < COLUMNS:
                for _ in range(3):
                    with np.errstate(over="ignore"):
                        expected[at] = REDUCTIONS[op](expected[at], values[i, j])
        assert_same(out.values(), expected, (op, dtype, place))


@triton.jit
def gather_rows(x, out_ptr, rows_ptr, column, COUNT: tl.constexpr, BN: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, COUNT))
    at = tl.arange(0, COUNT)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + at, x.gather(rows, column))


@triton.jit
def scatter_rows(values_ptr, y, rows_ptr, column, COUNT: tl.constexpr, BN: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, COUNT))
    at = tl.arange(0, COUNT)[:, None] * BN + tl.arange(0, BN)[None, :]
    y.scatter(tl.load(values_ptr + at), rows, column)


@pytest.mark.parametrize("column", [0, 16, 33, 40, -4])
def test_gather_and_scatter_of_rows(column: int) -> None:
    rows = np.array([3, 0, 20, 7, -1, 21, 19, 12, 1000, 5, 6, 2, 11, 1, -100, 4], np.int32)
    x = inputs("float16", ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    out = Guarded((16, BN), "float16")
    gather_rows[(1,)](
        TensorDescriptor.from_tensor(to_torch(x), [1, BN]), out.tensor, to_torch(rows), column, COUNT=16, BN=BN
    )
    expected = np.concatenate([block_of(x, (int(row), column), (1, BN)) for row in rows])
    assert_same(out.values(), expected, column)
    out = Guarded((ROWS, COLUMNS), "float16")
    out.tensor.copy_(to_torch(x))
    values = inputs("float16", 16 * BN, seed=5).reshape(16, BN)
    scatter_rows[(1,)](
        to_torch(values), TensorDescriptor.from_tensor(out.tensor, [1, BN]), to_torch(rows), column, COUNT=16, BN=BN
    )
    expected = x.copy()
    for row, line in zip(rows, values, strict=True):
        for j in range(BN):
            if 0 <= row < ROWS and 0 <= column + j < COLUMNS:
                expected[row, column + j] = line[j]
    assert_same(out.values(), expected, column)


@triton.jit
def _twice(descriptor, row, column):
    return descriptor.load([row, column]) * 2


@triton.jit
def carried(x_ptr, y, M, N, n, BM: tl.constexpr, BN: tl.constexpr):
    """A descriptor that changes in a loop and in a branch, and goes through a function."""
    desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(n):
        total += _twice(desc, 0, 0)
        if step % 2 == 0:
            desc = tl.make_tensor_descriptor(x_ptr + step * N, [M - step, N], [N, 1], [BM, BN])
        else:
            desc = tl.make_tensor_descriptor(x_ptr, [M, N - step], [N, 1], [BM, BN])
    y.store([0, 0], total)


def test_a_descriptor_carried_by_a_loop() -> None:
    x = np.random.default_rng(3).integers(-9, 9, (12, 16)).astype(np.float32)
    out = Guarded((BM, BN), "float32")
    carried[(1,)](to_torch(x), TensorDescriptor.from_tensor(out.tensor, [BM, BN]), 12, 16, 9, BM=BM, BN=BN)
    view, expected = x, np.zeros((BM, BN), np.float32)
    for step in range(9):
        expected += 2 * block_of(view, (0, 0), (BM, BN))
        view = x[step:] if step % 2 == 0 else x[:, : 16 - step]
    assert_same(out.values(), expected, "carried")


@triton.jit
def tuples(pair, out_ptr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + at, pair[0].load([0, 0]) - pair[1].load([1, 0]))


def test_descriptors_in_a_tuple() -> None:
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    tensor = to_torch(x)
    out = Guarded((BM, BN), "float32")
    tuples[(1,)](
        (TensorDescriptor.from_tensor(tensor, [BM, BN]), TensorDescriptor.from_tensor(tensor[2:], [BM, BN])),
        out.tensor,
        BM=BM,
        BN=BN,
    )
    assert_same(out.values(), np.full((BM, BN), -3.0 * COLUMNS, np.float32), "tuple")


def test_rounding_to_tf32() -> None:
    """round_f32_to_tf32: loads give numbers with ten bits after the point, rounded to nearest even."""
    x = np.random.default_rng(4).standard_normal(ROWS * COLUMNS).astype(np.float32).reshape(ROWS, COLUMNS)
    x[0, :4] = 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-11 - 2.0**-23
    out = Guarded((len(PLACES), BM, BN), "float32")
    descriptor = TensorDescriptor.from_tensor(to_torch(x), [BM, BN], round_f32_to_tf32=True)
    load_passed[(len(PLACES),)](descriptor, out.tensor, places(), BM=BM, BN=BN)
    bits = x.view(np.uint32)
    rounded = (bits + 0xFFF + (bits >> 13 & 1) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    expected = np.stack([block_of(rounded, place, (BM, BN)) for place in PLACES])
    assert_same(out.values(), expected, "tf32")


@triton.jit
def block_pointer(x_ptr, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (8, 8), (8, 1), (0, 0), (BM, BN), (1, 0))
    tl.store(block, tl.load(block, boundary_check=(0, 1)), boundary_check=(0, 1))


def test_block_pointers_are_gone_upstream() -> None:
    with pytest.raises(CompilationError, match="tensor descriptor"):
        block_pointer[(1,)](torch.zeros(64), BM=8, BN=8)
