"""Float arithmetic, comparison and selection against NumPy, for every format, odd sizes and numbers of warps."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import (
    FLOATS,
    Guarded,
    accepted,
    assert_one_of,
    assert_same,
    device_capabilities,
    inputs,
    numpy_dtype,
    special_floats,
    to_torch,
)


@triton.jit
def zero_kernel(a_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at)
    zero = tl.zeros([BLOCK], a.dtype)
    tl.store(out_ptr + at, a * zero)
    tl.store(out_ptr + BLOCK + at, zero / a)
    tl.store(out_ptr + 2 * BLOCK + at, a + zero)
    tl.store(out_ptr + 3 * BLOCK + at, zero - a)
    tl.store(out_ptr + 4 * BLOCK + at, a - a)
    tl.store(out_ptr + 5 * BLOCK + at, a / a)
    tl.store(out_ptr + 6 * BLOCK + at, a * zero + 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_constant_zero_operands_keep_nan_and_signs(dtype):
    a = np.resize(special_floats(dtype), 16)
    out = Guarded((7, 16), dtype)
    zero_kernel[(1,)](to_torch(a), out.tensor, BLOCK=16)
    zero = np.zeros_like(a)
    with np.errstate(all="ignore"):
        expected = {
            "x * 0": a * zero,
            "0 / x": zero / a,
            "x + 0": a + zero,
            "0 - x": zero - a,
            "x - x": a - a,
            "x / x": a / a,
            "x * 0 + 1": a * zero + np.ones_like(a),
        }
    for row, (name, values) in zip(out.values(), expected.items(), strict=True):
        assert_same(row, values, name, a)


@triton.jit
def subnormal_kernel(a_ptr, half_ptr, same_ptr, negative_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at)
    tl.store(half_ptr + at, a * 0.5)
    tl.store(same_ptr + at, tl.where(at < 0, a * 2, a))
    tl.store(negative_ptr + at, -a)


@pytest.mark.parametrize("dtype", FLOATS)
def test_subnormals(dtype):
    """Moved and negated exactly; arithmetic may flush them, to a zero of the right sign."""
    bits = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}[dtype]
    a = np.arange(1, 65, dtype=bits).view(numpy_dtype(dtype))
    outputs = [Guarded(64, dtype) for _ in range(3)]
    subnormal_kernel[(1,)](to_torch(a), *(output.tensor for output in outputs), BLOCK=64)
    half, same, negative = (output.values() for output in outputs)
    assert_same(same, a, "moved")
    assert_same(negative, -a, "negated")
    expected = (a.astype(np.float64) * 0.5).astype(numpy_dtype(dtype)) if dtype != "float64" else a * 0.5
    assert ((half == expected) | (half == 0)).all()
    assert not np.signbit(half.astype(np.float64)).any()


# -- scalar arguments --------------------------------------------------------------------------------------------
@triton.jit
def scalar_kernel(out_ptr, value, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros([BLOCK], out_ptr.dtype.element_ty) + value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 1),
        ("int32", 16),
        ("int32", -5),
        ("int32", 2**31 - 1),
        ("int32", -(2**31)),
        ("int64", 2**31),
        ("int64", -(2**31) - 1),
        ("int64", 2**63 - 1),
        ("int64", -(2**63)),
        ("uint64", 2**64 - 1),
        ("int32", True),
        ("int32", False),
        ("float32", 0.1),
        ("float32", -0.0),
        ("float32", float("inf")),
        ("float32", float("nan")),
        ("float32", 1.0),
        ("float64", 3),
        ("float64", -7),
        ("float32", 2.5e-39),
    ],
)
def test_scalar_argument(dtype, value):
    out = Guarded(32, dtype)
    scalar_kernel[(1,)](out.tensor, value, BLOCK=32)
    assert_one_of(
        out.values(), accepted(lambda x: x + np.zeros(32, x.dtype), np.full(32, value, dtype)), what=repr(value)
    )


@triton.jit
def typed_scalar_kernel(
    out_ptr,
    a: tl.float16,
    b: tl.bfloat16,
    c: tl.float32,
    d: tl.float64,
    e: tl.int8,
    f: tl.int16,
    g: tl.int32,
    h: tl.int64,
    i: tl.uint8,
    j: tl.uint16,
    k: tl.uint32,
    m: tl.uint64,
    o: tl.int1,
):
    tl.store(out_ptr, a.to(tl.float64))
    tl.store(out_ptr + 1, b.to(tl.float64))
    tl.store(out_ptr + 2, c.to(tl.float64))
    tl.store(out_ptr + 3, d)
    tl.store(out_ptr + 4, e.to(tl.float64))
    tl.store(out_ptr + 5, f.to(tl.float64))
    tl.store(out_ptr + 6, g.to(tl.float64))
    tl.store(out_ptr + 7, h.to(tl.float64))
    tl.store(out_ptr + 8, i.to(tl.float64))
    tl.store(out_ptr + 9, j.to(tl.float64))
    tl.store(out_ptr + 10, k.to(tl.float64))
    tl.store(out_ptr + 11, m.to(tl.float64))
    tl.store(out_ptr + 12, o.to(tl.float64))


def test_annotated_scalar_arguments_of_every_type():
    out = Guarded(13, "float64")
    values = (-1.25, 3.140625, 0.1, 0.1, -100, -30000, -(2**31), -(2**53), 200, 60000, 2**32 - 1, 2**63, True)
    typed_scalar_kernel[(1,)](out.tensor, *values)
    expected = np.array(values, np.float64)
    expected[2] = np.float32(0.1)
    assert_same(out.values(), expected, "typed scalars")


@triton.jit
def specialised_kernel(out_ptr, maybe_ptr, one, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = at * one
    if maybe_ptr is not None:
        value += tl.load(maybe_ptr + at, at < n, other=0)
    tl.store(out_ptr + at, value, at < n)


@pytest.mark.parametrize("one", (1, 2))
@pytest.mark.parametrize("given", (True, False))
def test_arguments_that_become_constants(one, given):
    out, extra = Guarded(60, "int32"), np.arange(60, dtype=np.int32) ** 2
    specialised_kernel[(1,)](out.tensor, to_torch(extra) if given else None, one, 60, BLOCK=64)
    assert_same(out.values(), np.arange(60, dtype=np.int32) * one + (extra if given else 0), "specialised")


@triton.jit
def many_arguments_kernel(
    out_ptr, a0, a1, a2, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, b0, b1, b2, p10, p11, p12, c0, BLOCK: tl.constexpr
):
    at = tl.arange(0, BLOCK)
    total = tl.load(p0 + at) + 2 * tl.load(p1 + at) + 3 * tl.load(p2 + at) + 4 * tl.load(p3 + at)
    total += 5 * tl.load(p4 + at) + 6 * tl.load(p5 + at) + 7 * tl.load(p6 + at) + 8 * tl.load(p7 + at)
    total += 9 * tl.load(p8 + at) + 10 * tl.load(p9 + at) + 11 * tl.load(p10 + at) + 12 * tl.load(p11 + at)
    total += 13 * tl.load(p12 + at)
    tl.store(out_ptr + at, total + a0 + a1 * 2 + a2 * 3 + b0 + b1 * 2.5 + b2 + c0)


def test_more_arguments_than_push_constants_hold():
    rng = np.random.default_rng(9)
    tensors = [rng.integers(-50, 50, 64).astype(np.float64) for _ in range(13)]
    given = [to_torch(tensor) for tensor in tensors]
    scalars = (-3, 2**40, 17, 0.5, -1.25, True, 99)
    out = Guarded(64, "float64")
    compiled = many_arguments_kernel[(1,)](
        out.tensor, *scalars[:3], *given[:10], *scalars[3:6], *given[10:], scalars[6], BLOCK=64
    )
    assert compiled.metadata.argument_bytes > 128
    fits = compiled.metadata.argument_bytes <= device_capabilities().push_constant_bytes
    assert compiled.metadata.indirect_arguments is not fits
    a0, a1, a2, b0, b1, b2, c0 = map(float, scalars)
    expected = sum(weight * tensor for weight, tensor in enumerate(tensors, 1))
    expected = expected + a0 + a1 * 2 + a2 * 3 + b0 + b1 * 2.5 + b2 + c0
    assert_same(out.values(), expected, "indirect arguments")


@triton.jit
def chain_kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + at, at < n)
    zero = tl.full([BLOCK], -0.0, a.dtype)
    tl.store(out_ptr + at, a * zero, at < n)


@pytest.mark.parametrize("dtype", FLOATS)
def test_negative_zero_constant_keeps_its_sign(dtype):
    a = np.abs(inputs(dtype, 40))
    a = np.where(np.isfinite(a.astype(np.float64)), a, np.ones_like(a))
    out = Guarded(40, dtype)
    chain_kernel[(1,)](to_torch(a), out.tensor, 40, BLOCK=64)
    assert_same(out.values(), np.full(40, -0.0, numpy_dtype(dtype)), "negative zero", a)


@triton.jit
def fma_zero_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    zero = tl.zeros((BLOCK,), x.dtype)
    tl.store(out_ptr + offsets, tl.fma(x, zero, zero))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_fma_with_a_constant_zero_keeps_nan_and_infinity(dtype):
    """Mesa's CPU driver folds a product with the constant 0 to 0."""
    x = torch.tensor([float("inf"), float("-inf"), float("nan"), 1.0], dtype=dtype)
    out = torch.zeros_like(x)
    fma_zero_kernel[(1,)](x, out, BLOCK=4)
    assert out.isnan().tolist() == [True, True, True, False] and out[3] == 0
