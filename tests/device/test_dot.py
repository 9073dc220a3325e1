"""tl.dot against NumPy in float64: formats, shapes, numbers of warps, transposed operands, chains, loops."""

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import Guarded, assert_same, device_capabilities, numpy_dtype, to_torch

#: Bits of the significand that a product's operands have.
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}

#: Not on Mesa's CPU driver, for whose compiler little is done. Smaller kernels of this file run there.
quickly_compiled = pytest.mark.skipif(
    device_capabilities().driver == "mesa_llvmpipe", reason="it compiles each of these kernels for 10 to 60 s"
)


@triton.jit
def dot_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    out_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TRANS_A: tl.constexpr,
    TRANS_B: tl.constexpr,
    OUT: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATE: tl.constexpr,
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if TRANS_A:
        a = tl.trans(tl.load(a_ptr + k[:, None] * M + m[None, :]))
    else:
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    if TRANS_B:
        b = tl.load(b_ptr + n[:, None] * K + k[None, :]).T
    else:
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    at = m[:, None] * N + n[None, :]
    if ACCUMULATE:
        out = tl.dot(a, b, tl.load(c_ptr + at), out_dtype=OUT, input_precision=PRECISION)
    else:
        out = tl.dot(a, b, out_dtype=OUT, input_precision=PRECISION)
    tl.store(out_ptr + at, out)


