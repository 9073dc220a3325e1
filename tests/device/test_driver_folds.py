"""Pairs of operations that a driver's compiler may fold into one although both count: each against NumPy, on values
where the folded pair gives something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.driver_quirks import DRIVERS, OTHER

from tests.device.helpers import device_capabilities, to_torch

N = 1024


@triton.jit
def halves_kernel(x_ptr, y_ptr, flag, WAY: tl.constexpr, NARROW: tl.constexpr, N: tl.constexpr):
    """x narrowed to ``NARROW``, and widened again after what ``WAY`` names."""
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    half = x.to(NARROW)
    if WAY == "select":
        half = tl.where(at % 3 == flag, half, (x * 3).to(NARROW))
    elif WAY == "branch":
        if flag == 0:
            half = (x * 3).to(NARROW)
    elif WAY == "loop":
        for _ in range(flag):
            half = (half.to(tl.float32) * 1.0009765625).to(NARROW)
    elif WAY == "reshape":
        half = tl.trans(tl.reshape(half, (N // 2, 2)))
        half = tl.reshape(tl.trans(half), (N,))
    elif WAY == "turn":  # through shared memory, or shuffles
        half = tl.reshape(tl.trans(tl.reshape(half, (N // 32, 32))), (N,))
    elif WAY == "negate":
        half = -half
    elif WAY == "memory":
        tl.store(y_ptr.to(tl.pointer_type(NARROW)) + at, half)
        half = tl.load(y_ptr.to(tl.pointer_type(NARROW)) + at)
    elif WAY == "maximum":
        half = tl.maximum(half, half * 0)
    tl.store(y_ptr + at, half.to(tl.float32))


def _halves(x: np.ndarray, way: str, narrow: Any, flag: int) -> np.ndarray:
    half = x.astype(narrow)
    if way == "select":
        half = np.where(np.arange(x.size) % 3 == flag, half, (x * np.float32(3)).astype(narrow))
    elif way == "loop":
        for _ in range(flag):
            half = (half.astype(np.float32) * np.float32(1.0009765625)).astype(narrow)
    elif way == "turn":
        half = half.reshape(x.size // 32, 32).T.reshape(-1)
    elif way == "negate":
        half = -half
    elif way == "maximum":
        half = np.maximum(half, half * narrow(0))
    return half.astype(np.float32)


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The device's driver is taken for one with the faults that only NVIDIA's has."""
    driver = device_capabilities().driver
    traits = DRIVERS.get(driver, OTHER)
    faults = replace(
        traits.faults,
        widens_unrounded=True,
        narrows_sums=True,
        widens_negations=True,
        takes_for_small=True,
        narrows_saturation=True,
    )
    monkeypatch.setitem(DRIVERS, driver, replace(traits, faults=faults))
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        kernels = (back_kernel, sums_kernel, unsigned_kernel, narrow_kernel)
        for kernel in kernels:
            kernel.device_caches.clear()
        yield
    for kernel in kernels:
        kernel.device_caches.clear()


@triton.jit
def back_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < N)
    tl.store(y_ptr + at, x.to(tl.float16).to(tl.float32), mask=at < N)


def test_every_half_and_the_numbers_around_it(faulty: None) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = np.unique(halves[np.isfinite(halves)])
    between = (halves[1:] + halves[:-1]) / 2
    numbers = np.concatenate([halves, between, [65519.996, 65520.0, 65521.0, 3e38, np.inf, np.nan, 1e-40, 2.0**-25]])
    numbers = np.concatenate([np.nextafter(numbers, np.float32(way)) for way in (-np.inf, np.inf)] + [numbers])
    x = np.concatenate([numbers, -numbers]).astype(np.float32)
    y = torch.zeros(x.size)
    back_kernel[(triton.cdiv(x.size, 1024),)](torch.from_numpy(x), y, x.size, 1024)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float16).astype(np.float32)
    found = y.numpy()
    same = (found.view(np.int32) == wanted.view(np.int32)) | (np.isnan(found) & np.isnan(wanted))
    assert same.all(), [(x[i], found[i], wanted[i]) for i in np.flatnonzero(~same)[:5]]


def test_sums_on_a_driver_that_narrows_them(faulty: None) -> None:
    test_wide_sums_in_the_range_of_a_narrow_type(np.int8, "add", "or")


