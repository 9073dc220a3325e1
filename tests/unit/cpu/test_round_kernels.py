"""Products of rounds of a loop, with factors in device memory, against NumPy in float64."""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from triton.backends.spirv.abi.tile_products import RoundsProduct, TileProduct
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import Host, host_of, level_of, runs
from triton.backends.spirv.cpu.micro_kernels import block_of
from triton.backends.spirv.cpu.round_kernels import define_rounds

from .kernels import FEATURES_HERE, PROFILES_HERE, run_text

_DTYPES: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_GUARD = 16


def run(one: RoundsProduct, profile: str | Host, c: Any, a: Any, b: Any, *numbers: int) -> None:
    """``a``, ``b``: addresses; ``numbers``: the other parameters."""
    host = profile if isinstance(profile, Host) else host_of(PROFILES[profile].processor)
    text, declarations = define_rounds(one, host)
    loads = [
        f"  %p{name} = getelementptr i8, ptr %arguments, i64 {place}\n  %{name} = load ptr, ptr %p{name}, align 8"
        for name, place in (("c", 0), ("a", 8), ("b", 16))
    ]
    head = "define void @run(ptr %arguments, i64 %first, i64 %last, ptr %grid, ptr %scratch, ptr %stop) {"
    given = "".join(f", ptr inttoptr (i64 {number} to ptr)" for number in numbers)
    call = f"  call void @{one.name}(ptr %c, ptr %a, ptr %b{given})\n  ret void\n}}"
    run_text("\n".join([*sorted(declarations), text, head, *loads, call]), host, "run", [c, a, b])


