"""tl.randint and tl.rand have the bits of upstream's interpreter and of Philox; tl.randn is bounded in ULP, because
it goes through log, sqrt, sin and cos (docs/internals/math.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from examples.low_memory_dropout import philox, uniform
from tests.device.helpers import device_capabilities

SIZE = 256
SEEDS = (0, 7, 2**31 - 1, 2**40 + 5)

#: Function → how many ULP its results may be from the interpreter's, whose f32 log is itself up to 4 ULP off.
TOLERANCES = {"randint": 0.0, "rand": 0.0, "randn": 8.0, "wide": 0.0}

#: How many ULP randn may be from the exact function of its two uniform numbers, where the device's sqrt is exact.
RANDN_ULP = 3.0


@triton.jit
def random_kernel(out_ptr, bits_ptr, seed, first, KIND: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    if KIND == "randint":
        tl.store(bits_ptr + offsets, tl.randint(seed, first + offsets).to(tl.int64))
    elif KIND == "wide":
        tl.store(bits_ptr + offsets, tl.randint(seed, first.to(tl.int64) * 65537 + offsets).to(tl.int64))
    elif KIND == "rand":
        tl.store(out_ptr + offsets, tl.rand(seed, first + offsets))
    else:
        tl.store(out_ptr + offsets, tl.randn(seed, first + offsets))


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Distances from float64 numbers: in units in the last place of f32, or where the results are integers, in ones."""
    if actual.dtype.kind == "i":
        return np.abs(actual - expected.astype(actual.dtype))
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.asarray(np.abs(actual.astype(np.float64) - expected) / unit)


def draw(kind: str, seed: int) -> np.ndarray:
    """SIZE numbers, as this process runs kernels."""
    out, bits = torch.zeros(SIZE), torch.zeros(SIZE, dtype=torch.int64)
    random_kernel[(1,)](out, bits, seed, 1_000_003, KIND=kind, SIZE=SIZE)
    return (bits if kind in ("randint", "wide") else out).numpy()


@pytest.fixture(scope="module")
def interpreted() -> dict[str, dict[str, list[float]]]:
    """Kind → seed → numbers, from a process where kernels are interpreted."""
    code = (
        "import json; from tests.device.test_random import *; "
        "print(json.dumps({kind: {seed: draw(kind, seed).tolist() for seed in SEEDS} for kind in TOLERANCES}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    result: dict[str, dict[str, list[float]]] = json.loads(run.stdout)
    return result


@pytest.mark.parametrize("kind", list(TOLERANCES))
@pytest.mark.parametrize("seed", SEEDS)
def test_same_as_interpreter(kind: str, seed: int, interpreted: dict[str, dict[str, list[float]]]) -> None:
    actual = draw(kind, seed)
    expected = np.array(interpreted[kind][str(seed)]).astype(actual.dtype)
    assert ulps(actual, expected.astype(np.float64)).max() <= TOLERANCES[kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_words_are_philox(seed: int) -> None:
    words = draw("randint", seed).astype(np.uint32)
    assert np.array_equal(words, philox(seed, np.arange(SIZE) + 1_000_003))


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
