"""Dropout that stores no mask: whether an element is kept follows from a seed and its position.

``tl.rand`` is Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), a counter-based
generator: the backward pass gets the same mask from the same seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from examples.harness import Case, device_array, run_alone

BLOCK = 1024
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LOW = np.uint64(0xFFFFFFFF)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, size, probability, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    x = tl.load(x_ptr + offsets, mask=inside)
    kept = tl.rand(seed, offsets) > probability
    tl.store(out_ptr + offsets, tl.where(kept, x / (1 - probability), 0.0), mask=inside)


def dropout(x: Any, out: Any, size: int, probability: float, seed: int) -> None:
    """``out`` is ``x`` with elements set to 0 with the given probability, the others scaled up to make up for it."""
    dropout_kernel[(triton.cdiv(size, BLOCK),)](x, out, size, probability, seed, BLOCK=BLOCK)


def philox(seed: int, positions: np.ndarray) -> np.ndarray:
    """The first 32-bit word of Philox for each counter value, as ``tl.randint`` gives it."""
    word = [positions.astype(np.uint64), *(np.zeros(positions.shape, np.uint64) for _ in range(3))]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(ROUNDS):
        first, second = word[0] * np.uint64(MULTIPLIERS[0]), word[2] * np.uint64(MULTIPLIERS[1])
        word = [
            (second >> np.uint64(32)) ^ word[1] ^ np.uint64(key[0]),
            second & LOW,
            (first >> np.uint64(32)) ^ word[3] ^ np.uint64(key[1]),
            first & LOW,
        ]
        key = [part + step & 0xFFFFFFFF for part, step in zip(key, KEY_STEPS, strict=True)]
    return word[0].astype(np.uint32)


def uniform(words: np.ndarray) -> np.ndarray:
    """Words as numbers in [0, 1), as ``tl.rand`` scales them: the signed word's magnitude times just under 2⁻³¹."""
    signed = words.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def reference(x: np.ndarray, probability: float, seed: int) -> np.ndarray:
    """The same in float64, with an own Philox."""
    kept = uniform(philox(seed, np.arange(x.size))) > np.float32(probability)
    return np.where(kept, x.astype(np.float64) / (1 - probability), 0.0)


def cases() -> list[Case]:
    """One size that is not a multiple of the block, two seeds; the second is wider than 32 bits."""
    size, probability = 1_000_003, 0.25
    x = np.random.default_rng(0).standard_normal(size, dtype=np.float32)

    def case(seed: int) -> Case:
        out = np.zeros_like(x)
        device_x, device_out = device_array(x), device_array(out)
        return Case(
            f"dropout, seed {seed:#x}",
            f"{size} fp32",
            lambda: dropout(device_x, device_out, size, probability, seed),
            out,
            reference(x, probability, seed),
            bytes_moved=2 * x.nbytes,
            tolerance=1e-5,
        )

    return [case(123), case(0x1234567890ABCDEF)]


if __name__ == "__main__":
    run_alone(cases)
