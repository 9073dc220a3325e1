"""Loops of products whose rounds are multiplied at once (transforms/cpu/whole_loops.py), against NumPy in float64: what
the masks leave out, where addresses come around, and loops that have to stay as they are."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from benchmarks.cpu.kernels import batched
from examples.matmul import matmul_kernel

from .kernels import PROFILES_HERE, compiled, run

HERE = pytest.mark.parametrize("profile", PROFILES_HERE)


def drawn(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(found: Any, a: Any, b: Any) -> bool:
    left, right = a.astype(np.float64), b.astype(np.float64)
    steps = 2.0**-22 * a.shape[-1]
    return bool((np.abs(found - left @ right) <= np.abs(left) @ np.abs(right) * steps).all())


@HERE
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(64, 64, 256), (130, 70, 333), (17, 150, 31), (200, 64, 32)], ids=str)
def test_example(shape: tuple[int, int, int], dtype: Any, profile: str) -> None:
    """Rows and columns that come around, and a K that is no multiple of a round's."""
    m, n, k = shape
    a, b = drawn(1, m, k, dtype=dtype), drawn(2, k, n, dtype=dtype)
    guarded = np.full((m + 2, n), 7.0, np.float32)
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 8, "ACTIVATION": ""}
    arguments = [a, b, guarded[1:-1], m, n, k, k, 1, n, 1, n, 1]
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    run(profile, matmul_kernel, grid, *arguments, **constants)
    assert close(guarded[1:-1], a, b)
    assert (guarded[[0, -1]] == 7).all()


