"""Rounds of a loop over strips whose lanes are all within bounds: the results, and the code without masks."""

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.module_translation import translate

from tests.unit.cpu.kernels import compiled, run

RANDOM = np.random.default_rng(11)
LARGEST = 2**31 - 1


@triton.jit
def bounded(x, out, start, n, RELATION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    number = start + at
    if RELATION == "<":
        mask = number < n
    elif RELATION == "<=":
        mask = number <= n
    elif RELATION == ">":
        mask = n > number
    elif RELATION == ">=":
        mask = n >= number
    elif RELATION == "unsigned":
        mask = number.to(tl.uint32) < n.to(tl.uint32)
    else:
        mask = number.to(tl.int64) < n.to(tl.int64)
    tl.store(out + at, tl.load(x + at, mask=mask, other=-1.0) * 2.0, mask=mask)


COMPARISONS = {
    "<": lambda number, n: number < n,
    "<=": lambda number, n: number <= n,
    ">": lambda number, n: n > number,
    ">=": lambda number, n: n >= number,
    "unsigned": lambda number, n: number.astype(np.uint32) < np.uint32(n & 0xFFFFFFFF),
    "wide": lambda number, n: number < n,
}


@pytest.mark.parametrize("relation", COMPARISONS)
@pytest.mark.parametrize(
    ("start", "n"),
    [
        (0, 2048),
        (0, 2047),
        (0, 1),
        (0, 0),
        (-7, 1000),
        (5, -3),
        (-5000, -4000),
        (LARGEST - 1000, LARGEST),
        (LARGEST - 1000, -LARGEST),
        (LARGEST - 2047, LARGEST),
        (-LARGEST - 1, -LARGEST + 1024),
    ],
)
def test_sums_that_pass_the_end_of_their_type(profile: str, relation: str, start: int, n: int) -> None:
    x, out = RANDOM.standard_normal(2048).astype(np.float32), np.full(2048 + 32, 99, np.float32)
    run(profile, bounded, (1,), x, out, start, n, RELATION=relation, BLOCK=2048)
    number = (np.arange(2048, dtype=np.int64) + start).astype(np.int32)
    expected = np.where(COMPARISONS[relation](number, n), 2 * x, np.float32(99))
    assert np.array_equal(out[:2048], expected) and (out[2048:] == 99).all()


@triton.jit
def rectangle(x, out, m, n, stride, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    mask = (row[:, None] < m) & (column[None, :] < n) & (column[None, :] >= 3)
    value = tl.load(x + row[:, None] * stride + column[None, :], mask=mask, other=7.0)
    place = out + row[:, None] * stride + column[None, :]
    tl.store(place, tl.where(mask, value + 1.0, 0.0), mask=mask)


@pytest.mark.parametrize(("m", "n"), [(32, 256), (31, 255), (64, 300), (1, 17), (40, 513)])
def test_rows_and_columns(profile: str, m: int, n: int) -> None:
    stride = n + 5
    x = RANDOM.standard_normal((m + 1, stride)).astype(np.float32)
    out = np.full((m + 1, stride), 99, np.float32)
    run(profile, rectangle, (-(-m // 32), -(-n // 128)), x, out, m, n, stride, M=32, N=128)
    expected = np.full_like(out, 99)
    expected[:m, 3:n] = x[:m, 3:n] + 1
    assert np.array_equal(out, expected)


def test_a_round_has_a_version_without_masks(profile: str) -> None:
    arrays = [np.zeros(4, np.float32)] * 2
    kernel = compiled(profile, bounded, [*arrays, 0, 4], {"RELATION": "<", "BLOCK": 2048})
    text = translate(kernel.asm["spv"], host_of(PROFILES[profile].processor), 16).text
    whole = text[text.index("\nwhole") : text.index("\npart")]
    assert " load <16 x float>" in whole and " store <16 x float>" in whole
    assert "masked" not in whole and "@store_float" not in whole and "<16 x i1>" not in whole


def test_lanes_that_are_all_masked_out_read_nothing_of_the_tensor(profile: str) -> None:
    """There may be no memory, which a processor notices slowly: rows past the last one of a large tensor."""
    host = host_of(PROFILES[profile].processor)
    arrays = [np.zeros(4, np.float32)] * 2
    kernel = compiled(profile, bounded, [*arrays, 0, 4], {"RELATION": "<", "BLOCK": 2048})
    text = translate(kernel.asm["spv"], host, 16).text
    blocks = re.split(r"\n(?=\w+:)", text[text.index("\npart") :])
    loads = [block for block in blocks if "@llvm.masked.load" in block]
    assert bool(loads) == host.masks
    for block in loads:
        label = block.split(":")[0]
        condition = re.search(rf"br i1 (%\w+), label %{label}, label %past", text)
        assert condition is not None and f"{condition[1]} = icmp ne i16 " in text