def operands(dtype: str, *shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if dtype in ("int8", "int32"):
        return [rng.integers(-128, 128, shape).astype(dtype) for shape in shapes]
    return [rng.standard_normal(shape).astype(numpy_dtype(dtype)) for shape in shapes]


def check(actual: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, accumulator: str, out: str) -> None:
    """The error bound of a sum of K products in the accumulator's format, then one rounding."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    expected, size = a @ b, np.abs(a) @ np.abs(b)
    if c is not None:
        expected, size = expected + c.astype(np.float64), size + np.abs(c.astype(np.float64))
    bound = (a.shape[-1] + 2) * size * 2.0 ** -DIGITS[accumulator] + np.abs(expected) * 2.0 ** -DIGITS[out] + 1e-30
    error = np.abs(actual.astype(np.float64) - expected)
    assert (error <= bound).all(), (float(error.max()), float((error / bound).max()))


def run(
    dtype: str,
    M: int,
    N: int,
    K: int,
    warps: int = 4,
    trans_a: bool = False,
    trans_b: bool = False,
    out: str = "float32",
    precision: str | None = None,
    accumulate: bool = False,
) -> None:
    a, b = operands(dtype, (M, K), (K, N))
    kept = "int32" if dtype == "int8" else out
    (c,) = operands(kept, (M, N), seed=1)
    result = Guarded((M, N), kept)
    dot_kernel[(1,)](
        to_torch(a.T if trans_a else a),
        to_torch(b.T if trans_b else b),
        to_torch(c),
        result.tensor,
        M,
        N,
        K,
        trans_a,
        trans_b,
        getattr(tl, kept),
        precision,
        accumulate,
        num_warps=warps,
    )
    if dtype == "int8":
        expected = a.astype(np.int32) @ b.astype(np.int32) + (c if accumulate else 0)
        assert_same(result.values(), expected, "int8")
    else:
        accumulator = "float64" if dtype == "float64" else "float32"
        check(result.values(), a, b, c if accumulate else None, accumulator, out)


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (2, 2, 2), (4, 1, 8), (1, 16, 4), (16, 16, 16), (16, 16, 1), (32, 64, 16), (64, 16, 32), (8, 128, 2)],
)
@pytest.mark.parametrize("warps", (1, 4, 8))
def test_shapes(shape, warps):
    run("float32", *shape, warps=warps)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64", "int8"))
@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (True, False), (False, True), (True, True)])
def test_formats_and_transposition(dtype, trans_a, trans_b):
    out = dtype if dtype == "float64" else "float32"
    run(dtype, 16, 16, 32, trans_a=trans_a, trans_b=trans_b, accumulate=True, out=out)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_half_precision_results(dtype):
    run("float16", 16, 32, 32, out="float16")
    run(dtype, 16, 32, 32, accumulate=True)


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_large_tile(dtype):
    run(dtype, 64, 32, 32, warps=8, accumulate=True)


#: 8-bit float formats that torch and Triton both know.
FLOAT8 = {
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
}


def float8(name: str, shape: tuple[int, int], seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """All finite codes in turn, shuffled, and their values."""
    codes = np.arange(256, dtype=np.uint8)
    codes = codes[np.isfinite(codes.view(FLOAT8[name]).astype(np.float64))]
    chosen = np.random.default_rng(seed).permutation(np.resize(codes, np.prod(shape))).reshape(shape)
    return torch.from_numpy(chosen).view(getattr(torch, name)), chosen.view(FLOAT8[name]).astype(np.float64)


@pytest.mark.parametrize(
    ("a_format", "b_format"),
    [*((name, name) for name in FLOAT8), ("float8_e5m2", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2")],
)
@pytest.mark.parametrize("shape", [(16, 32, 32), (32, 16, 128)])
def test_eight_bit_floats(a_format, b_format, shape):
    M, N, K = shape
    (a, a_values), (b, b_values) = float8(a_format, (M, K), 0), float8(b_format, (K, N), 1)
    result = Guarded((M, N), "float32")
    dot_kernel[(1,)](a, b, torch.zeros(1), result.tensor, M, N, K, False, False, tl.float32, None, False)
    check(result.values(), a_values, b_values, None, "float32", "float32")


@triton.jit
def batched_kernel(a_ptr, b_ptr, out_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch = tl.arange(0, B)[:, None, None]
    m, n = tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    k_row, k_column = tl.arange(0, K)[None, None, :], tl.arange(0, K)[None, :, None]
    a = tl.load(a_ptr + (batch * M + m) * K + k_row)
    b = tl.load(b_ptr + (batch * K + k_column) * N + n)
    tl.store(out_ptr + (batch * M + m) * N + n, tl.dot(a, b, out_dtype=out_ptr.dtype.element_ty))


@pytest.mark.parametrize("shape", [(2, 16, 16, 16), (4, 8, 32, 4), (8, 2, 2, 2)])
@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "int8"))
def test_batched(dtype, shape):
    B, M, N, K = shape
    a, b = operands(dtype, (B, M, K), (B, K, N))
    out = {"float64": "float64", "int8": "int32"}.get(dtype, "float32")
    result = Guarded((B, M, N), out)
    batched_kernel[(1,)](to_torch(a), to_torch(b), result.tensor, B, M, N, K)
    if dtype == "int8":
        assert_same(result.values(), a.astype(np.int32) @ b.astype(np.int32), "int8")
    else:
        check(result.values(), a, b, None, out, out)


@triton.jit
def bytes_kernel(a_ptr, b_ptr, out_ptr, M, N, K, sam, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_at, b_at = a_ptr + m[:, None] * sam + k[None, :], b_ptr + k[:, None] * sbk + n[None, :] * sbn
    total = tl.zeros((BM, BN), tl.int32)
    for first in range(0, K, BK):
        a = tl.load(a_at, mask=(m[:, None] < M) & (k[None, :] < K - first), other=0)
        b = tl.load(b_at, mask=(k[:, None] < K - first) & (n[None, :] < N), other=0)
        total = tl.dot(a, b, total)
        a_at += BK
        b_at += BK * sbk
    tl.store(out_ptr + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("shape", [(70, 75, 333), (16, 64, 31), (33, 130, 64), (1, 17, 5)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_a_loop_of_bytes(shape, turned):
    """Extreme factors, whose sums have 23 bits, at odd addresses; rows of A are longer than K."""
    m, n, k = shape
    rng = np.random.default_rng(4)
    a, b = (
        rng.choice(np.array([-128, 127, -1, 5], np.int8), size) for size in ((m, k + 3), (n, k) if turned else (k, n))
    )
    memory = [torch.cat([torch.zeros(1, dtype=torch.int8), torch.from_numpy(one.ravel())])[1:] for one in (a, b)]
    result = Guarded((m, n), "int32")
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
    steps = (1, k) if turned else (n, 1)
    bytes_kernel[grid](*memory, result.tensor, m, n, k, k + 3, *steps, 32, 64, 32)
    right = b.T if turned else b
    assert_same(result.values(), a[:, :k].astype(np.int32) @ right.astype(np.int32), "int8")


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, SCALE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    acc = tl.zeros([M, D], tl.float32)
    top = tl.full([M], float("-inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    for start in range(0, S, N):
        inside = start + n < S
        k = tl.load(k_ptr + (start + n)[:, None] * D + d[None, :], inside[:, None], other=0.0)
        v = tl.load(v_ptr + (start + n)[:, None] * D + d[None, :], inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * SCALE, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        weight = tl.exp(scores - new_top[:, None])
        scale = tl.exp(top - new_top)
        acc = tl.dot(weight.to(v.dtype), v, acc * scale[:, None])
        total = total * scale + tl.sum(weight, 1)
        top = new_top
    tl.store(out_ptr + m[:, None] * D + d[None, :], acc / total[:, None])


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32"))
@pytest.mark.parametrize(("S", "warps"), [(40, 4), (64, 1), (7, 8)])
def test_chain_of_dots_in_a_loop(dtype, S, warps):
    M, N, D = 16, 32, 16
    q, k, v = operands(dtype, (M, D), (S, D), (S, D))
    out = Guarded((M, D), "float32")
    attention_kernel[(1,)](to_torch(q), to_torch(k), to_torch(v), out.tensor, S, 0.25, M, N, D, num_warps=warps)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.T * 0.25
    weight = np.exp(scores - scores.max(1, keepdims=True))
    expected = weight @ v / weight.sum(1, keepdims=True)
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6}[dtype]
    assert np.abs(out.values() - expected).max() < tolerance


@triton.jit
def computed_kernel(a_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = (k[:, None] * 3 - m[None, :]).to(tl.float32)
    first = tl.dot(a * 2 + 1, b)
    second = tl.dot(first, tl.trans(a).to(tl.float32) + 0.5 if K == M else first)
    tl.store(out_ptr + m[:, None] * M + m[None, :], second + tl.sum(first, 1)[:, None])


def test_operands_from_computation():
    (a,) = operands("float32", (16, 16))
    out = Guarded((16, 16), "float32")
    computed_kernel[(1,)](to_torch(a), out.tensor, 16, 16)
    wide = a.astype(np.float64)
    b = np.arange(16)[:, None] * 3.0 - np.arange(16)[None, :]
    first = (wide * 2 + 1) @ b
    expected = first @ (wide.T + 0.5) + first.sum(1)[:, None]
    scale = np.abs(first) @ np.abs(wide.T + 0.5) + np.abs(first).sum(1)[:, None]
    assert (np.abs(out.values() - expected) <= 1e-5 * scale + 1e-3).all()


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], (k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize(("M", "N", "K"), [(1, 1, 1), (33, 65, 100), (70, 17, 31)])
def test_masked_matmul(dtype, M, N, K):
    a, b = operands(dtype, (M, K), (K, N))
    out = Guarded((M, N), "float32")
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    matmul_kernel[grid](to_torch(a), to_torch(b), out.tensor, M, N, K, 32, 32, 32)
    check(out.values(), a, b, None, "float32", "float32")


@triton.jit
def tall_steps_kernel(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, STEP):
        inside = k + steps < K
        a = tl.load(a_ptr + rows[:, None] * K + k + steps[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (k + steps)[:, None] * N + columns[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)


def test_a_tile_that_takes_more_shared_memory_than_there_is_is_multiplied():
    """A and B take 64 KiB whole, which a device of tiles does not take. K is odd: rows of A are not aligned."""
    a, b = operands("float32", (32, 401), (401, 32))
    out = Guarded((32, 32), "float32", offset=1)
    compiled = tall_steps_kernel[(1,)](to_torch(a), to_torch(b), out.tensor, 401, 32, 32, 256)
    device = device_capabilities()
    assert compiled.metadata.shared <= device.shared_bytes
    assert (compiled.metadata.shared <= 16) == bool(device.tile_products)  # what is said of none
    check(out.values(), a, b, None, "float32", "float32")


@triton.jit
def turned_steps_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Both operands are transposes, whose steps of K lie in other registers and lanes."""
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(a_ptr + steps[:, None] * M + rows), tl.load(b_ptr + columns[:, None] * K + steps)
    tl.store(out_ptr + rows[:, None] * N + columns, tl.dot(tl.trans(a), tl.trans(b)))


@quickly_compiled
@pytest.mark.parametrize(("shape", "dtype"), [((64, 32, 256), "float32"), ((32, 64, 512), "float16")])
def test_long_steps_of_transposes(shape, dtype):
    m, n, k = shape
    a, b = operands(dtype, (k, m), (n, k))
    out = Guarded((m, n), "float32", offset=1)
    turned_steps_kernel[(1,)](to_torch(a), to_torch(b), out.tensor, m, n, k)
    check(out.values(), np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), None, dtype, "float32")