def placed(
    rng: np.random.Generator, left: Any, right: Any, columns: str, rows: int, across: int, places: Any = None
) -> tuple[Any, Any, Any, Any, int]:
    """B in memory, the order of its columns, the addresses of the first ``rows`` of A (which are at ``places``) and
    ``across`` of B (the others' are no memory), and at how many places after another those of B are."""
    (m, _), (_, n) = left.shape, right.shape
    order = np.arange(n) if columns == "together" else rng.permutation(n)
    memory = np.asfortranarray(right) if columns == "turned" else right
    step = 1 if columns == "together" else 16
    a_at, b_at = np.full(m, 64, np.uint64), np.full(step * n, 64, np.uint64)
    a_at[:rows] = left.ctypes.data + (np.arange(m) if places is None else places)[:rows] * left.strides[0]
    b_at[: step * across : step] = memory.ctypes.data + order[:across] * memory.strides[1]
    return memory, order, a_at, b_at, step


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize(
    ("element", "a", "b"), [("f32", "f32", "f32"), ("f32", "f16", "f32"), ("f32", "f16", "f16"), ("f64", "f64", "f64")]
)
@pytest.mark.parametrize("columns", ["together", "apart", "turned"])
@pytest.mark.parametrize(
    ("shape", "rounds"), [((64, 64, 32), 11), ((1, 64, 16), 3), ((8, 16, 4), 5), ((32, 128, 1024), 2), ((16, 32, 8), 0)]
)
def test_rounds(
    shape: tuple[int, int, int], rounds: int, columns: str, element: str, a: str, b: str, profile: str
) -> None:
    m, n, k = shape
    rng, total = np.random.default_rng(0), k * rounds + 3
    left = rng.standard_normal((m, total)).astype(_DTYPES[a])
    right = rng.standard_normal((total, n + 5)).astype(_DTYPES[b])
    order, columns_at = rng.permutation(m), np.arange(n)
    if columns == "apart":
        columns_at = (np.arange(n) + n // 2 + 1) % (n + 5)
    memory = np.asfortranarray(right) if columns == "turned" else right
    steps = 1 if columns == "together" else 16
    c_step = n + (0 if n > 16 else 16)
    guarded = rng.standard_normal(m * c_step + 2 * _GUARD).astype(_DTYPES[element])
    before, c = guarded.copy(), guarded[_GUARD : _GUARD + m * c_step]
    a_at, b_at = np.zeros(16 * m, np.uint64), np.zeros(steps * n, np.uint64)
    a_at[::16] = left.ctypes.data + order * left.strides[0]
    b_at[::steps] = memory.ctypes.data + columns_at * memory.strides[1]
    one = RoundsProduct(element, m, n, k, c_step, (a, 16), (b, steps), columns == "turned")
    assert RoundsProduct.parse(one.name) == one
    run(one, profile, c, a_at, b_at, memory.strides[0], k * rounds, 0, m, n, m)
    result = guarded[_GUARD : _GUARD + m * c_step].reshape(m, c_step)
    initial = before[_GUARD : _GUARD + m * c_step].reshape(m, c_step)
    wide_a, wide_b = left[order, : k * rounds].astype(float), right[: k * rounds, columns_at].astype(float)
    bound = (np.abs(wide_a) @ np.abs(wide_b) + np.abs(initial[:, :n])) * (k * rounds + 1) * np.finfo(c.dtype).eps
    assert (np.abs(result[:, :n] - initial[:, :n] - wide_a @ wide_b) <= bound).all()
    np.testing.assert_array_equal(result[:, n:], initial[:, n:])
    np.testing.assert_array_equal(guarded[:_GUARD], before[:_GUARD])
    np.testing.assert_array_equal(guarded[-_GUARD:], before[-_GUARD:])


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("columns", ["together", "apart", "turned"])
@pytest.mark.parametrize("steps", [0, 1, 31, 32, 197, 333])
@pytest.mark.parametrize(("rows", "across"), [(64, 64), (41, 33), (5, 16), (0, 64), (64, 0)])
def test_what_is_not_there_counts_as_zeros_and_is_not_read(
    rows: int, across: int, steps: int, columns: str, dtype: str, profile: str
) -> None:
    """Rows of A and columns of B from some on, and k: their addresses are no memory, or hold NaN."""
    m = n = 64
    rng = np.random.default_rng(steps)
    left, right = (rng.standard_normal(shape).astype(_DTYPES[dtype]) for shape in ((m, 336), (336, n)))
    left[:, steps:], right[steps:] = np.nan, np.nan
    memory, order, a_at, b_at, step = placed(rng, left, right, columns, rows, across)
    c = np.full((m, n), -0.0, np.float32)
    one = RoundsProduct("f32", m, n, 32, n, (dtype, 1), (dtype, step), columns == "turned")
    run(one, profile, c, a_at, b_at, memory.strides[0], steps, int(steps % 32 > 0), rows, across, m)
    wide_a, wide_b = left[:, :steps].astype(float), right[:steps, order].astype(float)
    wide_a[rows:], wide_b[:, across:] = 0, 0
    bound = np.abs(wide_a) @ np.abs(wide_b) * (steps + 1) * np.finfo(np.float32).eps
    assert (np.abs(c - wide_a @ wide_b) <= bound).all()
    assert np.signbit(c).all() == (steps == 0)


@contextmanager
def at_the_end(array: np.ndarray[Any, Any]) -> Iterator[int]:
    """The address of a copy, behind which there is no memory of the process."""
    with mmap.mmap(-1, (array.nbytes // mmap.PAGESIZE + 2) * mmap.PAGESIZE) as pages:
        libc, start = ctypes.CDLL(None, use_errno=True), ctypes.addressof(ctypes.c_char.from_buffer(pages))
        behind = start + len(pages) - mmap.PAGESIZE
        ctypes.memmove(behind - array.nbytes, array.ctypes.data, array.nbytes)
        page = ctypes.c_void_p(behind), ctypes.c_size_t(mmap.PAGESIZE)
        assert libc.mprotect(*page, 0) == 0
        yield behind - array.nbytes
        libc.mprotect(*page, 3)


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("across", [0, 1, 15, 16, 33, 63])
def test_columns_that_are_not_there_have_no_memory_behind_the_others(across: int, dtype: str, profile: str) -> None:
    """A tile at the right edge of B: addresses go on, and the next page is none of the process."""
    m, n, k, steps = 8, 64, 32, 33
    rng = np.random.default_rng(across)
    left, right = (rng.standard_normal(shape).astype(_DTYPES[dtype]) for shape in ((m, steps), (steps, across)))
    a_at = (left.ctypes.data + np.arange(m) * left.strides[0]).astype(np.uint64)
    c = np.full((m, n), 3.0, _DTYPES["f64" if dtype == "f64" else "f32"])
    one = RoundsProduct("f64" if dtype == "f64" else "f32", m, n, k, n, (dtype, 1), (dtype, 1), False)
    with at_the_end(right) as first:
        b_at = (first + np.arange(n) * right.itemsize).astype(np.uint64)
        run(one, profile, c, a_at, b_at, across * right.itemsize, steps, 1, m, across, m)
    wide_a, wide_b = left.astype(float), np.zeros((steps, n))
    wide_b[:, :across] = right
    bound = (np.abs(wide_a) @ np.abs(wide_b) + 3) * (steps + 1) * np.finfo(c.dtype).eps
    assert (np.abs(c - 3 - wide_a @ wide_b) <= bound).all()


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("padded", [0, 1])
def test_products_of_zeros_behind_the_last_make_positive_zeros_of_negative(padded: int, profile: str) -> None:
    m, n, steps = 16, 32, 5
    left, right = np.full((m, steps), -1e-30, np.float32), np.full((steps, n), 1e-30, np.float32)
    c = np.zeros((m, n), np.float32)
    a_at, b_at = (
        np.array([each.ctypes.data + at * size for at in range(count)], np.uint64)
        for each, count, size in ((left, m, left.strides[0]), (right, n, right.strides[1]))
    )
    one = RoundsProduct("f32", m, n, 8, n, ("f32", 1), ("f32", 1), False)
    run(one, profile, c, a_at, b_at, right.strides[0], steps, padded, m, n, m)
    assert (c == 0).all()
    assert (np.signbit(c) != bool(padded)).all()


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("b", ["f16", "f32"])
@pytest.mark.parametrize("m", [4, 8, 32, 64, 128])
def test_rows_of_b_that_are_packed_next_are_all_asked_for_meanwhile(m: int, b: str, profile: str) -> None:
    """By the blocks of rows behind the first, or by that, if it is the only one."""
    host = host_of(PROFILES[profile].processor)
    one = RoundsProduct("f32", m, 64, 32, 64, ("f32", 16), (b, 1), False)
    text, _ = define_rounds(one, host)
    block = block_of(TileProduct("f32", 1, m, 64, 32, True, (0, 0, 0), (0, 0, 0), (0, 0, 0)), host)
    rows = (32 << 10) // (4 * block.columns)  # that are packed at a time
    blocks = -(-m // block.rows)
    lines = -(-block.columns * {"f16": 2, "f32": 4}[b] // 64)
    asked = text.count("i32 0, i32 2, i32 1)")  # to the level of these rows
    if blocks == 1:
        assert asked == lines  # of each k
    else:
        kinds = 1 + bool(m % block.rows)
        share = asked // kinds * (rows // 4) * (blocks - 1)
        assert lines * rows <= share <= 2 * lines * rows + (blocks - 1) * (rows // 4)
    turned, _ = define_rounds(replace(one, turned=True), host)
    assert "i32 0, i32 2, i32 1)" not in turned


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("a", ["f16", "f32"])
def test_rows_of_a_that_the_next_block_takes_are_asked_for_meanwhile(a: str, profile: str) -> None:
    """A line at least of each row for so many k as it holds elements."""
    host = host_of(PROFILES[profile].processor)
    one = RoundsProduct("f32", 64, 64, 32, 64, (a, 16), ("f32", 1), True)
    block = block_of(TileProduct("f32", 1, 64, 64, 32, True, (0, 0, 0), (0, 0, 0), (0, 0, 0)), host)
    text, _ = define_rounds(one, host)
    turns = 1 << (block.rows - 1).bit_length()
    lines = -(-turns * 4 * {"f16": 2, "f32": 4}[a] // 64)
    assert text.count("i32 0, i32 3, i32 1)") == lines * (1 + bool(64 % block.rows))


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("needed", [0, 1, 6, 41, 62, 64])
@pytest.mark.parametrize("columns", ["together", "turned"])
def test_rows_that_are_needed_are_right(columns: str, needed: int, profile: str) -> None:
    m, n, steps = 64, 128, 300
    rng = np.random.default_rng(needed)
    left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, steps), (steps, n)))
    memory = np.asfortranarray(right) if columns == "turned" else right
    a_at = (left.ctypes.data + np.arange(m) * left.strides[0]).astype(np.uint64)
    b_at = (memory.ctypes.data + np.arange(n) * memory.strides[1]).astype(np.uint64)
    c, whole = (np.zeros((m + 1, n), np.float32) for _ in range(2))
    c[m] = 7
    one = RoundsProduct("f32", m, n, 32, n, ("f32", 1), ("f32", 1), columns == "turned")
    assert RoundsProduct.parse(one.name) == one
    for result, rows in ((c, needed), (whole, m)):
        run(one, profile, result, a_at, b_at, memory.strides[0], steps, 0, m, n, rows)
    expected = (left.astype(float) @ right)[:needed]
    assert (np.abs(c[:needed] - expected) <= 1e-4).all()
    np.testing.assert_array_equal(c[:needed], whole[:needed])
    assert (c[m] == 7).all()
    assert c[1].any() == (needed > 1 or columns == "turned"), "one row is multiplied alone where B is read in place"


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("b", ["f16", "f32"])
def test_rows_of_b_that_the_first_block_reads_soon_are_asked_for(b: str, profile: str) -> None:
    host = host_of(PROFILES[profile].processor)
    block = block_of(TileProduct("f32", 1, 64, 64, 32, True, (0, 0, 0), (0, 0, 0), (0, 0, 0)), host)
    one = RoundsProduct("f32", 64, 64, 32, 64, ("f32", 16), (b, 1), False)
    asked = define_rounds(one, host)[0].count("i32 0, i32 3, i32 1)")
    apart = define_rounds(replace(one, b=(b, 16)), host)[0].count("i32 0, i32 3, i32 1)")
    lines = -(-block.columns * {"f16": 2, "f32": 4}[b] // 64)
    rows_of_a = -(-(1 << (block.rows - 1).bit_length()) * 4 // 64)
    assert asked - apart == lines + rows_of_a  # the first block is a loop of its own


@pytest.mark.parametrize(
    "processor",
    ["x86-64-v2", "x86-64-v3", "x86-64-v3+avxvnni", "x86-64-v4", "x86-64-v4+avx512vnni", "x86-64-v4+amx-int8"],
)
@pytest.mark.parametrize("columns", ["together", "apart", "turned"])
@pytest.mark.parametrize("steps", [0, 1, 7, 64, 80, 255, 512, 1152])
@pytest.mark.parametrize(
    ("rows", "across", "m", "n"), [(64, 64, 64, 64), (41, 77, 64, 128), (0, 16, 4, 16), (7, 0, 8, 32), (1, 64, 16, 64)]
)
def test_rounds_of_bytes(rows: int, across: int, m: int, n: int, steps: int, columns: str, processor: str) -> None:
    """Exact, with extreme factors, sums that wrap around, and rows, columns and K that are not there or not needed."""
    level, feature = level_of(processor)
    if not runs(level, PROFILES[PROFILES_HERE[-1]].processor) or feature not in ("", *FEATURES_HERE):
        pytest.skip(f"this processor does not run {processor}")
    rng = np.random.default_rng(steps)
    left, right = (rng.choice(np.array([-128, 127, 3, -1], np.int8), shape) for shape in ((m, 1200), (1200, n)))
    places = rng.permutation(m) if steps == 512 else np.arange(m)  # some tiles cannot be read in place
    memory, order, a_at, b_at, step = placed(rng, left, right, columns, rows, across, places)
    guarded = rng.integers(-(2**31), 2**31, m * n + 2 * _GUARD).astype(np.int32)
    before, c = guarded.copy(), guarded[_GUARD:-_GUARD]
    one = RoundsProduct("i32", m, n, 32, n, ("i8", 1), ("i8", step), columns == "turned")
    assert RoundsProduct.parse(one.name) == one
    needed = min(rows, m) if steps % 2 else m
    host = host_of(processor)
    run(one, host, c, a_at, b_at, memory.strides[0], steps, int(steps % 32 > 0), rows, across, needed)
    wide_a, wide_b = left[places, :steps].astype(np.int64), right[:steps, order].astype(np.int64)
    wide_a[rows:], wide_b[:, across:] = 0, 0
    expected = (before[_GUARD:-_GUARD].reshape(m, n) + wide_a @ wide_b).astype(np.int32)
    np.testing.assert_array_equal(c.reshape(m, n)[:needed], expected[:needed])
    np.testing.assert_array_equal(guarded[:_GUARD], before[:_GUARD])
    np.testing.assert_array_equal(guarded[-_GUARD:], before[-_GUARD:])


@pytest.mark.parametrize("processor", ["x86-64-v3+avxvnni", "x86-64-v4", "x86-64-v4+avx512vnni"])
@pytest.mark.parametrize("steps", [64, 77, 80])
@pytest.mark.parametrize(("factor", "across"), [("a", 64), ("b", 64), ("b", 63), ("b", 1)])
def test_nothing_is_read_behind_the_last_bytes(factor: str, across: int, steps: int, processor: str) -> None:
    """Of a factor that ends where memory ends."""
    level, feature = level_of(processor)
    if not runs(level, PROFILES[PROFILES_HERE[-1]].processor) or feature not in ("", *FEATURES_HERE):
        pytest.skip(f"this processor does not run {processor}")
    m, n, rng = 16, 64, np.random.default_rng(steps)
    left, right = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, steps), (steps, across)))
    c, one = np.zeros((m, n), np.int32), RoundsProduct("i32", m, n, 32, n, ("i8", 1), ("i8", 1), False)
    with at_the_end(left if factor == "a" else right) as first:
        places = {"a": left.ctypes.data, "b": right.ctypes.data, factor: first}
        a_at = (places["a"] + np.arange(m) * steps).astype(np.uint64)
        b_at = (places["b"] + np.arange(n)).astype(np.uint64)
        run(one, host_of(processor), c, a_at, b_at, across, steps, int(steps % 32 > 0), m, across, m)
    np.testing.assert_array_equal(c[:, :across], left.astype(np.int32) @ right)
    assert not c[:, across:].any()