@pytest.mark.parametrize("what", ["-x", "0 - x", "-1 * x, found", "~x + 1", "x - y", "x * y"])
def test_narrow_results_on_a_driver_that_widens_negations(faulty: None, what: str) -> None:
    test_narrow_results_wrap_before_they_are_used(np.int16, what)


NARROW = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize(
    "way",
    ["", "select", "branch", "loop", "reshape", "turn", "negate", "memory", "maximum"],
    ids=lambda way: way or "alone",
)
def test_a_narrowed_number_stays_rounded(narrow: str, way: str) -> None:
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    x[:4] = [65519.0, 1 + 2.0**-11, 6.1e-5, -0.0]
    if way != "maximum":
        x[4:8] = [65520.0, np.inf, 3.0e-8, -6.0e-8]
    y = torch.zeros(N)
    halves_kernel[(1,)](torch.from_numpy(x), y, 2, way, getattr(tl, narrow), N)
    wanted = _halves(x, way, NARROW[narrow], 2)
    assert np.array_equal(y.numpy().view(np.int32), wanted.view(np.int32))


@triton.jit
def pairs_kernel(x_ptr, y_ptr, out_ptr, WHAT: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    if WHAT == "x - x":
        out = x - x
    elif WHAT == "x / x":
        out = x / x
    elif WHAT == "x + 0":
        out = x + 0.0
    elif WHAT == "0 * x":
        out = x * 0.0
    elif WHAT == "-(-x)":
        turned = -x
        out = -turned
    elif WHAT == "0 - x":
        out = 0.0 - x
    elif WHAT == "(x + y) - y":
        out = (x + y) - y
    elif WHAT == "(x * y) / y":
        out = (x * y) / y
    elif WHAT == "max(x, y) == x":
        out = tl.where(tl.maximum(x, y) == x, 1.0, 0.0)
    elif WHAT == "min(x, min(y, x))":
        out = tl.minimum(x, tl.minimum(y, x))
    elif WHAT == "not (x < y)":
        out = tl.where(x < y, 0.0, 1.0)
    elif WHAT == "x == x":
        out = tl.where(x == x, 1.0, 0.0)
    elif WHAT == "int and back":
        out = x.to(tl.int32).to(tl.float32)
    elif WHAT == "double and back":
        out = (x.to(tl.float64) * 1.0000000001).to(tl.float32)
    else:
        out = x
    tl.store(out_ptr + at, out)


PAIRS = {
    "x - x": lambda x, y: x - x,
    "x / x": lambda x, y: x / x,
    "x + 0": lambda x, y: x + np.float32(0),
    "0 * x": lambda x, y: x * np.float32(0),
    "-(-x)": lambda x, y: x,
    "0 - x": lambda x, y: np.float32(0) - x,
    "(x + y) - y": lambda x, y: (x + y) - y,
    "max(x, y) == x": lambda x, y: (np.fmax(x, y) == x).astype(np.float32),
    "min(x, min(y, x))": lambda x, y: np.fmin(x, np.fmin(y, x)),
    "not (x < y)": lambda x, y: (~(x < y)).astype(np.float32),
    "x == x": lambda x, y: (x == x).astype(np.float32),
}


@pytest.mark.parametrize("what", PAIRS)
def test_floats(what: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e38, 1e-30, 16777217.0], np.float32)
    x, y = (part.reshape(-1) for part in np.meshgrid(special, special))
    x, y = (np.resize(part, 128).astype(np.float32) for part in (x, y))
    out = torch.zeros(128)
    pairs_kernel[(1,)](torch.from_numpy(x), torch.from_numpy(y), out, what, 128)
    with np.errstate(all="ignore"):
        wanted = PAIRS[what](x, y)
    found = out.numpy()
    same = np.isnan(found) & np.isnan(wanted) | (found.view(np.int32) == wanted.view(np.int32))
    if what.startswith("min"):  # of zeros of both signs either is right
        same |= (found == 0) & (wanted == 0)
    assert same.all(), [(x[i], y[i], found[i], wanted[i]) for i in np.flatnonzero(~same)[:5]]