@triton.jit
def counted(a, b, c, M, N, K, am, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rounds are counted from 0, and pointers are computed in each; B at any strides."""
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.full((BM, BN), 1.0, tl.float32)
    for number in range(0, tl.cdiv(K, BK)):
        step = number * BK + tl.arange(0, BK)
        left = tl.load(a + row[:, None] * am + step[None, :], mask=(row[:, None] < M) & (step[None, :] < K), other=0.0)
        right = tl.load(
            b + step[:, None] * bk + column[None, :] * bn, mask=(step[:, None] < K) & (column[None, :] < N), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="ieee")
    place = c + row[:, None] * N + column[None, :]
    tl.store(place, total - 1.0, mask=(row[:, None] < M) & (column[None, :] < N))


@triton.jit
def loaded_transposed(a, b, c, M, N, K, am, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """B is loaded with K along its rows, and turned."""
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left_at = a + row[:, None] * am + step[None, :]
    right_at = b + column[:, None] * bn + step[None, :] * bk
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(left_at, mask=step[None, :] < K - first, other=0.0)
        right = tl.load(right_at, mask=step[None, :] < K - first, other=0.0)
        total += tl.dot(left, tl.trans(right), input_precision="ieee")
        left_at += BK
        right_at += BK * bk
    tl.store(c + row[:, None] * N + column[None, :], total)


@triton.jit
def unlike(a, b, c, M, N, K, am, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHAT: tl.constexpr):
    """Rounds take every other block of A's columns ("skips"), change a tile before it is multiplied ("scales"), or
    store what the next one loads ("stores")."""
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + row[:, None] * am + (2 * first if WHAT == "skips" else first) + step[None, :])
        if WHAT == "scales":
            left *= 2
        right = tl.load(b + (first + step)[:, None] * bk + column[None, :] * bn)
        total = tl.dot(left, right, total, input_precision="ieee")
        if WHAT == "stores":
            tl.store(a + row[:, None] * am + first + BK + step[None, :], left, mask=first + BK + step[None, :] < K)
    tl.store(c + row[:, None] * N + column[None, :], total)


def _arguments(a: Any, b: Any, c: Any) -> list[Any]:
    (m, k), n, size = a.shape, b.shape[1], b.itemsize
    return [a, b if b.base is None else b.base, c, m, n, k, k, b.strides[0] // size, b.strides[1] // size]


@HERE
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(64, 64, 128), (70, 100, 77), (5, 130, 16)], ids=str)
def test_counted(shape: tuple[int, int, int], turned: bool, profile: str) -> None:
    m, n, k = shape
    a, b, c = drawn(1, m, k), drawn(2, n, k).T if turned else drawn(2, k, n), np.zeros((m, n), np.float32)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
    run(profile, counted, grid, *_arguments(a, b, c), BM=32, BN=64, BK=16)
    assert close(c, a, b)


@HERE
@pytest.mark.parametrize("k", [128, 77])
def test_loaded_transposed(k: int, profile: str) -> None:
    a, b, c = drawn(1, 64, k), drawn(2, 32, k).T, np.zeros((64, 32), np.float32)
    arguments = _arguments(a, b, c)
    arguments[7] = 1
    run(profile, loaded_transposed, (1,), *arguments, BM=64, BN=32, BK=32)
    assert close(c, a, b)


@HERE
def test_rounds_apart(profile: str) -> None:
    a, b, c = drawn(1, 16, 128), drawn(2, 64, 32), np.zeros((16, 32), np.float32)
    run(profile, unlike, (1,), a, b, c, 16, 32, 64, 128, 32, 1, BM=16, BN=32, BK=16, WHAT="skips")
    chosen = a.reshape(16, 4, 2, 16)[:, :, 0].reshape(16, 64)
    assert close(c, chosen, b)


@HERE
def test_changed_and_stored(profile: str) -> None:
    a, b, c = drawn(1, 16, 64), drawn(2, 64, 32), np.zeros((16, 32), np.float32)
    run(profile, unlike, (1,), *_arguments(a, b, c), BM=16, BN=32, BK=16, WHAT="scales")
    assert close(c, 2 * a, b)
    first = np.tile(a[:, :16], 4)
    run(profile, unlike, (1,), *_arguments(a, b, c), BM=16, BN=32, BK=16, WHAT="stores")
    assert close(c, first, b)


@HERE
def test_batches(profile: str) -> None:
    a, b, c = drawn(1, 3, 70, 50), drawn(2, 3, 50, 90), np.zeros((3, 70, 90), np.float32)
    run(profile, batched, (2, 2, 3), a, b, c, 70, 90, 50, M=64, N=64, K=16)
    assert close(c, a, b)


@pytest.mark.parametrize(
    ("kernel", "what", "at_once"),
    [
        (counted, None, True),
        (loaded_transposed, None, True),
        (unlike, "skips", True),
        (unlike, "scales", False),
        (unlike, "stores", False),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_which_loops(kernel: Any, what: str | None, at_once: bool) -> None:
    """Which blocks the one that skips takes is found out when it runs."""
    a, b, c = drawn(1, 16, 64), drawn(2, 64, 32), np.zeros((16, 32), np.float32)
    constants = {"BM": 16, "BN": 32, "BK": 16, **({"WHAT": what} if what else {})}
    made = compiled("cpu-x86-64-v3", kernel, _arguments(a, b, c), constants)
    assert (b"tile_rounds_" in made.asm["spv"]) == at_once
    checked = compiled("cpu-x86-64-v3", kernel, _arguments(a, b, c), constants, check_bounds=True)
    assert b"tile_rounds_" not in checked.asm["spv"]


@triton.jit
def of_bytes(a, b, c, K, bk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr):
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32)
    for first in range(0, K, BK):
        left = tl.load(a + row[:, None] * K + first + step[None, :])
        right = tl.load(b + (first + step[:, None]) * bk + column[None, :])
        if WIDE:
            right += 1
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * BN + column[None, :], total)


@HERE
def test_bytes(profile: str) -> None:
    """Factors that are loaded alone are multiplied where they are; both ways are exact."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 127, shape).astype(np.int8) for shape in ((16, 96), (96, 32)))
    c = np.zeros((16, 32), np.int32)
    constants = {"BM": 16, "BN": 32, "BK": 32}
    for wide in (False, True):
        made = compiled(profile, of_bytes, [a, b, c, 96, 32], {**constants, "WIDE": wide})
        assert (b"tile_rounds_i32" in made.asm["spv"]) != wide
        assert b"tile_product_add_i32_i8" in made.asm["spv"]
        run(profile, of_bytes, (1,), a, b, c, 96, 32, **constants, WIDE=wide)
        np.testing.assert_array_equal(c, a.astype(np.int32) @ (b.astype(np.int32) + wide))


@triton.jit
def ends(a, b, c, M, N, K, L, am, bk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ONCE: tl.constexpr):
    """K ends the columns of A, L the rows of B. Volatile loads are one round after the other."""
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        step = first + tl.arange(0, BK)
        left_at, left_mask = a + row[:, None] * am + step[None, :], (row[:, None] < M) & (step[None, :] < K)
        right_at, right_mask = b + step[:, None] * bk + column[None, :], (step[:, None] < L) & (column[None, :] < N)
        left = tl.load(left_at, mask=left_mask, other=0.0, volatile=not ONCE)
        right = tl.load(right_at, mask=right_mask, other=0.0, volatile=not ONCE)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row[:, None] * BN * tl.num_programs(1) + column[None, :], total)


