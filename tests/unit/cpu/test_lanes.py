"""What lanes do together and apart: control flow, masks and accesses, in every set of instructions of this machine."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.objects import make
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from tests.unit.cpu.kernels import block_of, launch, run

RANDOM = np.random.default_rng(7)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000])
def test_masks_leave_neighbours_alone(profile: str, dtype: str, n: int) -> None:
    x, y = (RANDOM.integers(0, 50, n).astype(dtype) for _ in range(2))
    out = np.full(n + 40, 99, dtype)
    run(profile, add, (-(-n // 64),), x, y, out, n, BLOCK=64)
    assert np.array_equal(out[:n], x + y) and (out[n:] == 99).all()


@triton.jit
def longest_sum(x, lengths, out, n, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    length = tl.load(lengths + row, mask=row < n, other=0)
    place, mask = row[:, None] * columns + column[None, :], (row < n)[:, None] & (column < columns)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for i in range(tl.max(length, 0)):
        total += tl.load(x + place + i * columns, mask=(i < length)[:, None] & mask, other=0.0)
    tl.store(out + place, total, mask=mask)


@pytest.mark.parametrize(("rows", "columns", "n", "used"), [(64, 16, 50, 10), (16, 256, 10, 250), (128, 32, 128, 32)])
@pytest.mark.parametrize("longest", [0, 1, 3])
def test_a_sum_of_as_many_rounds_as_a_reduction_found(
    profile: str, longest: int, rows: int, columns: int, n: int, used: int
) -> None:
    """Its accumulator, an array in memory, is filled only without a round: then alone, by the lanes that find so."""
    x = RANDOM.standard_normal((n + longest, used)).astype(np.float32)
    lengths = RANDOM.integers(0, longest + 1, n).astype(np.int32)
    lengths[n // 2] = longest
    out = np.full((n + 2, used), 99, np.float32)
    run(profile, longest_sum, (1,), x, lengths, out, n, used, ROWS=rows, COLUMNS=columns)
    expected = np.stack([x[row : row + count].sum(0, np.float64) for row, count in enumerate(lengths)])
    np.testing.assert_allclose(out[:n], expected, rtol=1e-6, atol=1e-6)
    assert (out[n:] == 99).all()


@triton.jit
def halved_until_odd(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=1)
    going, ever = value % 2 == 0, tl.zeros((BLOCK,), tl.int1)
    while tl.max(going.to(tl.int32)) > 0:
        ever = ever | going
        value = tl.where(going, value // 2, value)
        going = going & (value % 2 == 0)
    tl.store(out + at, tl.where(ever, value, -value), mask=at < n)


@pytest.mark.parametrize(("block", "n", "odd"), [(1024, 1000, False), (1024, 1000, True), (4096, 4001, False)])
def test_conditions_that_a_loop_carries(profile: str, block: int, n: int, odd: bool) -> None:
    """They are arrays of bools in memory, filled by the lanes that find a reduction's bound."""
    x = RANDOM.integers(1, 1 << 20, n).astype(np.int32) * 2 + odd
    out = np.full(n + 2, 99, np.int32)
    run(profile, halved_until_odd, (1,), x, out, n, BLOCK=block)
    assert np.array_equal(out[:n], -x if odd else x // (x & -x)) and (out[n:] == 99).all()


@triton.jit
def exchanged(x, lengths, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first, second, pointers = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32) + 1, x + at
    for _ in range(tl.max(tl.load(lengths + at, mask=at < n, other=0))):
        first, second = second, first + tl.load(pointers, mask=at < n, other=0)
        pointers += n
    tl.store(out + at, first, mask=at < n)
    tl.store(out + n + at, second + tl.load(pointers, mask=at < n, other=0), mask=at < n)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
@pytest.mark.parametrize(("block", "n"), [(1024, 1000), (4096, 4001)])
def test_arrays_that_a_loop_exchanges(profile: str, block: int, n: int, rounds: int) -> None:
    """Accumulators are copied from one array to another, and pointers lie in a third one."""
    x, lengths = RANDOM.integers(-99, 99, (rounds + 1, n)).astype(np.float32), np.full(n, rounds, np.int32)
    out = np.full(2 * n + 2, 99, np.float32)
    run(profile, exchanged, (1,), x, lengths, out, n, BLOCK=block)
    first, second = np.zeros(n), np.ones(n)
    for row in x[:rounds]:
        first, second = second, first + row
    assert np.array_equal(out[: 2 * n], np.concatenate([first, second + x[rounds]])) and (out[2 * n :] == 99).all()


@triton.jit
def collatz(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    number = tl.load(x + at, mask=at < n, other=1)
    steps = tl.zeros_like(number)
    while tl.max(number, 0) > 1:
        steps += (number > 1).to(tl.int32)
        number = tl.where(number > 1, tl.where(number % 2 == 1, 3 * number + 1, number // 2), number)
    tl.store(out + at, steps, mask=at < n)


def test_a_loop_that_ends_by_what_all_lanes_found(profile: str) -> None:
    x = np.arange(1, 38, dtype=np.int32)
    out = np.zeros(37, np.int32)
    run(profile, collatz, (1,), x, out, 37, BLOCK=64)
    expected = []
    for number in x.tolist():
        steps = 0
        while number > 1:
            number, steps = (3 * number + 1 if number % 2 else number // 2), steps + 1
        expected.append(steps)
    assert out.tolist() == expected


@triton.jit
def gathered(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    place = tl.load(index + at, mask=mask, other=-(1 << 30))
    tl.store(out + at, tl.load(x + place, mask=mask & (place >= 0), other=-1), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16", "float64"])
@pytest.mark.parametrize("order", ["random", "neighbours", "negative"])
def test_gathers(profile: str, dtype: str, order: str) -> None:
    x = RANDOM.integers(0, 100, 300).astype(dtype)
    index = RANDOM.integers(0, 300, 253).astype(np.int32) if order != "neighbours" else np.arange(253, dtype=np.int32)
    if order == "negative":
        index[::3] = -(1 << 30)
    out = np.zeros(253, dtype)
    run(profile, gathered, (2,), x, index, out, 253, BLOCK=128)
    assert np.array_equal(out, np.where(index >= 0, x[np.maximum(index, 0)], np.array(-1, dtype)))


@triton.jit
def scattered(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + tl.load(index + at, mask=mask, other=0), tl.load(x + at, mask=mask), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_scatters(profile: str, dtype: str) -> None:
    x, index = RANDOM.integers(0, 100, 121).astype(dtype), RANDOM.permutation(121).astype(np.int32)
    out = np.full(125, 77, dtype)
    run(profile, scattered, (1,), x, index, out, 121, BLOCK=128)
    expected = np.full(125, 77, dtype)
    expected[index] = x
    assert np.array_equal(out, expected)


@triton.jit
def divided(x, y, quotient, remainder, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    a, b = tl.load(x + at, mask=mask), tl.load(y + at, mask=mask)
    tl.store(quotient + at, tl.where(b != 0, a // b, 0), mask=mask)
    tl.store(remainder + at, tl.where(b != 0, a % b, 0), mask=mask)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_quotients_of_every_divisor(profile: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 7, 100], dtype)
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(ends, ends))
    if info.min:
        y = np.where((x == info.min) & (y == y.dtype.type(-1)), y.dtype.type(5), y)
        y[:10] = np.array([-1, -2, -3, -7, -100, info.min, info.min + 1, -5, -11, -1], dtype)
        x[9] = info.max
    quotient, remainder = np.zeros_like(x), np.zeros_like(x)
    run(profile, divided, (1,), x, y, quotient, remainder, len(x), BLOCK=128)
    for a, b, q, r in zip(x.tolist(), y.tolist(), quotient.tolist(), remainder.tolist(), strict=True):
        if b == 0:
            assert (q, r) == (0, 0)
        else:
            wanted = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            if wanted <= info.max:  # the smallest number by -1 has no quotient
                assert (q, r) == (wanted, a - wanted * b), (a, b)


@triton.jit
def widened(out, first, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    number = first + at
    tl.store(out + at, number.to(tl.int64))
    tl.store(out + BLOCK + at, number.to(tl.uint32).to(tl.int64))


@pytest.mark.parametrize("first", [-8, 2**31 - 8, 5, 0])
def test_sums_that_wrap_are_widened_lane_by_lane(profile: str, first: int) -> None:
    out = np.zeros(64, np.int64)
    run(profile, widened, (1,), out, first, BLOCK=32)
    with np.errstate(over="ignore"):
        number = np.int32(first) + np.arange(32, dtype=np.int32)
    assert np.array_equal(out, np.concatenate([number.astype(np.int64), number.astype(np.uint32).astype(np.int64)]))


@triton.jit
def counted(bins, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


def test_atomics_of_lanes_that_meet(profile: str) -> None:
    x = RANDOM.integers(0, 7, 1000).astype(np.int32)
    bins = np.zeros(8, np.int32)
    run(profile, counted, (8,), bins, x, 1000, BLOCK=128)
    assert bins.tolist() == np.bincount(x, minlength=8).tolist()


@triton.jit
def ranked(bins, x, places, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(places + at, tl.atomic_add(bins + value, 1))
    tl.atomic_add(bins + 8 + value, 1)


def test_atomics_give_what_they_found_where_it_is_used(profile: str) -> None:
    """One is used, and the other is not: both are additions of the same type."""
    x = RANDOM.integers(0, 7, 64).astype(np.int32)
    bins, places = np.zeros(16, np.int32), np.full(64, -1, np.int32)
    run(profile, ranked, (1,), bins, x, places, BLOCK=64)
    assert bins.tolist() == 2 * np.bincount(x, minlength=8).tolist()
    for value in range(8):
        found = places[x == value]
        assert sorted(found) == list(range(len(found)))


@triton.jit
def early(x, out, n):
    number = tl.program_id(0)
    if number >= n:
        return
    total = 0
    for i in range(number):
        if i % 3 == 0:
            total += i
    if total > 5:
        tl.store(out + number, tl.load(x + number) + total)
    else:
        tl.store(out + number, total)


def test_uniform_branches_and_returns(profile: str) -> None:
    x, out = np.arange(20, dtype=np.int32) * 100, np.full(20, -1, np.int32)
    run(profile, early, (20,), x, out, 17)
    totals = [sum(i for i in range(number) if i % 3 == 0) for number in range(17)]
    expected = [t + 100 * number if t > 5 else t for number, t in enumerate(totals)]
    assert out.tolist() == [*expected, -1, -1, -1]


@triton.jit
def rows(x, out, WIDTH: tl.constexpr, HEIGHT: tl.constexpr):
    at = tl.arange(0, HEIGHT)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    value = tl.load(x + at)
    tl.store(out + tl.arange(0, HEIGHT), tl.sum(value, 1))
    tl.store(out + HEIGHT + tl.arange(0, WIDTH), tl.max(value, 0))


@pytest.mark.parametrize(("height", "width"), [(1, 64), (4, 4), (64, 2), (16, 128), (2, 8)])
@pytest.mark.parametrize("warps", [1, 4])
def test_reductions_along_each_axis(profile: str, height: int, width: int, warps: int) -> None:
    x = RANDOM.integers(-50, 50, (height, width)).astype(np.int32)
    out = np.zeros(height + width, np.int32)
    run(profile, rows, (1,), x, out, WIDTH=width, HEIGHT=height, num_warps=warps)
    assert np.array_equal(out, np.concatenate([x.sum(1), x.max(0)]))


def test_several_subgroups_are_more_lanes(profile: str) -> None:
    @gluon.jit
    def turned(out, LANES: gl.constexpr, WARPS: gl.constexpr):
        first: gl.constexpr = gl.BlockedLayout([1, 4], [LANES, 1], [WARPS, 1], [1, 0])
        second: gl.constexpr = gl.BlockedLayout([4, 1], [1, LANES], [1, WARPS], [0, 1])
        row = gl.arange(0, 64, gl.SliceLayout(1, first))[:, None]
        column = gl.arange(0, 64, gl.SliceLayout(0, first))[None, :]
        value = gl.convert_layout(row * 64 + column, second)
        row = gl.arange(0, 64, gl.SliceLayout(1, second))[:, None]
        column = gl.arange(0, 64, gl.SliceLayout(0, second))[None, :]
        gl.store(out + column * 64 + row, value)

    out = np.zeros((64, 64), np.int32)
    _run_gluon(profile, turned, out)
    assert np.array_equal(out, np.arange(4096, dtype=np.int32).reshape(64, 64).T)


def _run_gluon(profile: str, kernel: Any, out: np.ndarray[Any, Any]) -> None:
    lanes = PROFILES[profile].subgroup_size
    signature = {"out": "*i32", "LANES": "constexpr", "WARPS": "constexpr"}
    source = GluonASTSource(kernel, signature, {"LANES": lanes, "WARPS": 4})
    target = GPUTarget("spirv", PROFILES[profile].arch(), lanes)
    found = triton.compile(source, target=target, options={"num_warps": 4})
    code = make(found.asm["spv"], lanes, PROFILES[profile].processor)
    launch(code.code, code.scratch, found.metadata.name, block_of([out]), (1,))


@triton.jit
def wrapped(x, out, first, modulus, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = (first + at) % modulus
    for i in range(n):
        value = tl.load(x + i * 3 + place * STEP)
        tl.store(out + i * 50 + place, value)


@pytest.mark.parametrize("first", [0, 5, 30])
@pytest.mark.parametrize("modulus", [48, 17, 33])
@pytest.mark.parametrize("step", [1, 2])
def test_places_that_start_anew(profile: str, first: int, modulus: int, step: int) -> None:
    x = RANDOM.integers(0, 1000, 200).astype(np.int32)
    out = np.full((4, 50), -1, np.int32)
    run(profile, wrapped, (1,), x, out, first, modulus, 4, BLOCK=32, STEP=step)
    expected = np.full((4, 50), -1, np.int32)
    places = (first + np.arange(32)) % modulus
    for i in range(4):
        expected[i, places] = x[i * 3 + places * step]
    assert np.array_equal(out, expected)


@triton.jit
def chosen(x, y, low, high, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(low + at, tl.minimum(tl.load(x + at), tl.load(y + at)))
    tl.store(high + at, tl.maximum(tl.load(x + at), tl.load(y + at)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_number_is_chosen_where_one_operand_is_none(profile: str, dtype: str) -> None:
    ends = np.array([np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 2.5, -2.5], dtype)
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(ends, ends))
    low, high = np.zeros_like(x), np.zeros_like(x)
    run(profile, chosen, (1,), x, y, low, high, BLOCK=64)
    assert np.array_equal(low, np.fmin(x, y), equal_nan=True) and np.array_equal(high, np.fmax(x, y), equal_nan=True)


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n))


def test_lanes_that_meet_in_shared_memory(profile: str) -> None:
    x = RANDOM.integers(0, 16, 203).astype(np.int32)
    out = np.zeros(16, np.int32)
    run(profile, histogram, (1,), x, out, 203, BINS=16, BLOCK=256)
    assert out.tolist() == np.bincount(x, minlength=16).tolist()
