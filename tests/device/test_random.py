"""tl.randint and tl.rand have the bits of Philox; tl.randn is bounded in ULP, because
it goes through log, sqrt, sin and cos (docs/internals/math.md)."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from examples.low_memory_dropout import philox, uniform
from tests.device.helpers import device_capabilities

#: How many ULP randn may be from the exact function of its two uniform numbers, where the device's sqrt is exact.
RANDN_ULP = 3.0


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Distances from float64 numbers: in units in the last place of f32, or where the results are integers, in ones."""
    if actual.dtype.kind == "i":
        return np.abs(actual - expected.astype(actual.dtype))
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.asarray(np.abs(actual.astype(np.float64) - expected) / unit)


@triton.jit
def four_words(out_ptr, seed, c0, c1, c2, c3, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    zero = tl.zeros((SIZE,), tl.uint32)
    words = tl.philox(
        seed,
        at.to(tl.uint32) + c0.to(tl.uint32),
        zero + c1.to(tl.uint32),
        zero + c2.to(tl.uint32),
        zero + c3.to(tl.uint32),
    )
    for number in tl.static_range(4):
        tl.store(out_ptr + number * SIZE + at, words[number].to(tl.int32, bitcast=True))


#: Published vectors of Philox4x32-10: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 0xFFFFFFFFFFFFFFFF, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_published_vectors(counter: tuple[int, ...], key: int, expected: tuple[int, ...]) -> None:
    out = torch.zeros(4, 32, dtype=torch.int32)
    four_words[(1,)](out, key, *counter, SIZE=32)
    assert tuple(out.numpy().view(np.uint32)[:, 0].tolist()) == expected


@triton.jit
def many(words_ptr, uniform_ptr, pair_ptr, normal_ptr, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second, _, _ = tl.randint4x(seed, at)
    tl.store(words_ptr + at, first.to(tl.int32, bitcast=True))
    tl.store(uniform_ptr + at, tl.rand(seed, at))
    tl.store(pair_ptr + at, second.to(tl.int32, bitcast=True))
    tl.store(normal_ptr + at, tl.randn(seed, at))


def test_a_million_numbers() -> None:
    """Words and uniform numbers have the exact bits; normal ones are close to the exact function of them."""
    count, block = 1 << 20, 1024
    words, pair = (torch.zeros(count, dtype=torch.int32) for _ in range(2))
    flat, normal = torch.zeros(count), torch.zeros(count)
    many[(count // block,)](words, flat, pair, normal, 7, BLOCK=block)
    first = philox(7, np.arange(count))
    assert np.array_equal(words.numpy().view(np.uint32), first)
    assert np.array_equal(flat.numpy(), uniform(first))
    u1 = np.maximum(np.float32(1e-7), uniform(first)).astype(np.float64)
    angle = (np.float32(2 * np.pi) * uniform(pair.numpy().view(np.uint32))).astype(np.float64)
    looser = 0 if device_capabilities().traits.exact_division else 3
    distance = ulps(normal.numpy(), np.sqrt(-2 * np.log(u1)) * np.cos(angle))
    assert distance.max() <= RANDN_ULP + looser, distance.max()
    assert distance.mean() < 0.6, "most are within the last place"