@HERE
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(64, 64, 64), (70, 100, 77), (33, 49, 15), (96, 128, 333)], ids=str)
@pytest.mark.parametrize("fewer", [0, 3])
def test_all_rounds_at_once_have_the_same_bits(
    shape: tuple[int, int, int], fewer: int, dtype: Any, profile: str
) -> None:
    """With NaN and infinity where masks leave out, products that round to -0, and another end of B's rows than of A's
    columns, where infinity in A gives NaN behind it."""
    m, n, k = shape
    a, b = np.full((m + 3, k + 5), np.nan, dtype), np.full((k + 2, n + 1), np.inf, dtype)
    a[:m, :k], b[:k, :n] = drawn(1, m, k, dtype=dtype), drawn(2, k, n, dtype=dtype)
    a[0, :k], b[:, 0] = -1e-7, 1e-7
    if dtype == np.float32:
        a[0, :k], b[:, 0] = -1e-30, 1e-30
    a[1, k - 1] = np.inf
    rows, columns = triton.cdiv(m, 32), triton.cdiv(n, 64)
    found = []
    for once in (True, False):
        c = np.full((rows * 32, columns * 64), 7.0, np.float32)
        arguments = [a, b, c, m, n, k, k - fewer, k + 5, n + 1]
        run(profile, ends, (rows, columns), *arguments, BM=32, BN=64, BK=16, ONCE=once)
        found.append(c.view(np.uint32))
    nan = np.isnan(found[0].view(np.float32))
    assert (nan == np.isnan(found[1].view(np.float32))).all()
    np.testing.assert_array_equal(found[0][~nan], found[1][~nan])
    assert not nan[2:m].any()


@HERE
def test_zeros_that_are_not_loaded_behind_the_last(profile: str) -> None:
    """What is loaded where the masks are false is 1 in A: only rounds whose masks are true everywhere are at once."""
    a, b, c = drawn(1, 16, 40), drawn(2, 40, 32), np.zeros((16, 32), np.float32)
    run(profile, ones_behind, (1,), a, b, c, 40, 36, BM=16, BN=32, BK=16)
    assert close(c, np.hstack([a[:, :36], np.ones((16, 4), np.float32)]), b)


@triton.jit
def ones_behind(a, b, c, K, L, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + row[:, None] * K + first + step[None, :], mask=first + step[None, :] < L, other=1.0)
        right_at = b + (first + step)[:, None] * BN + column[None, :]
        right = tl.load(right_at, mask=(first + step)[:, None] < K, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + row[:, None] * BN + column[None, :], total)


