"""Atomic sums of neighbouring elements, made together, and counters that only one thread has."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.decoded_module import KernelModule
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate
from triton.backends.spirv.cpu.translation import Translation

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

RANDOM = np.random.default_rng(13)


@triton.jit
def add_all(x, out, first, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(out + first + at, tl.load(x + at, mask=at < n, other=5), mask=at < n)


@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("n", [1, 16, 31, 64])
def test_neighbours_stay_what_they_are(profile: str, dtype: str, first: int, n: int) -> None:
    x = RANDOM.integers(-9, 9, 64).astype(dtype)
    before = RANDOM.integers(-9, 9, 80).astype(dtype)
    before[::7] = -0.0
    out = before.copy()
    run(profile, add_all, (3,), x, out, first, n, BLOCK=64)
    expected = before.copy()
    for _ in range(3):
        expected[first : first + n] += x[:n]
    assert np.array_equal(out, expected)
    beside = np.r_[0:first, first + n : 80]
    assert np.array_equal(np.signbit(out[beside]), np.signbit(before[beside]))


@pytest.mark.parametrize("first", [0, 3])
def test_bits_of_neighbours_are_kept(profile: str, first: int) -> None:
    """What lies beside may be integers, whose bits are those of a signaling NaN."""
    x, bits = np.ones(64, np.float32), np.full(80, 0x7F800001, np.uint32)
    bits[first : first + 37] = 0
    run(profile, add_all, (1,), x, bits.view(np.float32), first, 37, BLOCK=64)
    assert (bits.view(np.float32)[first : first + 37] == 1).all()
    assert (np.r_[bits[:first], bits[first + 37 :]] == 0x7F800001).all()


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_elements_that_are_not_aligned(profile: str, dtype: str) -> None:
    memory = np.zeros(4 * 100, np.uint8)
    out = memory[1 : 1 + 4 * 80].view(dtype)
    x = RANDOM.integers(-9, 9, 64).astype(dtype)
    run(profile, add_all, (1,), x, out, 3, 37, BLOCK=64)
    assert np.array_equal(out[3:40], x[:37]) and not out[:3].any() and not out[40:].any()


@triton.jit
def counted(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@pytest.mark.parametrize(("n", "bins", "block"), [(5000, 256, 1024), (1000, 16, 256), (77, 64, 128), (3000, 8, 2048)])
def test_histograms(profile: str, n: int, bins: int, block: int) -> None:
    x = RANDOM.integers(-2, bins + 3, n).astype(np.int32)
    x[: n // 3] = bins // 2  # lanes that count the same
    out = np.full(bins + 20, 7, np.int32)
    run(profile, counted, (-(-n // block),), x, out, n, BINS=bins, BLOCK=block)
    expected = np.bincount(x[(x >= 0) & (x < bins)], minlength=bins) + 7
    assert np.array_equal(out[:bins], expected) and (out[bins:] == 7).all()


def test_registers_that_are_added_are_in_a_loop_over_strips(profile: str) -> None:
    arrays = [np.zeros(4, np.int32)] * 2
    kernel = compiled(profile, add_all, [*arrays, 0, 4], {"BLOCK": 512})
    program = KernelModule(kernel.asm["spv"])
    items = [item.name for block in program.blocks.values() for item in block.body]
    assert 1 <= items.count("OpAtomicIAdd") < 512 // 16
    assert "@near_i32" in translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text


@pytest.mark.parametrize(("bins", "copies"), [(256, 4), (4096, 1)])
def test_neighbouring_lanes_have_counters_of_their_own(bins: int, copies: int) -> None:
    arrays = [np.zeros(4, np.int32)] * 2
    kernel = compiled(PROFILES_HERE[-1], counted, [*arrays, 4], {"BINS": bins, "BLOCK": 1024})
    translation = Translation(KernelModule(kernel.asm["spv"]), 16, host_of(PROFILES[PROFILES_HERE[-1]].processor))
    assert translation.shared_bytes == 4 * bins * copies
