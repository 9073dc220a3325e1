"""Conversions from every element type to every other, rounding included, and bit casts."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Guarded,
    accepted,
    assert_one_of,
    inputs,
    numpy_dtype,
    to_torch,
)

N = 600


@triton.jit
def cast_kernel(x_ptr, o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask)
    tl.store(o0 + at, x.to(tl.int1), mask)
    tl.store(o1 + at, x.to(tl.int8), mask)
    tl.store(o2 + at, x.to(tl.int16), mask)
    tl.store(o3 + at, x.to(tl.int32), mask)
    tl.store(o4 + at, x.to(tl.int64), mask)
    tl.store(o5 + at, x.to(tl.uint8), mask)
    tl.store(o6 + at, x.to(tl.uint16), mask)
    tl.store(o7 + at, x.to(tl.uint32), mask)
    tl.store(o8 + at, x.to(tl.uint64), mask)
    tl.store(o9 + at, x.to(tl.float16), mask)
    tl.store(o10 + at, x.to(tl.bfloat16), mask)
    tl.store(o11 + at, x.to(tl.float32), mask)
    tl.store(o12 + at, x.to(tl.float64), mask)


def to_format(value: Fraction, dtype: str) -> float:
    """The number rounded once, to nearest even, to the format."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    if value == 0:
        return 0.0
    exponent = max(abs(value).numerator.bit_length() - abs(value).denominator.bit_length(), info.minexp)
    if abs(value) < Fraction(2) ** exponent and exponent > info.minexp:
        exponent -= 1
    unit = Fraction(2) ** (exponent - info.nmant)
    rounded = round(value / unit) * unit
    if abs(rounded) > Fraction(float(info.max)):
        return float("inf") if value > 0 else float("-inf")
    return float(rounded)


def cast_sources(dtype: str) -> np.ndarray:
    """Special and random values, numbers around the limits of every integer type, and ties of every float format."""
    values = inputs(dtype, N)
    if dtype in FLOATS:
        limits = [
            sign * 2.0**bits + step
            for bits in (7, 8, 15, 16, 31, 32, 63, 64)
            for sign in (1, -1)
            for step in (-1, -0.5, 0, 0.5, 1)
        ]
        ties = [(1 + 2.0**-bits) * scale for bits in (8, 9, 11, 12, 24, 25) for scale in (1, 1.5, 2.0**-14, 2.0**-130)]
        ties += [65504.0, 65519.0, 65520.0, 65536.0, 3.39e38, 2.0**-24, 2.0**-25, 3 * 2.0**-25, 1.5 * 2.0**-25, 1e-45]
        ties += [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-24 + 2.0**-50]
        with np.errstate(all="ignore"):
            extra = np.array([*limits, *ties, *(-tie for tie in ties)]).astype(numpy_dtype(dtype))
        values[-extra.size :] = extra
    elif dtype in ("int32", "uint32", "int64", "uint64"):
        bits = np.iinfo(dtype).bits - 1
        powers = [2**power + step for power in range(8, bits) for step in (-1, 0, 1)]
        powers += [
            2**power + 2 ** (power - digits) + step
            for digits in (8, 9, 11, 12, 24, 25, 53, 54)
            for power in range(digits + 1, bits)
            for step in (-1, 0, 1)
        ]
        chosen = np.random.default_rng(7).choice(np.array(powers, np.uint64), 400).astype(dtype)
        values[-400:] = chosen
    return values


def expected_cast(x: np.ndarray, source: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    """The converted values, and where they are specified."""
    everywhere = np.ones(x.shape, bool)
    with np.errstate(all="ignore"):
        if target == "bool":
            return x.astype(np.float64) != 0 if source in FLOATS else x != 0, everywhere
        if target in INTEGERS and source in FLOATS:
            info = np.iinfo(target)
            whole = np.trunc(x.astype(np.float64))
            fits = (whole >= float(info.min)) & (whole < float(int(info.max) + 1))
            return np.array([int(value) if ok else 0 for value, ok in zip(whole, fits, strict=True)], target), fits
        if target in INTEGERS:
            return x.astype(target), everywhere
        if source in FLOATS:
            wide = x.astype(np.float64)
            if target == "float64":
                return wide, everywhere
            finite = np.isfinite(wide)
            result = [
                to_format(Fraction(float(value)), target) if ok else float(value)
                for value, ok in zip(wide, finite, strict=True)
            ]
            return np.copysign(np.array(result), wide).astype(numpy_dtype(target)), everywhere
        rounded = np.array([to_format(Fraction(int(value)), target) for value in x])
        return rounded.astype(numpy_dtype(target)), everywhere


@pytest.mark.parametrize("source", DTYPES)
def test_every_cast(source):
    x = cast_sources(source)
    outputs = [Guarded(N, target) for target in DTYPES]
    cast_kernel[(3,)](to_torch(x), *(output.tensor for output in outputs), N, BLOCK=256)
    for target, output in zip(DTYPES, outputs, strict=True):
        known = expected_cast(x, source, target)[1]
        ways = accepted(lambda x, to=target: expected_cast(x, source, to)[0], x, result=numpy_dtype(target))
        assert_one_of(output.values()[known], [way[known] for way in ways], x[known], what=f"{source} to {target}")


@triton.jit
def _there_and_back(source, out, n, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(source + at, at < n)
    tl.store(out + at, values.to(NARROW).to(values.dtype), at < n)


@pytest.mark.parametrize("wide, narrow", [("float64", "float32"), ("float64", "float16"), ("float32", "float16")])
def test_a_narrower_type_and_back_rounds(wide, narrow):
    values = torch.from_numpy(np.random.default_rng(3).normal(size=101).astype(wide))
    out = torch.full((128,), 7, dtype=values.dtype)
    _there_and_back[(1,)](values, out, 101, getattr(tl, narrow), 128)
    rounded = values.to(getattr(torch, narrow)).to(values.dtype)
    assert torch.equal(out[:101], rounded) and not torch.equal(rounded, values)
    assert (out[101:] == 7).all()


@triton.jit
def constant_kernel(out_ptr, VALUE: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.full((16,), VALUE, out_ptr.dtype.element_ty))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("bfloat16", (1.5, 3.1, -0.0371, 1e-5, 1e9, 3e38)),
        ("float16", (1.5, 3.1, -0.0371, 1e-5, 65504.0)),
        ("float32", (3.1, 1e-5, 1e9, 3e38)),
        ("float64", (3.1, 1e-5, 1e300)),
        ("float8_e5m2", (1.5, 3.1, -0.0371, 1e-5, 448.0)),
        ("float8_e4m3fn", (1.5, 3.1, -0.0371, 0.001953125, 448.0)),
    ],
)
def test_constants_are_the_nearest_numbers(dtype, values):
    """1e9 is printed as 9.982440e+08 in bfloat16: read as an f32, its upper half is one too small."""
    kind = getattr(torch, dtype)
    for value in (0.0, -1.0, *values):
        out = torch.full((16,), 7.0).to(kind)
        constant_kernel[(1,)](out, value)
        assert out.double().tolist() == [torch.tensor(value, dtype=torch.float64).to(kind).double().item()] * 16, value