@pytest.mark.parametrize("what", ["int and back", "double and back"])
def test_conversions_and_back(what: str) -> None:
    x = np.array([0.0, 0.5, -0.5, 1.75, -2.9, 16777217.0, 2147483520.0, -2147483648.0] * 16, np.float32)
    out = torch.zeros(128)
    pairs_kernel[(1,)](torch.from_numpy(x), torch.from_numpy(x), out, what, 128)
    wanted = x.astype(np.int32).astype(np.float32) if what == "int and back" else None
    if wanted is None:
        wanted = (x.astype(np.float64) * 1.0000000001).astype(np.float32)
    assert np.array_equal(out.numpy(), wanted)


@triton.jit
def quotients_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) / tl.load(y_ptr + at))


def test_quotients_of_large_divisors() -> None:
    """Vulkan says nothing of divisors from 2^126 on; the reciprocals of these are subnormal."""
    large = np.array([2.0**126, 2.0**127, 3.4e38, -(2.0**126), -3.4e38, np.inf, 1.0, 2.0**125], np.float32)
    x, y = (part.reshape(-1).astype(np.float32) for part in np.meshgrid(large, large))
    out = torch.zeros(x.size)
    quotients_kernel[(1,)](torch.from_numpy(x), torch.from_numpy(y), out, x.size)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float64) / y
    found = out.numpy().astype(np.float64)
    finite = np.isfinite(wanted)
    assert (np.isnan(found) == np.isnan(wanted)).all()
    assert np.allclose(found[finite], wanted[finite], rtol=2.5 * 2.0**-23, atol=2.0**-126)


@triton.jit
def sums_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    LOW: tl.constexpr,
    HIGH: tl.constexpr,
    WHAT: tl.constexpr,
    FORM: tl.constexpr,
    N: tl.constexpr,
):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at).to(tl.int64), tl.load(y_ptr + at).to(tl.int64)
    z = x + y if WHAT == "add" else x - y if WHAT == "sub" else x * y
    outside = (z < LOW) | (z > HIGH) if FORM == "or" else ((z >= LOW) & (z <= HIGH)) == 0
    if FORM == "narrow":
        outside = z.to(x_ptr.dtype.element_ty).to(tl.int64) != z
    tl.store(out_ptr + at, outside.to(tl.int32))


@pytest.mark.parametrize("form", ["and", "or", "narrow"])
@pytest.mark.parametrize("what", ["add", "sub", "mul"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_wide_sums_in_the_range_of_a_narrow_type(dtype: Any, what: str, form: str) -> None:
    """NVIDIA's 580.159 asks for the overflow of a narrow sum, and gets a quarter of the answers wrong."""
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.min + 1, -2, -1, 0, 1, 2, info.max - 1, info.max], dtype)
    x, y = (np.resize(part.reshape(-1), 128) for part in np.meshgrid(edge, edge))
    out = torch.zeros(128, dtype=torch.int32)
    sums_kernel[(1,)](to_torch(x), to_torch(y), out, int(info.min), int(info.max), what, form, 128)
    a, b = x.astype(np.int64), y.astype(np.int64)
    z = a + b if what == "add" else a - b if what == "sub" else a * b
    assert np.array_equal(out.numpy(), ((z < info.min) | (z > info.max)).astype(np.int32))


#: What asks a number of 64 bits for its sign → the same of integers.
_SIGNS: dict[str, Any] = {
    "(x >> 63) != 0": lambda x: x < 0,
    "(x >> 63) == -1": lambda x: x < 0,
    "(x & -9223372036854775808) != 0": lambda x: x < 0,
    "(x >> 32) < 0": lambda x: x < 0,
    "x < 0": lambda x: x < 0,
    "x == -1": lambda x: x == -1,
    "x.to(tl.uint64) < 50": lambda x: (x >= 0) & (x < 50),
    "tl.maximum(x, -5) < 3": lambda x: x < 3,
    "tl.abs(x) == x": lambda x: x >= 0,
    "x.to(tl.float32) > 0.0": lambda x: x > 0,
    "x.to(tl.float64) >= 0.0": lambda x: x >= 0,
    "x.to(tl.float16) < 0.0": lambda x: x < 0,
    "tl.maximum(x.to(tl.float32), 0.0) > 0.0": lambda x: x > 0,
    "x.to(tl.float32) * 2 <= -3.0": lambda x: x <= -2,
}


