"""Loops of products in tf32, of tiles that float16 holds and of others by turns, against NumPy in float64: magnitudes
from 2**-140 to 2**127, zeros, infinities, NaN, one outlier in a tile."""

from collections.abc import Callable

import numpy as np
import pytest
import triton
import triton.language as tl

from tests.device.helpers import Guarded, may_be_flushed, to_torch
from tests.device.test_dot_precision import rounds_to_tf32, tf32

M, N, K, STEP = 32, 32, 128, 32
#: What a device without such products is off, relative to the sum of |a| × |b|.
PARTS = 2.0**-15


@triton.jit
def rounds_kernel(
    a_ptr, b_ptr, c_ptr, out_ptr, K,
    M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr, CONVERTS: tl.constexpr, SCALES: tl.constexpr,
):  # fmt: skip
    """C + A B, ``STEP`` of K at a time. ``CONVERTS``: A is computed from what is loaded; ``SCALES``: the sum is
    multiplied by 1 in each round, so that not only products are added to it."""
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    places = rows[:, None] * N + columns[None, :]
    total = tl.load(c_ptr + places)
    one = (K > 0).to(tl.float32)
    for start in range(0, K, STEP):
        a = tl.load(a_ptr + rows[:, None] * K + start + steps[None, :])
        b = tl.load(b_ptr + (start + steps[:, None]) * N + columns[None, :])
        if CONVERTS:
            a = tl.where(a == 12345.0, 0.0, a)
        if SCALES:
            total = total * one
        total = tl.dot(a, b, total, input_precision="tf32")
    tl.store(out_ptr + places, total)


def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, converts: bool, scales: bool, warps: int) -> np.ndarray:
    result = Guarded((M, N), "float32")
    rounds_kernel[(1,)](
        *(to_torch(a), to_torch(b), to_torch(c), result.tensor, a.shape[1], M, N, STEP, converts, scales),
        num_warps=warps,
        matrix_units="1",
    )
    return result.values()


def normal(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return tuple(random.standard_normal(shape, dtype=np.float32) for shape in ((M, K), (K, N), (M, N)))


def outlier() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, c = normal(1)
    a[7, 45], b[100, 3] = 1e30, -1e-30
    return a, b, c


def far_apart() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each row of A has a magnitude of its own."""
    a, b, c = normal(2)
    return (a.T * 2.0 ** np.linspace(-100, 120, M)).T.astype(np.float32), b, c


def changing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each tile of A has a magnitude of its own, small ones last, and the sum of some rows is in the small ones."""
    a, b, c = normal(3)
    a *= (2.0 ** np.repeat([12.0, 20.0, -30.0, -60.0], STEP)).astype(np.float32)
    a[:8, : 2 * STEP], c[:8] = 0, 0
    return a, b, c


def tiny() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, c = normal(4)
    return a * np.float32(2.0**-60), b * np.float32(2.0**-50), np.zeros_like(c)


def large_start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The accumulator is near the end of the range before, and grows there."""
    a, b, c = normal(5)
    c[3, :] = 3e38
    a[5, 10], b[10, 5], b[11:, 5] = 1.5 * 2.0**100, 2.0**27, 0
    return a, b, c


def sparse() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, c = normal(6)
    a[a < 0.5], b[b < 1], c[:] = 0.0, -0.0, 0
    return a, b, c


CASES = (normal, outlier, far_apart, changing, tiny, large_start, sparse)
WAYS = ((False, False, 1), (False, False, 4), (True, False, 1), (False, True, 1))


@pytest.mark.parametrize("converts, scales, warps", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_sums(case: Callable[[], tuple[np.ndarray, ...]], converts: bool, scales: bool, warps: int) -> None:
    a, b, c = case()
    values = run(a, b, c, converts, scales, warps)
    exact = rounds_to_tf32("tf32")
    left, right = (one.astype(np.float64) for one in ((tf32(a), tf32(b)) if exact else (a, b)))
    size = np.abs(left) @ np.abs(right) + np.abs(c)
    smallest = 2.0**-126 if may_be_flushed(values.dtype) else 2.0**-134
    lost = smallest * (np.abs(left).sum(1)[:, None] + np.abs(right).sum(0) + K)
    bound = size * (4 * K * 2.0**-24 + (0 if exact else PARTS)) + lost
    assert (np.abs(values - (left @ right + c)) <= bound).all()


@pytest.mark.parametrize("converts, scales, warps", WAYS)
def test_products_of_numbers_that_tf32_holds_are_exact(converts: bool, scales: bool, warps: int) -> None:
    """Of any magnitude, in tiles that float16 holds and in others: a product in each sum."""
    random = np.random.default_rng(7)
    a, b, c = np.zeros((M, K), np.float32), np.zeros((K, N), np.float32), np.zeros((M, N), np.float32)
    rows = np.arange(M)
    a[rows, random.permutation(K)[:M]] = random.integers(1024, 2048, M) * 2.0 ** random.integers(-70, 60, M)
    b[:] = random.integers(1024, 2048, (K, N)) * random.choice([-1.0, 1.0], (K, N))
    b[K // 2 :] *= np.float32(2.0**20)
    values = run(a, b, c, converts, scales, warps)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    if rounds_to_tf32("tf32"):
        assert (values == exact).all()
    else:
        assert (np.abs(values - exact) <= np.abs(exact) * PARTS).all()


@pytest.mark.parametrize("converts, scales, warps", WAYS)
def test_infinities_and_nan(converts: bool, scales: bool, warps: int) -> None:
    a, b, c = normal(8)
    a[3, 40], a[4, 41], a[5, 2], b[90, 6], b[91, 7] = np.inf, -np.inf, np.nan, np.inf, np.nan
    a[6, 90] = 0.0
    c[10, 10], c[11, 11] = np.inf, np.nan
    values = run(a, b, c, converts, scales, warps)
    with np.errstate(all="ignore"):
        wanted = tf32(a).astype(np.float64) @ tf32(b).astype(np.float64) + c
    assert (np.isnan(values) == np.isnan(wanted)).all()
    assert (values[np.isinf(wanted)] == wanted[np.isinf(wanted)]).all()
    finite = np.isfinite(wanted)
    assert np.isfinite(values[finite]).all()
    assert np.allclose(values[finite], wanted[finite], rtol=1e-3, atol=1e-2)