@triton.jit
def shared_operand_kernel(a_ptr, b_ptr, out_ptr, SIZE: tl.constexpr):
    """The first dot's left operand is the second's, and both operands of the third."""
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    first, second = tl.dot(a, b, input_precision="ieee"), tl.dot(a, tl.trans(b), input_precision="ieee")
    tl.store(out_ptr + at, first + second * tl.dot(a, tl.trans(a), input_precision="ieee"))


@triton.jit
def two_formats_kernel(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at).to(tl.float64)
    tl.store(z_ptr + at, tl.dot(x, x).to(tl.float64) + tl.dot(y, y))


@pytest.mark.parametrize("warps", (1, 2, 4))
def test_dots_of_two_formats_in_one_kernel(warps):
    (x,), (y,) = operands("float16", (32, 32)), operands("float32", (32, 32), seed=1)
    z = Guarded((32, 32), "float64")
    two_formats_kernel[(1,)](to_torch(x), to_torch(y), z.tensor, 32, num_warps=warps)
    wide, exact = x.astype(np.float64), y.astype(np.float64)
    np.testing.assert_allclose(z.values(), wide @ wide + exact @ exact, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_operand_of_several_dots(dtype):
    """In float32 the operands take 48 KiB whole; in float16 there is room for them."""
    a, b = operands(dtype, (64, 64), (64, 64))
    out = Guarded((64, 64), "float32", offset=1)
    shared_operand_kernel[(1,)](to_torch(a), to_torch(b), out.tensor, 64)
    wide = a.astype(np.float64), b.astype(np.float64)
    expected = wide[0] @ wide[1] + (wide[0] @ wide[1].T) * (wide[0] @ wide[0].T)
    np.testing.assert_allclose(out.values(), expected, rtol=1e-5, atol=1e-4 * np.abs(expected).max())


@triton.jit
def polynomial_kernel(x_ptr, y_ptr, out_ptr, SIZE, TERMS: tl.constexpr, S: tl.constexpr):
    row, column = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    inside = (row < SIZE) & (column < SIZE)
    x = tl.load(x_ptr + row * SIZE + column, mask=inside, other=0.0)
    y = tl.load(y_ptr + row * SIZE + column, mask=inside, other=0.0)
    total = x
    for term in tl.static_range(TERMS):
        total = tl.dot(total, y) * 0.5 + tl.dot(y, total + x)
        if term % 2:
            total = tl.where(row > column, total, x)
    tl.store(out_ptr + row * SIZE + column, total, mask=inside)


@quickly_compiled
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(("size", "S"), [(16, 16), (11, 16), (29, 32)])
def test_many_dots_of_each_others_results(size, S, warps):
    """Operands are converted from results within a subgroup, or go through buffers; some are an operand on both
    sides."""
    x, y = (0.2 * array.astype(np.float32) for array in operands("float32", (size, size), (size, size)))
    expected = wide = x.astype(np.float64)
    bound = np.abs(wide)
    for term in range(8):
        expected = expected @ y.astype(np.float64) * 0.5 + y.astype(np.float64) @ (expected + wide)
        bound = bound @ np.abs(y) * 0.5 + np.abs(y) @ (bound + np.abs(wide))
        if term % 2:
            expected, bound = (
                np.where(np.tri(size, k=-1, dtype=bool), one, other)
                for one, other in ((expected, wide), (bound, np.abs(wide)))
            )
    out = torch.zeros(size, size)
    polynomial_kernel[(1,)](to_torch(x), to_torch(y), out, size, 8, S, num_warps=warps)
    assert np.all(np.abs(out.numpy() - expected) <= 8 * 2 * (size + 3) * 2.0**-24 * bound)


def test_infinities_and_nan_reach_the_result():
    a, b = operands("float32", (16, 16), (16, 16))
    a[3, 2], b[5, 7], a[9, 0] = np.inf, np.nan, -np.inf
    out, c = Guarded((16, 16), "float32"), np.zeros((16, 16), np.float32)
    dot_kernel[(1,)](
        to_torch(a), to_torch(b), to_torch(c), out.tensor, 16, 16, 16, False, False, tl.float32, "ieee", False
    )
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    values = out.values()
    assert (np.isnan(values) == np.isnan(expected)).all()
    assert (np.isinf(values) == np.isinf(expected)).all()
