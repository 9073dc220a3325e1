"""Tiles of many rows of many registers are a loop over rows, with loops over strips of a row inside."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(31)


def _lines(profile: str, kernel: Any, arguments: list[Any], constants: dict[str, Any]) -> int:
    """Of the LLVM IR."""
    spirv = compiled(profile, kernel, arguments, constants).asm["spv"]
    return translate(spirv, host_of(PROFILES[profile].processor), 16).text.count("\n")


@triton.jit
def softmax(x, out, top, m, n, M: tl.constexpr, N: tl.constexpr):
    row, at = tl.arange(0, M), tl.arange(0, N)
    mask = (row[:, None] < m) & (at[None, :] < n)
    value = tl.load(x + row[:, None] * n + at[None, :], mask=mask, other=-float("inf"))
    highest = tl.max(value, 1)
    value = tl.exp(value - highest[:, None])
    tl.store(out + row[:, None] * n + at[None, :], value / tl.sum(value, 1)[:, None], mask=mask)
    tl.store(top + row, highest, mask=row < m)


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize(("m", "n"), [(13, 781), (16, 1024), (3, 1)])
def test_rows_are_a_loop_around_strips(profile: str, m: int, n: int) -> None:
    """800 lines of LLVM IR with AVX-512 instead of 31,800, and 2,300 with AVX2."""
    x = RANDOM.standard_normal((m, n)).astype(np.float32)
    out, top = np.full(m * n + 2, 77, np.float32), np.full(m + 1, 77, np.float32)
    constants = {"M": 16, "N": 1024}
    run(profile, softmax, (1,), x, out[1:], top, m, n, **constants)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out[1:-1].reshape(m, n), exact / exact.sum(1, keepdims=True), rtol=2e-6)
    assert np.array_equal(top[:-1], x.max(1))
    assert out[0] == out[-1] == top[-1] == 77
    assert _lines(profile, softmax, [x, out, top, m, n], constants) < 4000


@triton.jit
def product(a, a_scale, b, b_scale, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k, runs = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 2), tl.arange(0, K // 32)
    left, right = tl.load(a + m[:, None] * (K // 2) + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    left_scale = tl.load(a_scale + m[:, None] * (K // 32) + runs[None, :])
    right_scale = tl.load(b_scale + n[:, None] * (K // 32) + runs[None, :])
    result = tl.dot_scaled(left, left_scale, "e2m1", right, right_scale, "e2m1")
    tl.store(out + m[:, None] * N + n[None, :], result)


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 256), (32, 16, 512), (64, 128, 64)])
def test_products_of_numbers_of_four_bits(profile: str, m: int, n: int, k: int) -> None:
    """Of 128×128×256 23,000 lines of LLVM IR instead of 77,800."""
    a, b = (RANDOM.integers(0, 256, shape).astype(np.uint8) for shape in ((m, k // 2), (k // 2, n)))
    scales = [RANDOM.integers(120, 132, (extent, k // 32)).astype(np.uint8) for extent in (m, n)]
    out = np.full(m * n + 2, 77, np.float32)
    arguments: list[Any] = [a, scales[0], b, scales[1], out[1:]]
    constants = {"M": m, "N": n, "K": k}
    run(profile, product, (1,), *arguments, **constants)
    numbers = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    left, right = (
        np.stack([numbers[packed & 15], numbers[packed >> 4]], axis + 1).reshape(shape)
        for packed, axis, shape in ((a, 1, (m, k)), (b, 0, (k, n)))
    )
    factors = [np.repeat(np.exp2(scale.astype(np.float64) - 127), 32, 1) for scale in scales]
    left, right = left * factors[0], right * factors[1].T
    bound = 2.0**-20 * (np.abs(left) @ np.abs(right))
    assert (np.abs(out[1:-1].reshape(m, n) - left @ right) <= bound).all()
    assert out[0] == out[-1] == 77
    assert _lines(profile, product, arguments, constants) < 35_000
