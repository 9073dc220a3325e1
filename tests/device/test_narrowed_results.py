"""Results of which only some bits are wanted: a driver may compute the rest of the kernel in fewer bits, where the
wanted ones do not depend on the others. Each form against NumPy, on numbers whose low halves compare otherwise than
they do."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.driver_quirks import DRIVERS, OTHER

from tests.device.helpers import device_capabilities, to_torch

N = 512


class Form(NamedTuple):
    """What is computed of x and y: by Triton, and by NumPy."""

    ours: Any
    wanted: Callable[[Any, Any], Any]


@triton.jit
def maximum_less(x, y):
    return tl.maximum(x, y) - y


@triton.jit
def less_minimum(x, y):
    return x - tl.minimum(x, y)


@triton.jit
def distance(x, y):
    return tl.maximum(x, y) - tl.minimum(x, y)


@triton.jit
def less_or_zero(x, y):
    return tl.where(x > y, x - y, 0)


@triton.jit
def zero_or_less(x, y):
    return tl.where(y >= x, 0, x - y)


@triton.jit
def chosen_less(x, y):
    return tl.where(x > y, x, y) - y


@triton.jit
def sum_or_ones(x, y):
    return tl.where(x + y < x, ~(x - x), x + y)


@triton.jit
def minimum_and(x, y):
    return tl.minimum(x, ~y) + y


@triton.jit
def greater(x, y):
    return tl.maximum(x, y)


@triton.jit
def lesser(x, y):
    return tl.minimum(x, y)


@triton.jit
def clamped(x, y):
    return tl.minimum(tl.maximum(x, y), y + 100)


@triton.jit
def magnitude(x, y):
    return tl.where(x > y, x - y, y - x)


@triton.jit
def quotient(x, y):
    return x // ((y & 7) + 1)


@triton.jit
def rest(x, y):
    return x % ((y & 7) + 1)


@triton.jit
def shifted(x, y):
    return x >> (y & 15)


@triton.jit
def halved_difference(x, y):
    return (x - y) >> 1


@triton.jit
def mean(x, y):
    return (x & y) + ((x ^ y) >> 1)


@triton.jit
def greater_in_steps(x, y):
    return tl.maximum(x - y, y) - y


FORMS = {
    "max(x, y) - y": Form(maximum_less, lambda x, y: np.maximum(x, y) - y),
    "x - min(x, y)": Form(less_minimum, lambda x, y: x - np.minimum(x, y)),
    "max(x, y) - min(x, y)": Form(distance, lambda x, y: np.maximum(x, y) - np.minimum(x, y)),
    "x - y or 0": Form(less_or_zero, lambda x, y: np.where(x > y, x - y, x - x)),
    "0 or x - y": Form(zero_or_less, lambda x, y: np.where(x > y, x - y, x - x)),
    "where(x > y, x, y) - y": Form(chosen_less, lambda x, y: np.where(x > y, x, y) - y),
    "x + y or -1": Form(sum_or_ones, lambda x, y: np.where(x + y < x, ~(x - x), x + y)),
    "min(x, ~y) + y": Form(minimum_and, lambda x, y: np.minimum(x, ~y) + y),
    "max(x, y)": Form(greater, np.maximum),
    "min(x, y)": Form(lesser, np.minimum),
    "min(max(x, y), y + 100)": Form(clamped, lambda x, y: np.minimum(np.maximum(x, y), y + x.dtype.type(100))),
    "|x - y|": Form(magnitude, lambda x, y: np.where(x > y, x - y, y - x)),
    "x // y": Form(quotient, lambda x, y: _quotient(x, (y & x.dtype.type(7)) + x.dtype.type(1))),
    "x % y": Form(rest, lambda x, y: np.fmod(x, (y & x.dtype.type(7)) + x.dtype.type(1))),
    "x >> y": Form(shifted, lambda x, y: x >> (y & x.dtype.type(15))),
    "(x - y) >> 1": Form(halved_difference, lambda x, y: (x - y) >> x.dtype.type(1)),
    "(x & y) + ((x ^ y) >> 1)": Form(mean, lambda x, y: (x & y) + ((x ^ y) >> x.dtype.type(1))),
    "max(x - y, y) - y": Form(greater_in_steps, lambda x, y: np.maximum(x - y, y) - y),
}


def _quotient(x: Any, y: Any) -> Any:
    return (x - np.fmod(x, y)) // y


@triton.jit
def narrowed_kernel(x_ptr, y_ptr, w_ptr, out_ptr, low_ptr, FORM: tl.constexpr, USE: tl.constexpr, OF: tl.constexpr,
                    HALF: tl.constexpr, N: tl.constexpr):  # fmt: skip
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    if OF == "chosen":
        y = tl.where((x ^ y) % 4 == 1, tl.load(w_ptr + at).to(y.dtype), y)
    z = FORM(x, y)
    if USE == "low half":
        out = z.to(HALF)
    elif USE == "low bits":
        out = z & 7
    else:
        out = 1000 // ((z.to(HALF) & 7) + 1)
    tl.store(out_ptr + at, out)
    tl.store(low_ptr + at, (y & 7) + 1)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "low half": lambda z, half: z.astype(half),
    "low bits": lambda z, half: z & z.dtype.type(7),
    "divisor": lambda z, half: 1000 // ((z.astype(half) & half(7)) + half(1)),
}

HALVES = {np.uint64: np.uint32, np.int64: np.int32, np.uint32: np.uint16}


def _numbers(dtype: Any, seed: int) -> Any:
    """Numbers whose halves are drawn from few."""
    bits = np.iinfo(dtype).bits // 2
    rng = np.random.default_rng(seed)
    high = rng.choice([0, 0, 1, 2, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1], N)
    low = rng.choice([0, 1, 5, 77, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1], N)
    low = np.where(rng.random(N) < 0.3, rng.integers(0, 1 << bits, N), low)
    numbers = high.astype(np.uint64) << np.uint64(bits) | low.astype(np.uint64)
    return numbers.astype(np.dtype(dtype).str.replace("i", "u")).view(dtype)


#: The numbers' type, and where y is from.
CASES = [(np.uint64, "loaded"), (np.uint64, "chosen"), (np.int64, "loaded"), (np.uint32, "loaded")]


@pytest.fixture(autouse=True)
def narrowing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The device's driver is taken for one that narrows what unsigned comparisons of 64 bits choose."""
    driver = device_capabilities().driver
    traits = DRIVERS.get(driver, OTHER)
    monkeypatch.setitem(DRIVERS, driver, replace(traits, faults=replace(traits.faults, narrows_saturation=True)))
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        narrowed_kernel.device_caches.clear()
        yield
    narrowed_kernel.device_caches.clear()


@pytest.mark.parametrize(("dtype", "of"), CASES, ids=lambda part: part if isinstance(part, str) else part.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_results_of_which_some_bits_are_wanted(form: str, dtype: Any, of: str) -> None:
    half = HALVES[dtype]
    x, y = _numbers(dtype, 1), _numbers(dtype, 2)
    w = np.random.default_rng(3).integers(0, 1 << 16, N).astype(np.uint16)
    seen = np.where(np.fmod(x ^ y, dtype(4)) == 1, w.astype(dtype), y) if of == "chosen" else y
    wrong = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        z = FORMS[form].wanted(x, seen)
    for use, wanted in USES.items():
        expected = wanted(z, half)
        out, low = to_torch(np.zeros_like(expected)), to_torch(np.zeros_like(x))
        narrowed_kernel[(1,)](to_torch(x), to_torch(y), to_torch(w), out, low, FORMS[form].ours, use, of,
                              getattr(tl, half.__name__), N)  # fmt: skip
        found = out.numpy().view(expected.dtype)
        different = np.flatnonzero(found != expected)
        if different.size:
            at = different[0]
            wrong[use] = (different.size, hex(x[at]), hex(seen[at]), int(found[at]), int(expected[at]))
    assert not wrong
