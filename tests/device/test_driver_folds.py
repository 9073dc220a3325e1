"""Pairs of operations that a driver's compiler may fold into one although both count: each against NumPy, on values
where the folded pair gives something else."""

import re
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
from tests.device.math.harness import apply, forget

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
        kernels = (back_kernel, sums_kernel)
        for kernel in kernels:
            kernel.device_caches.clear()
        forget()
        yield
    for kernel in kernels:
        kernel.device_caches.clear()
    forget()


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


@pytest.mark.parametrize("what", ["-a", "ZERO - a", "(ZERO - 1) * a", "~a + 1", "a - b", "a * b"])
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


#: What is computed of floats → the same in NumPy.
PAIRS = {
    "a - a": lambda x, y: x - x,
    "a + 0.0": lambda x, y: x + np.float32(0),
    "a * 0.0": lambda x, y: x * np.float32(0),
    "-(-a)": lambda x, y: x,
    "0.0 - a": lambda x, y: np.float32(0) - x,
    "(a + b) - b": lambda x, y: (x + y) - y,
    "tl.where(tl.maximum(a, b) == a, 1.0, 0.0)": lambda x, y: (np.fmax(x, y) == x).astype(np.float32),
    "tl.minimum(a, tl.minimum(b, a))": lambda x, y: np.fmin(x, np.fmin(y, x)),
    "tl.where(a < b, 0.0, 1.0)": lambda x, y: (~(x < y)).astype(np.float32),
    "tl.where(a == a, 1.0, 0.0)": lambda x, y: (x == x).astype(np.float32),
}


@pytest.mark.parametrize("what", PAIRS)
def test_floats(what: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e38, 1e-30, 16777217.0], np.float32)
    x, y = (part.reshape(-1) for part in np.meshgrid(special, special))
    found = apply(what, x, y)
    with np.errstate(all="ignore"):
        wanted = PAIRS[what](x, y)
    same = np.isnan(found) & np.isnan(wanted) | (found.view(np.int32) == wanted.view(np.int32))
    if "minimum" in what:  # of zeros of both signs either is right
        same |= (found == 0) & (wanted == 0)
    assert same.all(), [(x[i], y[i], found[i], wanted[i]) for i in np.flatnonzero(~same)[:5]]


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("a.to(tl.int32).to(tl.float32)", lambda x: x.astype(np.int32).astype(np.float32)),
        (
            "(a.to(tl.float64) * 1.0000000001).to(tl.float32)",
            lambda x: (x.astype(np.float64) * 1.0000000001).astype(np.float32),
        ),
    ],
    ids=["int", "double"],
)
def test_conversions_and_back(what: str, wanted: Any) -> None:
    x = np.array([0.0, 0.5, -0.5, 1.75, -2.9, 16777217.0, 2147483520.0, -2147483648.0] * 16, np.float32)
    assert np.array_equal(apply(what, x), wanted(x))


def test_quotients_of_large_divisors() -> None:
    """Vulkan says nothing of divisors from 2^126 on; the reciprocals of these are subnormal."""
    large = np.array([2.0**126, 2.0**127, 3.4e38, -(2.0**126), -3.4e38, np.inf, 1.0, 2.0**125], np.float32)
    x, y = (part.reshape(-1).astype(np.float32) for part in np.meshgrid(large, large))
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float64) / y
    found = apply("a / b", x, y).astype(np.float64)
    finite = np.isfinite(wanted)
    assert (np.isnan(found) == np.isnan(wanted)).all()
    assert np.allclose(found[finite], wanted[finite], rtol=2.5 * 2.0**-23, atol=2.0**-126)


