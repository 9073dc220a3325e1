"""Kernels with dots as the CPU device computes them, against NumPy in float64: odd sizes, neighbours untouched."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from examples.flash_attention import forward_kernel, reference
from examples.matmul import matmul_kernel

from .kernels import PROFILES_HERE, compiled, run

HERE = pytest.mark.parametrize("profile", PROFILES_HERE)
_BOUND = {"float16": 2.0**-10, "float32": 2.0**-20, "float64": 2.0**-48}


def drawn(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-128, 128, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


@HERE
@pytest.mark.parametrize(
    ("shape", "block"),
    [
        ((64, 64, 64), (64, 64, 32)),
        ((130, 70, 50), (32, 64, 16)),
        ((17, 33, 9), (16, 16, 16)),
        ((45, 31, 77), (64, 32, 32)),
    ],
    ids=str,
)
def test_matmul(shape: tuple[int, int, int], block: tuple[int, int, int], profile: str) -> None:
    m, n, k = shape
    a, b = drawn(1, m, k), drawn(2, k, n)
    guarded = np.full((m + 2, n), 7.0, np.float32)
    grid = (triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]),)
    names = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block, strict=True))
    run(profile, matmul_kernel, grid, a, b, guarded[1:-1], m, n, k, k, 1, n, 1, n, 1, GROUP=8, ACTIVATION="", **names)
    bound = np.abs(a).astype(float) @ np.abs(b) * _BOUND["float32"]
    assert (np.abs(guarded[1:-1] - a.astype(float) @ b) <= bound).all()
    assert (guarded[[0, -1]] == 7).all()


@HERE
@pytest.mark.parametrize(("head", "length", "causal"), [(64, 100, False), (64, 129, True), (128, 64, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_attention(head: int, length: int, causal: bool, dtype: Any, profile: str) -> None:
    q, k, v = (drawn(seed, 2, length, head, dtype=dtype) for seed in (1, 2, 3))
    out, sums = np.zeros_like(q), np.zeros((2, length), np.float32)
    constants = {"HEAD": head, "BLOCK_M": 64, "BLOCK_N": 32, "CAUSAL": causal}
    run(profile, forward_kernel, (triton.cdiv(length, 64), 2), q, k, v, out, sums, length, head**-0.5, **constants)
    expected = reference(*(one.astype(np.float64) for one in (q, k, v)), head**-0.5, causal)
    np.testing.assert_allclose(out, expected, atol=4e-3 if dtype is np.float16 else 4e-6)


@HERE
def test_rows_of_attention_are_stored_by_vectors(profile: str) -> None:
    """Where they are is computed again behind the loop from where each row begins, so that it is seen that neighbours
    are stored to neighbouring places: they are no vectors of an array."""
    q, sums = np.zeros((2, 128, 128), np.float32), np.zeros((2, 64), np.float32)
    constants = {"HEAD": 128, "BLOCK_M": 64, "BLOCK_N": 64, "CAUSAL": False}
    made = compiled(profile, forward_kernel, [q, q, q, q, sums, 128, 0.1], constants, divisible=True)
    text = translate(made.asm["spv"], host_of(PROFILES[profile].processor), PROFILES[profile].subgroup_size).text
    assert "store <16 x float>" in text
    assert "@scatter_float" not in text


@triton.jit
def products(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr
):
    """C = 2·A·B + C, with operands that are stored as transposes if LEFT, RIGHT."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if LEFT:
        a = tl.trans(tl.load(a_ptr + k[:, None] * M + i[None, :]))
    else:
        a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    if RIGHT:
        b = tl.trans(tl.load(b_ptr + j[:, None] * K + k[None, :]))
    else:
        b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    at = i[:, None] * N + j[None, :]
    c = tl.load(c_ptr + at)
    for _ in range(2):
        c = tl.dot(a, b, c, out_dtype=c.dtype)
    tl.store(c_ptr + at, c)


@HERE
@pytest.mark.parametrize(("left", "right"), [(False, True), (True, False)])
@pytest.mark.parametrize(
    ("dtype", "result"), [(np.float32, np.float32), (np.float16, np.float32), (np.float16, np.float16),
                          (np.float64, np.float64), (np.int8, np.int32)], ids=str
)  # fmt: skip
@pytest.mark.parametrize("shape", [(32, 16, 64), (16, 32, 8), (1, 64, 16), (64, 1, 16), (2, 2, 4)], ids=str)
def test_products(shape: tuple[int, int, int], dtype: Any, result: Any, left: bool, right: bool, profile: str) -> None:
    m, n, k = shape
    a, b = drawn(1, m, k, dtype=dtype), drawn(2, k, n, dtype=dtype)
    c = drawn(3, m, n, dtype=result)
    wide = np.int64 if np.dtype(dtype).kind == "i" else np.float64
    expected = 2 * (a.astype(wide) @ b.astype(wide)) + c
    given = [np.ascontiguousarray(a.T if left else a), np.ascontiguousarray(b.T if right else b)]
    run(profile, products, (1,), *given, c, M=m, N=n, K=k, LEFT=left, RIGHT=right)
    if wide is np.int64:
        np.testing.assert_array_equal(c, expected)
    else:
        bound = (2 * (np.abs(a).astype(wide) @ np.abs(b).astype(wide)) + 8) * _BOUND[np.dtype(result).name]
        assert (np.abs(c - expected) <= bound).all()