@triton.jit
def signs_kernel(x_ptr, out_ptr, WHAT: tl.constexpr, FOUND: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    narrow = tl.load(x_ptr + at)
    x = narrow.to(tl.int64)
    if FOUND:  # by the driver: this backend does not know that what is added is 0
        x += (narrow.to(tl.float32) < narrow.to(tl.float32)).to(tl.int64)
    if WHAT == "(x >> 63) != 0":
        y = (x >> 63) != 0
    elif WHAT == "(x >> 63) == -1":
        y = (x >> 63) == -1
    elif WHAT == "(x & -9223372036854775808) != 0":
        y = (x & -9223372036854775808) != 0
    elif WHAT == "(x >> 32) < 0":
        y = (x >> 32) < 0
    elif WHAT == "x < 0":
        y = x < 0
    elif WHAT == "x == -1":
        y = x == -1
    elif WHAT == "x.to(tl.uint64) < 50":
        y = x.to(tl.uint64) < 50
    elif WHAT == "tl.maximum(x, -5) < 3":
        y = tl.maximum(x, -5) < 3
    elif WHAT == "tl.abs(x) == x":
        y = tl.abs(x) == x
    elif WHAT == "x.to(tl.float32) > 0.0":
        y = x.to(tl.float32) > 0.0
    elif WHAT == "x.to(tl.float64) >= 0.0":
        y = x.to(tl.float64) >= 0.0
    elif WHAT == "x.to(tl.float16) < 0.0":
        y = x.to(tl.float16) < 0.0
    elif WHAT == "tl.maximum(x.to(tl.float32), 0.0) > 0.0":
        y = tl.maximum(x.to(tl.float32), 0.0) > 0.0
    else:
        y = x.to(tl.float32) * 2 <= -3.0
    tl.store(out_ptr + at, y.to(tl.int32))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("found", [False, True], ids=["known", "found"])
@pytest.mark.parametrize("question", _SIGNS)
def test_the_sign_of_a_widened_number(question: str, found: bool, dtype: Any) -> None:
    """Mesa 22.3.6 compares a number of 32 bits that was widened to 64 in 32 bits, wrongly, wherever it finds that the
    number's sign is asked for: in the highest bit, and in a float."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.resize(np.array([least, least + 1, -100, -50, -5, -2, -1, 0, 1, 2, 49, 50, most], dtype), 64)
    out = torch.full((64,), 7, dtype=torch.int32)
    signs_kernel[(1,)](to_torch(x), out, question, found, 64, num_warps=1)
    wraps = (x == np.iinfo(np.int64).min) & ("abs" in question)
    assert np.array_equal(out.numpy(), np.where(wraps, 1, _SIGNS[question](x)).astype(np.int32))


@triton.jit
def narrow_kernel(x_ptr, y_ptr, out_ptr, count, WHAT: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """What ``WHAT`` names, in the type of x and y, then used as ``FORM`` says."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at, mask=at < count, other=1), tl.load(y_ptr + at, mask=at < count, other=1)
    zero = (x.to(tl.float64) < x.to(tl.float64)).to(x.dtype)  # as the driver finds, and this backend does not
    if WHAT == "-x":
        z = -x
    elif WHAT == "0 - x":
        z = zero - x
    elif WHAT == "-1 * x":
        z = -1 * x
    elif WHAT == "-1 * x, found":
        z = (zero - 1) * x
    elif WHAT == "~x + 1":
        z = ~x + 1
    elif WHAT == "y - (x + y)":
        z = y - (x + y)
    elif WHAT == "x - 2 * x":
        z = x - 2 * x
    elif WHAT == "max(0 - x, y)":
        z = tl.maximum(zero - x, y)
    elif WHAT == "-(x + y)":
        z = -(x + y)
    elif WHAT == "abs":
        z = tl.abs(x)
    elif WHAT == "x + y":
        z = x + y
    elif WHAT == "x - y":
        z = x - y
    elif WHAT == "x * y":
        z = x * y
    elif WHAT == "x << y":
        z = x << (y & 7)
    elif WHAT == "x >> y":
        z = x >> (y & 7)
    elif WHAT == "x // y":
        z = x // tl.where(y == 0, 1, y).to(x.dtype)
    elif WHAT == "x % y":
        z = x % tl.where(y == 0, 1, y).to(x.dtype)
    elif WHAT == "~x":
        z = ~x
    elif WHAT == "max(x, -y)":
        z = tl.maximum(x, -y)
    else:
        z = x
    if FORM == "widened":
        out = z.to(tl.int32)
    elif FORM == "negative":
        out = (z < 0).to(tl.int32)
    elif FORM == "positive":
        out = (z > 0).to(tl.int32)
    elif FORM == "float":
        out = z.to(tl.float32).to(tl.int32)
    elif FORM == "halved":
        out = (z >> 1).to(tl.int32)
    elif FORM == "bounded":
        out = tl.maximum(z, -1).to(tl.int32)
    elif FORM == "in an interval":
        out = ((z >= -5) & (z < 100)).to(tl.int32)
    else:
        out = (z.to(tl.int32) + 3) // 2
    tl.store(out_ptr + at, out, mask=at < count)


def _truncated(f: Any) -> Any:
    """f, a function that rounds down, rounding to zero, as Triton's integer division does."""
    return lambda x, y: f(x, np.where(y == 0, 1, y))


NARROW_RESULTS = {
    **dict.fromkeys(("-x", "0 - x", "-1 * x", "-1 * x, found", "~x + 1", "y - (x + y)", "x - 2 * x"), lambda x, y: -x),
    "max(0 - x, y)": lambda x, y: np.maximum(-x, y),
    "-(x + y)": lambda x, y: -(x + y),
    "abs": lambda x, y: np.abs(x),
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x << y": lambda x, y: x << (y & 7),
    "x >> y": lambda x, y: x >> (y & 7),
    "x // y": _truncated(lambda x, y: np.trunc(x / y).astype(np.int64)),
    "x % y": _truncated(lambda x, y: np.fmod(x, y)),
    "~x": lambda x, y: ~x,
    "max(x, -y)": lambda x, y: np.maximum(x, -y),
}

NARROW_USES = {
    "widened": lambda z: z,
    "negative": lambda z: z < 0,
    "positive": lambda z: z > 0,
    "float": lambda z: z,
    "halved": lambda z: z >> 1,
    "bounded": lambda z: np.maximum(z, -1),
    "in an interval": lambda z: (z >= -5) & (z < 100),
    "in a quotient": lambda z: np.trunc((z + 3) / 2),
}


@pytest.mark.parametrize("what", NARROW_RESULTS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_narrow_results_wrap_before_they_are_used(dtype: Any, what: str) -> None:
    """NVIDIA's 580.159 computes -x of a narrow x in 32 bits."""
    info = np.iinfo(dtype)
    edges = np.arange(-128, 128) if dtype == np.int8 else np.array([-32768, -32767, -129, -2, -1, 0, 1, 3, 181, 32767])
    x, y = (np.resize(part.reshape(-1), max(part.size, 128)).astype(dtype) for part in np.meshgrid(edges, edges))
    if what in ("x // y", "x % y"):  # the one quotient that no number of the type is
        x = np.where((x == info.min) & (y == -1), dtype(1), x)
    a, b = x.astype(np.int64), y.astype(np.int64)
    if what == "max(x, -y)":
        b = -((-b).astype(dtype).astype(np.int64))
    elif what == "max(0 - x, y)":
        a = -((-a).astype(dtype).astype(np.int64))
    z = NARROW_RESULTS[what](a, b).astype(dtype).astype(np.int64)
    wrong = {}
    for use, wanted in NARROW_USES.items():
        out = torch.zeros(x.size, dtype=torch.int32)
        narrow_kernel[(triton.cdiv(x.size, 1024),)](to_torch(x), to_torch(y), out, x.size, what, use, 1024)
        different = np.flatnonzero(out.numpy() != wanted(z).astype(np.int32))
        if different.size:
            at = different[0]
            wrong[use] = (different.size, int(x[at]), int(y[at]), int(out[at]), int(wanted(z)[at]))
    assert not wrong


@triton.jit
def shifts_kernel(x_ptr, out_ptr, count_ptr, WHAT: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, count = tl.load(x_ptr + at), tl.load(count_ptr + at)
    if WHAT == "left and right":
        out = (x << count) >> count
    elif WHAT == "right and left":
        out = (x >> count) << count
    else:
        out = (x << 24) >> 24
    tl.store(out_ptr + at, out)


@pytest.mark.parametrize("what", ["left and right", "right and left", "sign of the low byte"])
def test_shifts_and_back(what: str) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 128).astype(np.int32)
    count = (np.arange(128) % 32).astype(np.int32)
    out = torch.zeros(128, dtype=torch.int32)
    shifts_kernel[(1,)](torch.from_numpy(x), out, torch.from_numpy(count), what, 128)
    if what == "left and right":
        wanted = (x << count) >> count
    elif what == "right and left":
        wanted = (x >> count) << count
    else:
        wanted = x.astype(np.int8).astype(np.int32)
    assert np.array_equal(out.numpy(), wanted)


#: What is done with unsigned numbers x and y of 32 or 64 bits → the same of Python's integers modulo ``m``.
_UNSIGNED: dict[str, Any] = {
    "x % y": lambda x, y, m: x % y,
    "x // y": lambda x, y, m: x // y,
    "y % x": lambda x, y, m: y % max(x, 1),
    "x % 7": lambda x, y, m: x % 7,
    "x // 10": lambda x, y, m: x // 10,
    "(x - 5) % y": lambda x, y, m: (x - 5) % m % y,
    "(x ^ y) % y": lambda x, y, m: (x ^ y) % y,
    "max(x, y) % 9": lambda x, y, m: max(x, y) % 9,
    "umulhi(x, y)": lambda x, y, m: x * y // m,
    "x > y": lambda x, y, m: int(x > y),
    "min(x, y)": lambda x, y, m: min(x, y),
    "max(x, y) - y": lambda x, y, m: max(x, y) - y,
    "x >> 4": lambda x, y, m: x >> 4,
    "x to float": lambda x, y, m: int(float(x) >= m // 2),
}


@triton.jit
def unsigned_kernel(x_ptr, y_ptr, out_ptr, WHAT: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at).to(WIDE), (tl.load(y_ptr + at) & 7).to(WIDE) + 1
    if WHAT == "x % y":
        z = x % y
    elif WHAT == "x // y":
        z = x // y
    elif WHAT == "y % x":
        z = y % tl.maximum(x, 1)
    elif WHAT == "x % 7":
        z = x % 7
    elif WHAT == "x // 10":
        z = x // 10
    elif WHAT == "(x - 5) % y":
        z = (x - 5) % y
    elif WHAT == "(x ^ y) % y":
        z = (x ^ y) % y
    elif WHAT == "max(x, y) % 9":
        z = tl.maximum(x, y) % 9
    elif WHAT == "umulhi(x, y)":
        z = tl.umulhi(x, y)
    elif WHAT == "x > y":
        z = (x > y).to(WIDE)
    elif WHAT == "min(x, y)":
        z = tl.minimum(x, y)
    elif WHAT == "max(x, y) - y":
        z = tl.maximum(x, y) - y
    elif WHAT == "x >> 4":
        z = x >> 4
    else:
        z = (x.to(tl.float64) >= 2.0 ** (x.dtype.primitive_bitwidth - 1)).to(WIDE)
    tl.store(out_ptr + at, z)


@pytest.mark.parametrize("wide", [tl.uint32, tl.uint64], ids=str)
@pytest.mark.parametrize("what", _UNSIGNED)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_unsigned_numbers_that_were_sign_extended(dtype: Any, what: str, wide: tl.dtype) -> None:
    """NVIDIA's 580.159 divides 2^32 - 34, which -34 of 8 bits is extended to, as if it were small: by floats."""
    info, bits = np.iinfo(dtype), wide.primitive_bitwidth
    rng = np.random.default_rng(1)
    edge = np.array([info.min, info.min + 1, -100, -34, -8, -1, 0, 1, 7, 100, info.max - 1, info.max], dtype)
    x = np.concatenate([np.repeat(edge, 8), rng.integers(info.min, info.max, 160, dtype, endpoint=True)])
    y = np.resize(np.arange(8, dtype=dtype), 256)
    out = torch.zeros(256, dtype=getattr(torch, f"uint{bits}"))
    unsigned_kernel[(1,)](to_torch(x), to_torch(y), out, what, wide, 256)
    modulus = 1 << bits
    wanted = [_UNSIGNED[what](int(a) % modulus, int(b) + 1, modulus) for a, b in zip(x, y, strict=True)]
    assert out.numpy().tolist() == wanted


@pytest.mark.parametrize(
    "what", ["x % y", "x // y", "y % x", "x // 10", "(x - 5) % y", "x to float", "max(x, y) - y", "min(x, y)"]
)
def test_unsigned_numbers_on_a_driver_that_takes_them_for_small(faulty: None, what: str) -> None:
    for wide in (tl.uint32, tl.uint64):
        test_unsigned_numbers_that_were_sign_extended(np.int8, what, wide)