#: What asks X, a number of 64 bits, for its sign → the same of integers.
_SIGNS: dict[str, Any] = {
    "(X >> 63) != 0": lambda x: x < 0,
    "(X >> 63) == -1": lambda x: x < 0,
    "(X & -9223372036854775808) != 0": lambda x: x < 0,
    "(X >> 32) < 0": lambda x: x < 0,
    "X < 0": lambda x: x < 0,
    "X == -1": lambda x: x == -1,
    "X.to(tl.uint64) < 50": lambda x: (x >= 0) & (x < 50),
    "tl.maximum(X, -5) < 3": lambda x: x < 3,
    "tl.abs(X) == X": lambda x: x >= 0,
    "X.to(tl.float32) > 0.0": lambda x: x > 0,
    "X.to(tl.float64) >= 0.0": lambda x: x >= 0,
    "X.to(tl.float16) < 0.0": lambda x: x < 0,
    "tl.maximum(X.to(tl.float32), 0.0) > 0.0": lambda x: x > 0,
    "X.to(tl.float32) * 2 <= -3.0": lambda x: x <= -2,
}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("found", [False, True], ids=["known", "found"])
@pytest.mark.parametrize("question", _SIGNS)
def test_the_sign_of_a_widened_number(question: str, found: bool, dtype: Any) -> None:
    """Mesa 22.3.6 compares a number of 32 bits that was widened to 64 in 32 bits, wrongly, wherever it finds that the
    number's sign is asked for: in the highest bit, and in a float."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.resize(np.array([least, least + 1, -100, -50, -5, -2, -1, 0, 1, 2, 49, 50, most], dtype), 64)
    wide = "a.to(tl.int64)"
    if found:  # by the driver: this backend does not know that what is added is 0
        wide = f"({wide} + (a.to(tl.float32) < a.to(tl.float32)).to(tl.int64))"
    out = apply(f"({question.replace('X', wide)}).to(tl.int32)", x, dtype=np.int32, block=64)
    wraps = (x == np.iinfo(np.int64).min) & ("abs" in question)
    assert np.array_equal(out, np.where(wraps, 1, _SIGNS[question](x)).astype(np.int32))


def _truncated(f: Any) -> Any:
    """f, a function that rounds down, rounding to zero, as Triton's integer division does."""
    return lambda x, y: f(x, np.where(y == 0, 1, y))


#: What is computed in the type of a and b → the same of integers. ZERO is one that the driver finds, and this backend
#: does not.
NARROW_RESULTS = {
    **dict.fromkeys(
        ("-a", "ZERO - a", "-1 * a", "(ZERO - 1) * a", "~a + 1", "b - (a + b)", "a - 2 * a"), lambda x, y: -x
    ),
    "tl.maximum(ZERO - a, b)": lambda x, y: np.maximum(-x, y),
    "-(a + b)": lambda x, y: -(x + y),
    "tl.abs(a)": lambda x, y: np.abs(x),
    "a + b": lambda x, y: x + y,
    "a - b": lambda x, y: x - y,
    "a * b": lambda x, y: x * y,
    "a << (b & 7)": lambda x, y: x << (y & 7),
    "a >> (b & 7)": lambda x, y: x >> (y & 7),
    "a // tl.where(b == 0, 1, b).to(a.dtype)": _truncated(lambda x, y: np.trunc(x / y).astype(np.int64)),
    "a % tl.where(b == 0, 1, b).to(a.dtype)": _truncated(lambda x, y: np.fmod(x, y)),
    "~a": lambda x, y: ~x,
    "tl.maximum(a, -b)": lambda x, y: np.maximum(x, -y),
}
_ZERO = "(a.to(tl.float64) < a.to(tl.float64)).to(a.dtype)"
#: What is made of such a result Z.
NARROW_USES = {
    "Z.to(tl.int32)": lambda z: z,
    "(Z < 0).to(tl.int32)": lambda z: z < 0,
    "(Z > 0).to(tl.int32)": lambda z: z > 0,
    "Z.to(tl.float32).to(tl.int32)": lambda z: z,
    "(Z >> 1).to(tl.int32)": lambda z: z >> 1,
    "tl.maximum(Z, -1).to(tl.int32)": lambda z: np.maximum(z, -1),
    "((Z >= -5) & (Z < 100)).to(tl.int32)": lambda z: (z >= -5) & (z < 100),
    "(Z.to(tl.int32) + 3) // 2": lambda z: np.trunc((z + 3) / 2),
}