@triton.jit
def batches(a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    z, i, j, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + z[:, None, None] * M * K + i[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + z[:, None, None] * N * K + j[None, :, None] * K + k[None, None, :])
    c = tl.dot(a, tl.permute(b, (0, 2, 1)))
    tl.store(c_ptr + z[:, None, None] * M * N + i[None, :, None] * N + j[None, None, :], c)


@HERE
def test_batches_of_transposed_operands(profile: str) -> None:
    a, b, c = drawn(1, 4, 16, 32), drawn(2, 4, 8, 32), np.zeros((4, 16, 8), np.float32)
    run(profile, batches, (1,), a, b, c, B=4, M=16, N=8, K=32)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).transpose(0, 2, 1), atol=2e-5)


@triton.jit
def chain(a_ptr, b_ptr, c_ptr, n, SIZE: tl.constexpr):
    """Powers of A times B, by dots of dots, through a branch and a loop that runs as often as it is told."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    power = a
    while n > 1:
        power = tl.dot(power, a) * 0.25
        n -= 1
    if n == 1:
        total = tl.dot(power, b) + tl.trans(power)
    else:
        total = b
    tl.store(c_ptr + at, total)


@HERE
@pytest.mark.parametrize("n", [0, 1, 4])
def test_dots_of_dots(n: int, profile: str) -> None:
    a, b, c = drawn(1, 32, 32), drawn(2, 32, 32), np.zeros((32, 32), np.float32)
    run(profile, chain, (1,), a, b, c, n, SIZE=32)
    power = a.astype(float)
    for _ in range(n - 1):
        power = power @ a * 0.25
    np.testing.assert_allclose(c, power @ b + power.T if n else b, rtol=1e-4, atol=1e-3)


@triton.jit
def eights(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr, KIND: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a = tl.load(a_ptr + at).to(KIND, bitcast=True)
    b = tl.load(b_ptr + at).to(KIND, bitcast=True)
    tl.store(c_ptr + at, tl.dot(a, b))
    tl.store(c_ptr + SIZE * SIZE + at, tl.dot(a.to(tl.float32), b.to(tl.float32)))


@HERE
@pytest.mark.parametrize("kind", [tl.float8e4nv, tl.float8e5], ids=str)
def test_floats_of_eight_bits(kind: Any, profile: str) -> None:
    """Their products are those of the same numbers in float32, bit by bit."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 0x70, (16, 16)).astype(np.int8) for _ in range(2))
    c = np.zeros((2, 16, 16), np.float32)
    run(profile, eights, (1,), a, b, c, SIZE=16, KIND=kind)
    np.testing.assert_array_equal(c[0], c[1])
    assert np.isfinite(c).all() and c.any()


@triton.jit
def wrapped(x_ptr, y_ptr, out_ptr, first, N: tl.constexpr, PART: tl.constexpr, SIZE: tl.constexpr, ALONG: tl.constexpr):
    """Elements at offsets % N and offsets // PART, by addresses and as numbers. ALONG divides ``first``."""
    first = tl.multiple_of(first, ALONG)
    at = tl.program_id(0) * SIZE + first + tl.arange(0, SIZE)
    value = tl.load(x_ptr + at % N) * 2 + tl.load(y_ptr + at // PART)
    tl.store(out_ptr + at, value + (at % N < 5).to(tl.float32))


@HERE
@pytest.mark.parametrize(("first", "along"), [(0, 64), (32, 16), (7, 1)])
@pytest.mark.parametrize(("n", "part"), [(48, 16), (40, 24), (5, 3), (1, 1), (1024, 128)])
def test_quotients_and_remainders_of_lanes(n: int, part: int, first: int, along: int, profile: str) -> None:
    x, y, out = drawn(1, n), drawn(2, 300), np.zeros(300, np.float32)
    run(profile, wrapped, (2,), x, y, out, first, N=n, PART=part, SIZE=128, ALONG=along)
    at = np.arange(first, first + 256)
    expected = x[at % n] * 2 + y[at // part] + (at % n < 5)
    np.testing.assert_array_equal(out[at], expected.astype(np.float32))
    assert not out[: at[0]].any() and not out[at[-1] + 1 :].any()
