"""tl.dot on matrix fragments against NumPy in float64, on the device's own matrix units. Emulated devices have those of
their profiles."""

from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.kernel_plan import KernelPlan

from tests.device.helpers import Guarded, assert_same, device_capabilities, numpy_dtype, to_torch
from tests.device.test_dot import check, dot_kernel, float8, operands

HOPPER = PROFILES["nvidia-hopper"]
#: NumPy's name of a type → that of a component of matrices.
COMPONENTS = {"float16": "f16", "bfloat16": "bf16", "int8": "s8"}


@pytest.fixture
def units() -> str:
    """The value of the option matrix_units for the device's own."""
    if not device_capabilities().matrices:
        pytest.skip("the device has no matrix units")
    return "1"


def run(
    units: str,
    dtype: str,
    m: int,
    n: int,
    k: int,
    warps: int = 1,
    trans_a: bool = False,
    trans_b: bool = False,
    out: str = "float32",
    accumulate: bool = False,
) -> bool:
    """Checks one dot. Returns whether it was of fragments."""
    a, b = operands(dtype, (m, k), (k, n))
    kept = "int32" if dtype == "int8" else out
    (c,) = operands(kept, (m, n), seed=1)
    result = Guarded((m, n), kept)
    left, right = to_torch(a.T if trans_a else a), to_torch(b.T if trans_b else b)
    kernel = dot_kernel[(1,)](
        *(left, right, to_torch(c), result.tensor, m, n, k, trans_a, trans_b, getattr(tl, kept), "ieee", accumulate),
        num_warps=warps,
        matrix_units=units,
    )
    if dtype == "int8":
        wanted = a.astype(np.int32) @ b.astype(np.int32) + (c if accumulate else 0)
        assert_same(result.values(), wanted, "int8")
    else:
        check(result.values(), a, b, c if accumulate else None, "float32", out)
    return has_fragments(kernel)


def has_fragments(kernel: Any) -> bool:
    """Whether a kernel's dots were laid out as fragments."""
    return "#ttg.nvidia_mma" in kernel.asm["ttgir"]


def multiplies(dtype: str) -> bool:
    """Whether the device's units have this type."""
    return any(one.a == COMPONENTS[dtype] for one in device_capabilities().matrices)


def nvidias() -> bool:
    """Whether the device's fragments are NVIDIA's, which upstream's passes lay dots out for."""
    halves = [{one.maps for one in of.matrices if one.a == "f16"} for of in (device_capabilities(), HOPPER)]
    return not halves[0].isdisjoint(halves[1])


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "int8"))
@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (True, True)])
def test_formats_and_transposition(units: str, dtype: str, trans_a: bool, trans_b: bool) -> None:
    k = 32 if dtype == "int8" else 16
    fragments = run(units, dtype, 16, 16, k, trans_a=trans_a, trans_b=trans_b, accumulate=True)
    assert fragments == multiplies(dtype)


@pytest.mark.parametrize("shape", [(16, 8, 16), (32, 16, 16), (16, 32, 32), (8, 16, 16), (2, 4, 16), (1, 1, 16)])
def test_shapes(units: str, shape: tuple[int, int, int]) -> None:
    assert run(units, "float16", *shape)


@pytest.mark.parametrize("shape", [(16, 16, 8), (4, 4, 1)])
def test_too_few_steps_are_multiply_adds(units: str, shape: tuple[int, int, int]) -> None:
    assert not run(units, "float16", *shape)


@pytest.mark.parametrize("warps", (2, 4))
def test_warps(units: str, warps: int) -> None:
    assert run(units, "float16", 32, 32, 16, warps=warps)


def test_narrow_results_are_added_in_wide_ones(units: str) -> None:
    assert run(units, "float16", 16, 16, 32, out="float16", accumulate=True)


