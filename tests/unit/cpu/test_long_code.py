"""Code of thousands of instructions without a branch: blocks of LLVM IR are cut, as their time is more than linear."""

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run

STEPS = 100


@triton.jit
def long(x, out, n, rounds, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for turn in range(rounds):
        if turn != 1:
            for step in tl.static_range(STEPS):
                value = tl.load(x + step * n + at)
                total = total * 3 + value
                tl.store(out + step * n + at, total)
        else:
            total += 1
    tl.store(out + STEPS * n + at, total, mask=at < n)


@pytest.mark.parametrize("profile", PROFILES_HERE)
def test_long_code_is_cut_and_computes_the_same(profile: str) -> None:
    n, rounds = 16, 3
    x = np.random.default_rng(0).integers(0, 100, (STEPS, n)).astype(np.int32)
    out = np.zeros((STEPS + 2, n), np.int32)
    run(profile, long, (1,), x, out, n, rounds, STEPS=STEPS, BLOCK=16)
    total, expected = np.zeros(n, np.int32), np.zeros_like(out)
    for turn in range(rounds):
        if turn == 1:
            total = total + 1
            continue
        for step in range(STEPS):
            total = total * 3 + x[step]
            expected[step] = total
    expected[STEPS] = total
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("profile", PROFILES_HERE)
def test_blocks_of_llvm_are_of_bounded_length(profile: str) -> None:
    x, out = np.zeros((STEPS, 16), np.int32), np.zeros((STEPS + 2, 16), np.int32)
    kernel = compiled(profile, long, [x, out, 16, 3], {"STEPS": STEPS, "BLOCK": 16})
    capabilities = PROFILES[profile]
    text = translate(kernel.asm["spv"], host_of(capabilities.processor), capabilities.subgroup_size).text
    lengths = [block.count("\n") for block in re.split(r"\n\w+:\n", text)]
    assert "br i1 %never" in text and max(lengths) < 1100