@pytest.mark.parametrize("what", NARROW_RESULTS)
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_narrow_results_wrap_before_they_are_used(dtype: Any, what: str) -> None:
    """NVIDIA's 580.159 computes -x of a narrow x in 32 bits."""
    info = np.iinfo(dtype)
    edges = np.arange(-128, 128) if dtype == np.int8 else np.array([-32768, -32767, -129, -2, -1, 0, 1, 3, 181, 32767])
    x, y = (np.resize(part.reshape(-1), max(part.size, 128)).astype(dtype) for part in np.meshgrid(edges, edges))
    if "b == 0" in what:  # the one quotient that no number of the type is
        x = np.where((x == info.min) & (y == -1), dtype(1), x)
    a, b = x.astype(np.int64), y.astype(np.int64)
    if what == "tl.maximum(a, -b)":
        b = -((-b).astype(dtype).astype(np.int64))
    elif what == "tl.maximum(ZERO - a, b)":
        a = -((-a).astype(dtype).astype(np.int64))
    z = NARROW_RESULTS[what](a, b).astype(dtype).astype(np.int64)
    text, wrong = f"({what.replace('ZERO', _ZERO)})", {}
    for use, wanted in NARROW_USES.items():
        out = apply(use.replace("Z", text), x, y, dtype=np.int32, block=1024)
        different = np.flatnonzero(out != wanted(z).astype(np.int32))
        if different.size:
            at = different[0]
            wrong[use] = (different.size, int(x[at]), int(y[at]), int(out[at]), int(wanted(z)[at]))
    assert not wrong


@pytest.mark.parametrize(
    ("what", "wanted"),
    [
        ("(a << b) >> b", lambda x, count: (x << count) >> count),
        ("(a >> b) << b", lambda x, count: (x >> count) << count),
        ("(a << 24) >> 24", lambda x, count: x.astype(np.int8).astype(np.int32)),
    ],
)
def test_shifts_and_back(what: str, wanted: Any) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 128).astype(np.int32)
    count = (np.arange(128) % 32).astype(np.int32)
    assert np.array_equal(apply(what, x, count), wanted(x, count))


#: What is done with unsigned numbers X and Y of the type W → the same of Python's integers modulo ``m``.
_UNSIGNED: dict[str, Any] = {
    "X % Y": lambda x, y, m: x % y,
    "X // Y": lambda x, y, m: x // y,
    "Y % tl.maximum(X, 1)": lambda x, y, m: y % max(x, 1),
    "X % 7": lambda x, y, m: x % 7,
    "X // 10": lambda x, y, m: x // 10,
    "(X - 5) % Y": lambda x, y, m: (x - 5) % m % y,
    "(X ^ Y) % Y": lambda x, y, m: (x ^ y) % y,
    "tl.maximum(X, Y) % 9": lambda x, y, m: max(x, y) % 9,
    "tl.umulhi(X, Y)": lambda x, y, m: x * y // m,
    "(X > Y).to(W)": lambda x, y, m: int(x > y),
    "tl.minimum(X, Y)": lambda x, y, m: min(x, y),
    "tl.maximum(X, Y) - Y": lambda x, y, m: max(x, y) - y,
    "X >> 4": lambda x, y, m: x >> 4,
    "(X.to(tl.float64) >= HALF).to(W)": lambda x, y, m: int(float(x) >= m // 2),
}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("what", _UNSIGNED)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_unsigned_numbers_that_were_sign_extended(dtype: Any, what: str, bits: int) -> None:
    """NVIDIA's 580.159 divides 2^32 - 34, which -34 of 8 bits is extended to, as if it were small: by floats."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    edge = np.array([info.min, info.min + 1, -100, -34, -8, -1, 0, 1, 7, 100, info.max - 1, info.max], dtype)
    x = np.concatenate([np.repeat(edge, 8), rng.integers(info.min, info.max, 160, dtype, endpoint=True)])
    y = np.resize(np.arange(8, dtype=dtype), 256)
    wide, modulus = f"tl.uint{bits}", 1 << bits
    names = {"X": f"a.to({wide})", "Y": f"((b & 7).to({wide}) + 1)", "W": wide, "HALF": f"{float(modulus // 2)}"}
    expression = re.sub(r"\b(X|Y|W|HALF)\b", lambda name: names[name[0]], what)
    out = apply(expression, x, y, dtype=f"uint{bits}", block=256)
    wanted = [_UNSIGNED[what](int(a) % modulus, int(b) + 1, modulus) for a, b in zip(x, y, strict=True)]
    assert out.tolist() == wanted


@pytest.mark.parametrize(
    "what",
    [
        *("X % Y", "X // Y", "Y % tl.maximum(X, 1)", "X // 10", "(X - 5) % Y", "tl.maximum(X, Y) - Y"),
        *("(X.to(tl.float64) >= HALF).to(W)", "tl.minimum(X, Y)"),
    ],
)
def test_unsigned_numbers_on_a_driver_that_takes_them_for_small(faulty: None, what: str) -> None:
    for bits in (32, 64):
        test_unsigned_numbers_that_were_sign_extended(np.int8, what, bits)
