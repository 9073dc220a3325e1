"""triton.language.extra.hip.libdevice, as code that was written for AMD's GPUs imports it."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.device.math.harness import apply

COUNT = 96
RNG = np.random.default_rng(8)
SINGLES = np.concatenate([RNG.normal(0, 9, COUNT - 6), [0.5, 1.5, -2.5, np.inf, -np.inf, np.nan]]).astype(np.float32)
FINITE = np.nan_to_num(SINGLES, posinf=3, neginf=-3)
WORDS, LONGS = RNG.integers(-(2**31), 2**31, COUNT).astype(np.int32), RNG.integers(-(2**62), 2**62, COUNT)


def _bits(values: np.ndarray, width: int) -> list[str]:
    return [format(int(value) % (1 << width), f"0{width}b") for value in values]


@pytest.mark.parametrize(
    ("expression", "operand", "expected"),
    [
        ("amd.clz(a)", WORDS, lambda a: np.array([len(x) - len(x.lstrip("0")) for x in _bits(a, 32)], np.int32)),
        ("amd.clz(a)", LONGS, lambda a: np.array([len(x) - len(x.lstrip("0")) for x in _bits(a, 64)], np.int64)),
        ("amd.popc(a)", LONGS, lambda a: np.array([x.count("1") for x in _bits(a, 64)], np.int32)),
        ("amd.abs(a)", WORDS, np.abs),
        ("amd.abs(a)", LONGS, np.abs),
        ("amd.abs(a)", SINGLES, np.abs),
        ("amd.abs(a)", SINGLES.astype(np.float64), np.abs),
        ("amd.rint(a) + amd.floor(a)", FINITE, lambda a: np.rint(a) + np.floor(a)),
        ("amd.rint(a)", SINGLES.astype(np.float64), np.rint),
        ("amd.llrint(a)", FINITE, lambda a: np.rint(a).astype(np.int64)),
        ("amd.isnan(a)", SINGLES, np.isnan),
        ("amd.isfinited(a)", SINGLES.astype(np.float64), lambda a: np.isfinite(a).astype(np.int32)),
        ("amd.pow(a, 3)", np.round(FINITE), lambda a: a**3),
        ("amd.fma(a, a, a)", np.round(FINITE), lambda a: a * a + a),
    ],
)  # fmt: skip
def test_functions(expression: str, operand: np.ndarray, expected: Callable[[np.ndarray], np.ndarray]) -> None:
    wanted = expected(operand)
    assert np.array_equal(apply(expression, operand, dtype=wanted.dtype), wanted, equal_nan=wanted.dtype.kind == "f")
