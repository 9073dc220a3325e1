"""tl.rand, tl.randn and tl.randint are those of upstream's interpreter, and the words are Philox's."""
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

from examples.low_memory_dropout import philox

SIZE = 256
SEEDS = (0, 7, 2**31 - 1, 2**40 + 5)

#: Function → what its results may differ by: randn goes through log, sqrt, sin and cos.
TOLERANCES = {"randint": 0.0, "rand": 0.0, "randn": 2e-6, "wide": 0.0}


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


def draw(kind: str, seed: int) -> np.ndarray:
    """SIZE numbers, as this process runs kernels."""
    out, bits = torch.zeros(SIZE), torch.zeros(SIZE, dtype=torch.int64)
    random_kernel[(1,)](out, bits, seed, 1_000_003, KIND=kind, SIZE=SIZE)
    return (bits if kind in ("randint", "wide") else out).numpy()


@pytest.fixture(scope="module")
def interpreted() -> dict[str, dict[str, list[float]]]:
    """Kind → seed → numbers, from a process where kernels are interpreted."""
    code = ("import json; from tests.device.test_random import *; "
            "print(json.dumps({kind: {seed: draw(kind, seed).tolist() for seed in SEEDS} for kind in TOLERANCES}))")
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True,
                         capture_output=True, text=True, cwd=Path(__file__).parents[2])
    result: dict[str, dict[str, list[float]]] = json.loads(run.stdout)
    return result


@pytest.mark.parametrize("kind", list(TOLERANCES))
@pytest.mark.parametrize("seed", SEEDS)
def test_same_as_interpreter(kind: str, seed: int, interpreted: dict[str, dict[str, list[float]]]) -> None:
    actual, expected = draw(kind, seed), np.array(interpreted[kind][str(seed)])
    assert np.abs(actual.astype(np.float64) - expected).max() <= TOLERANCES[kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_words_are_philox(seed: int) -> None:
    words = draw("randint", seed).astype(np.uint32)
    assert np.array_equal(words, philox(seed, np.arange(SIZE) + 1_000_003))
