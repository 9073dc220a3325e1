"""Elements at places that loaded numbers say."""

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(71)


@triton.jit
def gathers(x, index, out, first, n, other, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.store(out + at, tl.load(x + first + place, mask=at < n, other=other), mask=at < n)


@triton.jit
def chosen(x, index, out, first, n, other, BLOCK: tl.constexpr):
    """A mask that no lane's place is known from, and lanes that keep what they get without an element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=-(2**30))
    found = tl.load(x + first + place, mask=(place >= 0) & (at < n), other=other)
    tl.store(out + at, found, mask=at < n)


@triton.jit
def pages(x, index, out, first, n, other, BLOCK: tl.constexpr):
    """Lanes of a page are neighbours."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at // 16, mask=at < n, other=0) * 16 + at % 16
    tl.store(out + at, tl.load(x + first + place, mask=at < n, other=other), mask=at < n)


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("n", [1, 16, 63, 1021])
@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("places", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "int8"])
def test_elements_of_any_places(profile: str, n: int, places: str, ranged: bool, dtype: str) -> None:
    """Before and behind the base, with places outside of all memory where a lane is not active."""
    x = RANDOM.integers(-100, 100, 501).astype(dtype)
    index = RANDOM.integers(-250, 250, n + 300).astype(places)
    index[n:] = 2**31 - 1
    out = np.full(n + 40, 77, dtype)
    run(profile, gathers, (-(-n // 128) + 1,), x, index, out, 250, n, 3, BLOCK=128, ranged=ranged)
    assert np.array_equal(out[:n], x[250 + index[:n]]) and (out[n:] == 77).all()
    index[: n // 2] = np.where(RANDOM.random(n // 2) < 0.5, -(2**30), index[: n // 2])
    run(profile, chosen, (-(-n // 128),), x, index, out, 250, n, 3, BLOCK=128, ranged=ranged)
    expected = np.where(index[:n] >= 0, x[250 + np.maximum(index[:n], 0)], 3)
    assert np.array_equal(out[:n], expected) and (out[n:] == 77).all()


@pytest.mark.parametrize("profile", PROFILES_HERE)
def test_pages(profile: str) -> None:
    x, index, out = (
        RANDOM.standard_normal(2000).astype(np.float32),
        np.arange(70, dtype=np.int32),
        np.zeros(1000, np.float32),
    )
    RANDOM.shuffle(index)
    run(profile, pages, (8,), x, index, out, 5, 999, 0, BLOCK=128)
    assert np.array_equal(out[:999], x[5 + index[np.arange(999) // 16] * 16 + np.arange(999) % 16]) and out[999] == 0


@triton.jit
def seconds(x, out, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """Each element of ``out`` is one of every ``STEP``."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + STEP * at))


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64"])
def test_every_second_element_has_no_memory_around(profile: str, step: int, dtype: str) -> None:
    """The first one begins a page, and the last one ends one: their neighbours are none of the process."""
    count, size = 2048, np.dtype(dtype).itemsize
    extent = ((count - 1) * step + 1) * size
    whole = -(-extent // mmap.PAGESIZE) * mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(-1, whole + 2 * mmap.PAGESIZE) as pages_:
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages_))
        guards = (start, start + mmap.PAGESIZE + whole)
        for place in (start + mmap.PAGESIZE, start + mmap.PAGESIZE + whole - extent):
            x = np.ctypeslib.as_array((ctypes.c_char * extent).from_address(place)).view(dtype)
            x[:] = RANDOM.integers(-100, 100, len(x))
            out = np.full(count + 16, 77, dtype)
            for guard in guards:
                assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
            try:
                run(profile, seconds, (count // 256,), x, out, BLOCK=256, STEP=step)
            finally:
                for guard in guards:
                    libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(mmap.PAGESIZE), 3)
            assert np.array_equal(out[:count], x[::step]) and (out[count:] == 77).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_second_element_is_loaded_with_its_neighbours(dtype: str) -> None:
    profile = PROFILES[PROFILES_HERE[-1]]
    for step in (2, 3):
        made = compiled(PROFILES_HERE[-1], seconds, [np.zeros(4, dtype)] * 2, {"BLOCK": 64, "STEP": step})
        text = translate(made.asm["spv"], host_of(profile.processor), profile.subgroup_size).text
        assert ("@gather_" in text) == (step == 3)


@pytest.mark.parametrize("kernel", [gathers, chosen, pages], ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("ranged", [False, True])
def test_neighbours_are_not_looked_for_where_places_are_loaded(kernel: Any, ranged: bool, dtype: str) -> None:
    profile = PROFILES[PROFILES_HERE[-1]]
    arguments = [np.zeros(4, dtype), np.zeros(4, np.int32), np.zeros(4, dtype), 1, 1, 1]
    spirv = compiled(PROFILES_HERE[-1], kernel, arguments, {"BLOCK": 64}, ranged=ranged).asm["spv"]
    text = translate(spirv, host_of(profile.processor), profile.subgroup_size).text
    wide = host_of(profile.processor).vector_bits == 512
    assert ("define internal" in text and "@gather_" in text) == (kernel is pages or dtype == "float16" or not wide)
