"""Products of rounds of bfloat16 by an instruction that adds two products: they have the bits of FMA."""

import numpy as np
import pytest
from triton.backends.spirv.abi.tile_products import RoundsProduct
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.round_kernels import define_rounds

from .kernels import FEATURES_HERE
from .test_round_kernels import placed, run

FMA, PAIRS = host_of("x86-64-v4"), host_of("x86-64-v4+avx512bf16")
_GUARD = 16

needs_pairs = pytest.mark.skipif("avx512bf16" not in FEATURES_HERE, reason="this processor lacks AVX512-BF16")


def _rounded(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _wide(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """bfloat16 as its bits."""
    values = rng.standard_normal(shape)
    if kind == "tiny":
        values *= 2.0 ** rng.integers(-75, -50, shape)
    if kind == "zeros":
        values *= rng.choice([0.0, -0.0, 1.0], shape)
    bits = _rounded(values)
    if kind == "subnormal":
        few = rng.random(shape) < 0.02
        bits[few] = rng.integers(0, 128, int(few.sum())) | rng.integers(0, 2, int(few.sum())) << 15
    if kind == "not finite":
        few = rng.random(shape) < 0.002
        bits[few] = rng.choice([0x7F80, 0xFF80, 0x7FC0], int(few.sum()))
    if kind == "any":
        bits = rng.integers(0, 1 << 16, shape).astype(np.uint16)
        bits[(bits & 0x7F80) == 0x7F80] = 0
    return bits


def _both(kind: str, sums: str, m: int, n: int, columns: str, steps: int, rows: int, across: int) -> None:
    rng = np.random.default_rng(steps)
    left, right = _numbers(rng, (m, 1200), kind), _numbers(rng, (1200, n), kind)
    left[:, steps:], right[steps:] = 0x7FC0, 0x7FC0  # nothing reads NaN behind the last k
    memory, order, a_at, b_at, step = placed(rng, left, right, columns, rows, across)
    guarded = rng.standard_normal(m * n + 2 * _GUARD).astype(np.float32)
    if sums != "normal":
        guarded *= np.float32(2.0**-130 if sums == "subnormal" else 0)
    before, needed, found = guarded.copy(), min(rows, m) if steps % 2 else m, []
    one = RoundsProduct("f32", m, n, 32, n, ("bf16", 1), ("bf16", step), columns == "turned")
    assert ("dpbf16ps" in define_rounds(one, PAIRS)[0]) and "dpbf16ps" not in define_rounds(one, FMA)[0]
    for host in (FMA, PAIRS):
        guarded[:] = before
        c = guarded[_GUARD:-_GUARD]
        run(one, host, c, a_at, b_at, memory.strides[0], steps, int(steps % 32 > 0), rows, across, needed)
        assert np.array_equal(guarded[:_GUARD], before[:_GUARD]) and np.array_equal(guarded[-_GUARD:], before[-_GUARD:])
        found.append(c.reshape(m, n)[:needed].copy())
    assert np.array_equal(np.isnan(found[0]), np.isnan(found[1]))
    there = ~np.isnan(found[0])
    assert np.array_equal(found[0].view(np.int32)[there], found[1].view(np.int32)[there])
    wide_a, wide_b = _wide(left[:, :steps]), _wide(right[:steps, order])
    wide_a[rows:], wide_b[:, across:] = 0, 0
    if kind in ("usual", "zeros", "tiny", "subnormal"):
        initial = before[_GUARD:-_GUARD].reshape(m, n).astype(np.float64)
        bound = (np.abs(wide_a) @ np.abs(wide_b) + np.abs(initial)) * (steps + 1) * np.finfo(np.float32).eps + 1e-43
        assert (np.abs(found[1] - initial[:needed] - (wide_a @ wide_b)[:needed]) <= bound[:needed]).all()


@needs_pairs
@pytest.mark.parametrize("columns", ["together", "apart", "turned"])
@pytest.mark.parametrize("steps", [0, 1, 7, 64, 255, 512, 1152])
@pytest.mark.parametrize(("rows", "across", "m", "n"), [(64, 64, 64, 64), (41, 77, 64, 128), (0, 16, 32, 16)])
def test_rows_columns_and_k(rows: int, across: int, m: int, n: int, steps: int, columns: str) -> None:
    _both("usual", "normal", m, n, columns, steps, rows, across)


@needs_pairs
@pytest.mark.parametrize("columns", ["together", "turned"])
@pytest.mark.parametrize("steps", [1, 33, 600])
@pytest.mark.parametrize("sums", ["normal", "subnormal", "zero"])
@pytest.mark.parametrize("kind", ["zeros", "tiny", "subnormal", "not finite", "any"])
def test_numbers_that_the_instruction_would_take_for_zeros(kind: str, sums: str, steps: int, columns: str) -> None:
    _both(kind, sums, 32, 64, columns, steps, 32, 64)


@pytest.mark.parametrize(("m", "a"), [(16, "bf16"), (64, "f32")])
def test_few_rows_and_other_types_are_multiplied_by_fma(m: int, a: str) -> None:
    one = RoundsProduct("f32", m, 64, 32, 64, (a, 1), ("bf16", 1), False)
    assert "dpbf16ps" not in define_rounds(one, PAIRS)[0]