def test_eight_bit_floats_are_multiplied_as_halves(units: str) -> None:
    (a, a_values), (b, b_values) = float8("float8_e4m3fn", (2, 32), 0), float8("float8_e5m2", (32, 4), 1)
    result = Guarded((2, 4), "float32")
    arguments = (a, b, a, result.tensor, 2, 4, 32, False, False, tl.float32, None, False)
    kernel = dot_kernel[(1,)](*arguments, num_warps=1, matrix_units=units)
    check(result.values(), a_values, b_values, None, "float32", "float32")
    assert has_fragments(kernel)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_what_no_unit_multiplies_is_multiply_adds(units: str, dtype: str) -> None:
    assert not run(units, dtype, 16, 16, 16, out=dtype)


@triton.jit
def batched(a, b, c, Z: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    z, m, n, k = tl.arange(0, Z), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + z[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b + z[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + z[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(left, right))


def test_batches(units: str) -> None:
    a, b = operands("float16", (2, 16, 16), (2, 16, 8))
    result = Guarded((2, 16, 8), "float32")
    kernel = batched[(1,)](to_torch(a), to_torch(b), result.tensor, 2, 16, 8, 16, num_warps=2, matrix_units=units)
    check(result.values(), a, b, None, "float32", "float32")
    assert has_fragments(kernel)


def test_dots_are_cut_where_shared_memory_is_small(units: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """As if there were 2,048 bytes: it takes 3,072. On multiply-adds, where fragments that differ from NVIDIA's go, it
    takes 2,560."""
    limit = 2048 if nvidias() else 2560
    monkeypatch.setattr(KernelPlan, "fits", property(lambda plan: plan.shared_bytes <= limit))
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        a, b = operands("float16", (16, 32), (32, 16))
        result = Guarded((16, 16), "float32")
        arguments = (to_torch(a), to_torch(b), to_torch(a), result.tensor, 16, 16, 32)
        options: dict[str, Any] = {"num_warps": 1, "matrix_units": units}
        kernel: Any = dot_kernel[(1,)](*arguments, False, False, tl.float32, "ieee", False, **options)
    check(result.values(), a, b, None, "float32", "float32")
    assert kernel.metadata.shared <= limit
    if nvidias():  # the others are not cut
        assert "OpCooperativeMatrixMulAddKHR" in kernel.asm["spvasm"]


@triton.jit
def attention(q, k, v, out, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Softmax of q × k, times v: two chained dots, with reductions and a loop between them."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + rows[:, None] * D + depth[None, :])
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    values = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        keys = tl.load(k + (start + columns)[None, :] * D + depth[:, None])
        scores = tl.dot(queries, keys) * scale
        scores = tl.where((start + columns)[None, :] < length, scores, -float("inf"))
        now = tl.maximum(largest, tl.max(scores, 1))
        weights, correction = tl.exp(scores - now[:, None]), tl.exp(largest - now)
        total = total * correction + tl.sum(weights, 1)
        values = values * correction[:, None]
        values = tl.dot(weights.to(tl.float16), tl.load(v + (start + columns)[:, None] * D + depth[None, :]), values)
        largest = now
    tl.store(out + rows[:, None] * D + depth[None, :], values / total[:, None])


def test_attention(units: str) -> None:
    q, k, v = operands("float16", (16, 16), (64, 16), (64, 16))
    result = Guarded((16, 16), "float32")
    kernel = attention[(1,)](
        *(to_torch(x) for x in (q, k, v)), result.tensor, 64, 0.25, 16, 16, 16, num_warps=1, matrix_units=units
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    assert np.abs(result.values() - wanted).max() < 2e-3
    assert has_fragments(kernel)


@triton.jit
def transposed(q, k, out, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """q × kᵀ × k, a block of rows of k after the other: each is read as it is, and transposed."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    left = tl.load(q + rows[:, None] * D + depth[None, :])
    total = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        at = start + columns
        right = tl.load(k + at[:, None] * D + depth[None, :], mask=at[:, None] < length, other=0.0)
        total = tl.dot(tl.dot(left, tl.trans(right)).to(tl.float16), right, total)
    tl.store(out + rows[:, None] * D + depth[None, :], total)


def test_transposed_in_a_loop(units: str) -> None:
    q, k = operands("float16", (16, 32), (43, 32))
    result = Guarded((16, 32), "float32")
    kernel = transposed[(1,)](to_torch(q), to_torch(k), result.tensor, 43, 16, 16, 32, num_warps=2, matrix_units=units)
    wanted = (q.astype(np.float64) @ k.astype(np.float64).T).astype(np.float16).astype(np.float64)
    size = np.abs(wanted) @ np.abs(k.astype(np.float64))
    assert (np.abs(result.values() - wanted @ k.astype(np.float64)) <= 2.0**-10 * size).all()
    assert has_fragments(kernel)


@triton.jit
def key_gradients(q, k, bias, out, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """max(q × kᵀ + bias, 0)ᵀ × q over blocks of rows of q: the scores are only used transposed."""
    keys, depth = tl.arange(0, N), tl.arange(0, D)
    right = tl.load(k + keys[:, None] * D + depth[None, :])
    total = tl.zeros((N, D), tl.float32)
    for start in range(0, length, M):
        at = (start + tl.arange(0, M))[:, None]
        left = tl.load(q + at * D + depth[None, :], mask=at < length, other=0.0)
        scores = tl.dot(left, tl.trans(right))
        scores += tl.load(bias + at * N + keys[None, :], mask=at < length, other=0.0)
        weights = tl.where(at < length, tl.maximum(scores, 0.0), 0.0)
        total = tl.dot(tl.trans(weights.to(tl.float16)), left, total)
    tl.store(out + keys[:, None] * D + depth[None, :], total)


def test_what_is_only_used_transposed(units: str) -> None:
    q, k, bias = operands("float16", (37, 16), (32, 16), (37, 32))
    result = Guarded((32, 16), "float32", offset=1)
    kernel = key_gradients[(1,)](
        *(to_torch(x) for x in (q, k, bias)), result.tensor, 37, 16, 32, 16, num_warps=2, matrix_units=units
    )
    exact = np.maximum(q.astype(np.float64) @ k.astype(np.float64).T + bias.astype(np.float64), 0)
    weights, wide = exact.astype(np.float16).astype(np.float64), q.astype(np.float64)
    assert (np.abs(result.values() - weights.T @ wide) <= 2.0**-10 * weights.T @ np.abs(wide) + 1e-6).all()
    assert has_fragments(kernel)


@triton.jit
def batched_rows(a, b, c, Z: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """a × bᵀ of rows of bytes."""
    z, m, n, k = tl.arange(0, Z), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + z[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b + z[:, None, None] * N * K + n[None, :, None] * K + k[None, None, :])
    product = tl.dot(left.to(tl.float16), tl.permute(right.to(tl.float16), (0, 2, 1)))
    tl.store(c + z[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :], product)


@pytest.mark.parametrize("shape", [(4, 1, 1, 16), (2, 16, 16, 32)])
def test_batches_of_bytes_that_are_widened_and_transposed(units: str, shape: tuple[int, int, int, int]) -> None:
    """The indices of what is loaded as a transposed operand are slices of slices of its layout."""
    z, m, n, k = shape
    a, b = operands("int8", (z, m, k), (z, n, k))
    result = Guarded((z, m, n), "float32")
    batched_rows[(1,)](to_torch(a), to_torch(b), result.tensor, z, m, n, k, num_warps=8, matrix_units=units)
    assert_same(result.values(), a.astype(np.float32) @ b.astype(np.float32).transpose(0, 2, 1), "float32")


@triton.jit
def scaled_rows(a, b, scale, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """a × bᵀ, with each row of b times a number."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    right = tl.load(b + n[:, None] * K + k[None, :]) * tl.load(scale + n)[:, None]
    left = tl.load(a + m[:, None] * K + k[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(left, tl.trans(right)))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize(("m", "n", "warps"), [(16, 16, 1), (16, 32, 2), (32, 32, 2)])
def test_scaled_rows_of_a_transposed_operand(units: str, dtype: str, m: int, n: int, warps: int) -> None:
    """The column of numbers has the layout in which b is loaded, which is the fragments' only as upstream has them."""
    a, b = operands(dtype, (m, 32), (n, 32))
    (scale,) = operands(dtype, (n, 1), seed=1)
    result = Guarded((m, n), "float32")
    kernel = scaled_rows[(1,)](
        *(to_torch(x) for x in (a, b, scale)), result.tensor, m, n, 32, num_warps=warps, matrix_units=units
    )
    rounded = (b.astype(np.float64) * scale.astype(np.float64)).astype(b.dtype)
    check(result.values(), a, rounded.T, None, "float32", "float32")
    assert has_fragments(kernel) == multiplies(dtype)


@triton.jit
def sum_of_products(a, b, c, Z: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The transpose of Σ a × b."""
    z, m, n, k = tl.arange(0, Z), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + z[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b + z[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + n[:, None] * M + m[None, :], tl.trans(tl.sum(tl.dot(left, right), 0)))


@pytest.mark.parametrize("warps", (1, 2))
def test_a_sum_of_products_that_is_transposed(units: str, warps: int) -> None:
    """What is transposed has a slice of the fragments' layout."""
    a, b = operands("float16", (2, 16, 16), (2, 16, 16))
    result = Guarded((16, 16), "float32")
    kernel = sum_of_products[(1,)](
        to_torch(a), to_torch(b), result.tensor, 2, 16, 16, 16, num_warps=warps, matrix_units=units
    )
    whole = a.transpose(1, 0, 2).reshape(16, 32), b.reshape(32, 16)
    check(result.values().T, *whole, None, "float32", "float32")
    assert has_fragments(kernel)


@triton.jit
def row_sums(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Of each row of (a × b)ᵀ the sum and the largest number, side by side."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    turned = tl.trans(tl.dot(left, right))
    joined = tl.join(tl.sum(turned, 1), tl.max(turned, 1))
    tl.store(c + n[:, None] * 2 + tl.arange(0, 2)[None, :], joined)


@pytest.mark.parametrize("warps", (1, 2))
def test_joined_sums_of_a_transposed_product(units: str, warps: int) -> None:
    """What is joined has a slice of a layout that only a transposition ties to the fragments'."""
    a, b = operands("float16", (16, 32), (32, 32))
    result = Guarded((32, 2), "float32")
    kernel = row_sums[(1,)](to_torch(a), to_torch(b), result.tensor, 16, 32, 32, num_warps=warps, matrix_units=units)
    product = a.astype(np.float64) @ b.astype(np.float64)
    wanted = np.stack([product.sum(0), product.max(0)], 1)
    assert np.abs(result.values() - wanted).max() < 1e-3 * np.abs(product).sum(0).max()
    assert has_fragments(kernel) or not nvidias()


@triton.jit
def converted_kernel(a_ptr, b_ptr, out_ptr, factor, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, T: tl.constexpr):
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + steps[None, :])
    b = tl.load(b_ptr + steps[:, None] * N + columns[None, :])
    total = tl.dot((a * factor).to(T), (b * 2).to(T), tl.zeros((M, N), tl.float32))
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)


@pytest.mark.parametrize("source, target", [("float32", "float16"), ("float32", "bfloat16"), ("int8", "float16")])
@pytest.mark.parametrize("warps", (1, 4))
def test_operands_that_the_kernel_converts(units: str, source: str, target: str, warps: int) -> None:
    m, n, k = 32, 16, 64
    a, b = operands(source, (m, k), (k, n))
    if source == "int8":
        a, b = a // 4, b // 4
    result = Guarded((m, n), "float32")
    converted_kernel[(1,)](
        to_torch(a), to_torch(b), result.tensor, 3, m, n, k, getattr(tl, target), num_warps=warps, matrix_units=units
    )
    left, right = (
        (one * times).astype(numpy_dtype(target)) for one, times in ((a, a.dtype.type(3)), (b, b.dtype.type(2)))
    )
    check(result.values(), left, right, None, "float32", "float32")
