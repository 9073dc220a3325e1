"""Atomic updates where a thread is alone, which are plain loads and stores, and where it is not."""

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate
from triton.backends.spirv.cpu.objects import make
from triton.backends.spirv.runtime.native_module import native

from tests.unit.cpu.kernels import block_of, compiled, run

RANDOM = np.random.default_rng(21)


@triton.jit
def scatter(index, x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(out + tl.load(index + at, mask=mask, other=0), tl.load(x + at, mask=mask, other=5), mask=mask)


@triton.jit
def tickets(index, counters, out, n, BLOCK: tl.constexpr):
    """What each lane finds is used."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + at, mask=at < n, other=0)
    tl.store(out + at, tl.atomic_add(counters + place, 1, mask=at < n), mask=at < n)


@triton.jit
def updates(index, x, low, high, last, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    place, value = tl.load(index + at, mask=mask, other=0), tl.load(x + at, mask=mask, other=0)
    tl.atomic_min(low + place, value, mask=mask)
    tl.atomic_max(high + place, value, mask=mask)
    tl.atomic_xchg(last + place, value, mask=mask)


@triton.jit
def locked(lock, total, rounds):
    for _ in range(rounds):
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass
        tl.store(total, tl.load(total) + 1)
        tl.atomic_xchg(lock, 0)


#: Few programs run on one thread, many on two.
@pytest.mark.parametrize("n", [1, 63, 1021, 200_003])
@pytest.mark.parametrize("bins", [1, 7, 1000])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64", "float16"])
def test_sums_of_any_places(profile: str, n: int, bins: int, dtype: str) -> None:
    n = min(n, 2000) if dtype == "float16" else n  # sums of so many are exact
    index = RANDOM.integers(0, bins, n).astype(np.int32)
    x = RANDOM.integers(-4, 5, n).astype(dtype)
    out = np.zeros(bins + 9, dtype)
    run(profile, scatter, (-(-n // 256),), index, x, out, n, BLOCK=256)
    expected = np.zeros(bins + 9)
    np.add.at(expected, index, x.astype(np.float64))
    assert np.array_equal(out.astype(np.float64), expected)


@pytest.mark.parametrize("n", [37, 200_003])
@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("places", ["int32", "int64", "int16"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
def test_places_before_and_behind_a_pointer(profile: str, n: int, ranged: bool, places: str, dtype: str) -> None:
    index, x = RANDOM.integers(-70, 80, n).astype(places), RANDOM.integers(-4, 5, n).astype(dtype)
    everything = np.full(170, 7, dtype)
    run(profile, scatter, (-(-n // 64),), index, x, everything[80:], n, BLOCK=64, ranged=ranged)
    expected = np.full(170, 7.0)
    np.add.at(expected, 80 + index.astype(np.int64), x.astype(np.float64))
    assert np.array_equal(everything.astype(np.float64), expected)


@pytest.mark.parametrize("n", [5, 1021, 200_003])
@pytest.mark.parametrize("ranged", [False, True])
@pytest.mark.parametrize("places", ["int32", "int64"])
def test_each_lane_finds_what_was_there(profile: str, n: int, ranged: bool, places: str) -> None:
    index = RANDOM.integers(0, 50, n).astype(places)
    counters, out = np.zeros(50, np.int32), np.full(n + 5, -1, np.int32)
    run(profile, tickets, (-(-n // 128),), index, counters, out, n, BLOCK=128, ranged=ranged)
    assert np.array_equal(counters, np.bincount(index, minlength=50)) and (out[n:] == -1).all()
    for place in range(50):
        assert np.array_equal(np.sort(out[:n][index == place]), np.arange(counters[place]))


@pytest.mark.parametrize("n", [5, 1021, 100_003])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_other_updates(profile: str, n: int, dtype: str) -> None:
    index, x = RANDOM.integers(0, 50, n).astype(np.int32), RANDOM.integers(-1000, 1000, n).astype(dtype)
    low, high, last = np.full(60, 2000, dtype), np.full(60, -2000, dtype), np.full(60, 3000, dtype)
    run(profile, updates, (-(-n // 128),), index, x, low, high, last, n, BLOCK=128)
    for place in range(50):
        mine = x[index == place]
        assert low[place] == mine.min(initial=2000) and high[place] == mine.max(initial=-2000)
        assert last[place] in (mine if mine.size else [3000])
    assert (low[50:] == 2000).all() and (high[50:] == -2000).all() and (last[50:] == 3000).all()


@pytest.mark.parametrize("programs", [1, 3, 2000])
def test_a_lock(profile: str, programs: int) -> None:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(profile, locked, (programs,), lock, total, 20)
    assert total[0] == 20 * programs and lock[0] == 0


def test_helpers_of_an_earlier_launch_come_too_late(profile: str) -> None:
    """A launch that is alone follows one that woke helpers: none of them may take a program of it."""
    n, few = 100_000, 256 * 8
    index, x = np.zeros(n, np.int32), np.ones(n, np.int32)
    out, again = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernel = compiled(profile, scatter, [index, x, out, n], {"BLOCK": 256})
    short = compiled(profile, scatter, [index, x, out, n], {"BLOCK": 256}, num_warps=2)
    module = native()
    device = module.CpuDevice(threads=2, timeout_ns=2**64 - 1)

    def loaded(found: Any) -> Any:
        code = make(found.asm["spv"], PROFILES[profile].subgroup_size, PROFILES[profile].processor)
        return module.CpuKernel(module.CpuObject(code.code), found.metadata.name, code.scratch)

    long, rounds = loaded(kernel), 40
    for _ in range(rounds):
        device.launch(long, block_of([index, x, out, n]), [-(-n // 256), 1, 1], name="long")
        # Nothing is known of its time in its first launch: it takes one program after the other.
        device.launch(loaded(short), block_of([index, x, again, few]), [8, 1, 1], name="short")
    assert out[0] == rounds * n and again[0] == rounds * few


@triton.jit
def binned(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(tl.load(x + at), BINS, mask=at < n))


@pytest.mark.parametrize(("bins", "block"), [(16, 32), (256, 1024), (2048, 512)])
def test_histograms(profile: str, bins: int, block: int) -> None:
    n = 3 * block - 5
    x = RANDOM.integers(0, bins + 3, 3 * block).astype(np.int32)
    x[block : 2 * block] = 5
    x[::7], x[1::9] = -1, 2**31 - 1
    out = np.full(3 * bins + 16, 77, np.int32)
    run(profile, binned, (3,), x, out, n, BINS=bins, BLOCK=block)
    for program in range(3):
        counted = x[program * block : min((program + 1) * block, n)].astype(np.int64)
        counted = counted[(counted >= 0) & (counted < bins)]
        assert np.array_equal(out[program * bins :][:bins], np.bincount(counted, minlength=bins))
    assert (out[3 * bins :] == 77).all()


def test_lanes_have_numbers_of_32_bits_and_one_base(profile: str) -> None:
    spirv = [
        compiled(profile, kernel, arguments, constants).asm["spv"]
        for kernel, arguments, constants in (
            (scatter, [np.zeros(4, np.int32), *[np.zeros(4, np.float32)] * 2, 4], {"BLOCK": 64}),
            (binned, [np.zeros(4, np.int32)] * 2 + [4], {"BINS": 16, "BLOCK": 32}),
        )
    ]
    host, lanes = host_of(PROFILES[profile].processor), PROFILES[profile].subgroup_size
    for text in [translate(one, host, lanes).text for one in spirv]:
        helpers = re.findall(r"define internal void @atomic_\w+\((.*?)\)", text)
        assert helpers and all(one.startswith(f"i64 %base, <{lanes} x i32> %places, ") for one in helpers)


def test_both_ways_are_in_the_code(profile: str) -> None:
    arrays = [np.zeros(4, np.int32), np.zeros(4, np.float32), np.zeros(4, np.float32)]
    spirv = compiled(profile, scatter, [*arrays, 4], {"BLOCK": 64}).asm["spv"]
    text = translate(spirv, host_of(PROFILES[profile].processor), PROFILES[profile].subgroup_size).text
    helper = re.search(r"define internal void @atomic_fadd_float.*?^}", text, re.DOTALL | re.MULTILINE)
    assert helper is not None
    assert helper[0].count("atomicrmw fadd") == 1 and helper[0].count("= fadd float") > 1


@triton.jit
def counted_in_place(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(x + tl.load(x + at, mask=at < n, other=0), 1, mask=at < n)


@pytest.mark.parametrize("n", [37, 1000, 4095])
def test_places_are_loaded_before_any_of_them_is_updated(profile: str, n: int) -> None:
    before = np.random.default_rng(n).integers(0, n, n + 9).astype(np.int32)
    x = before.copy()
    run(profile, counted_in_place, (1,), x, n, BLOCK=4096)
    np.testing.assert_array_equal(x, before + np.bincount(before[:n], minlength=n + 9))