@triton.jit
def summed(a, b, c, sums, M, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ALONE: tl.constexpr):
    """Rows behind the last come around; the sums are of all of them. ALONE: there are none."""
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + (row % M)[:, None] * K + first + step[None, :])
        right = tl.load(b + (first + step)[:, None] * BN + column[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    if not ALONE:
        tl.store(sums + column, tl.sum(total, 0))
    tl.store(c + row[:, None] * BN + column[None, :], tl.where(total > 0, total, 0.5 * total), mask=row[:, None] < M)


@HERE
def test_rows_that_are_not_stored(profile: str) -> None:
    """They count where anything else is done with them."""
    a, b, sums = drawn(1, 19, 48), drawn(2, 48, 32), np.zeros(32, np.float32)
    expected = a.astype(float) @ b
    for alone in (True, False):
        c = np.full((64, 32), 7.0, np.float32)
        run(profile, summed, (1,), a, b, c, sums, 19, 48, BM=64, BN=32, BK=16, ALONE=alone)
        assert np.allclose(c[:19], np.where(expected > 0, expected, 0.5 * expected), atol=1e-4)
        assert (c[19:] == 7).all()
    assert np.allclose(sums, expected[np.arange(64) % 19].sum(0), atol=1e-3)


@triton.jit
def described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left, right = (
        tl.make_tensor_descriptor(a, (M, K), (K, 1), (BM, BK)),
        tl.make_tensor_descriptor(b, (K, N), (N, 1), (BK, BN)),
    )
    total, row, column = tl.zeros((BM, BN), tl.float32), tl.program_id(0) * BM, tl.program_id(1) * BN
    for first in range(0, K, BK):
        total = tl.dot(left.load([row, first]), right.load([first, column]), total, input_precision="ieee")
    tl.make_tensor_descriptor(c, (M, N), (N, 1), (BM, BN)).store([row, column], total)


@triton.jit
def compared(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Masks of all comparisons; the rows below 3 are left out."""
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        step = first + tl.arange(0, BK)
        left_mask = (row[:, None] >= 3) & (row[:, None] < M) & (step[None, :] <= K - 1)
        left = tl.load(a + row[:, None] * K + step[None, :], mask=left_mask, other=0.0)
        right_mask = (K > step[:, None]) & (N - 1 >= column[None, :])
        right = tl.load(b + step[:, None] * N + column[None, :], mask=right_mask, other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    mask = (row[:, None] < M) & (column[None, :] < N)
    tl.store(c + row[:, None] * N + column[None, :], total, mask=mask)


@HERE
@pytest.mark.parametrize("kernel", [described, compared], ids=["described", "compared"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (70, 100, 76), (33, 52, 20)], ids=str)
def test_descriptors_and_comparisons(shape: tuple[int, int, int], kernel: Any, profile: str) -> None:
    m, n, k = shape
    a, b, guarded = drawn(1, m, k), drawn(2, k, n), np.full((m + 2, n), 7.0, np.float32)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
    run(profile, kernel, grid, a, b, guarded[1:-1], m, n, k, BM=32, BN=64, BK=16)
    if kernel is compared:
        a[:3] = 0
    assert close(guarded[1:-1], a, b)
    assert (guarded[[0, -1]] == 7).all()
    made = compiled(profile, kernel, [a, b, guarded, m, n, k], {"BM": 32, "BN": 64, "BK": 16})
    assert b"tile_rounds_" in made.asm["spv"]


@triton.jit
def stored_sometimes(a, b, c, M, K, flag, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column, step = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        left = tl.load(a + row[:, None] * K + (first + step)[None, :])
        right = tl.load(b + (first + step)[:, None] * BN + column[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    if flag > 0:
        limit = M * flag // 3
        place = (row + flag)[:, None] * BN + column[None, :]
        tl.store(c + place, total, mask=row[:, None] < limit)


@HERE
def test_stores_in_a_branch(profile: str) -> None:
    """Where they go to is not known before the loop."""
    a, b = drawn(1, 32, 48), drawn(2, 48, 32)
    for flag in (0, 2):
        c = np.full((34, 32), 7.0, np.float32)
        run(profile, stored_sometimes, (1,), a, b, c, 32, 48, flag, BM=32, BN=32, BK=16)
        stored = slice(flag, flag + 32 * flag // 3)
        assert np.allclose(c[stored], (a.astype(float) @ b)[: 32 * flag // 3], atol=1e-4)
        assert (np.delete(c, np.arange(34)[stored], 0) == 7).all()
