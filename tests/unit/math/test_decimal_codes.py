"""Constants of narrow float formats as MLIR prints them: six digits, or more where those do not tell it apart."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from triton.backends.spirv.lowering.numerics.float_formats import decimal_code

KINDS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
}


def _finite(kind: Any) -> tuple[np.ndarray, np.ndarray]:
    bits = 8 * np.dtype(kind).itemsize
    codes = np.arange(1 << bits, dtype=f"uint{bits}")
    with np.errstate(invalid="ignore"):
        values = codes.view(kind).astype(np.float64)
    return codes[np.isfinite(values)], values[np.isfinite(values)]


@pytest.mark.parametrize("name", KINDS)
def test_every_number_is_found_again(name: str) -> None:
    for code, value in zip(*_finite(KINDS[name]), strict=True):
        assert decimal_code(float(value), name) == code
        short = float(f"{value:.5e}")
        if KINDS[name](short) == KINDS[name](value):
            assert decimal_code(short, name) == code, short


@pytest.mark.parametrize("name", KINDS)
def test_ties_go_to_even(name: str) -> None:
    codes, values = _finite(KINDS[name])
    order = np.argsort(values, kind="stable")
    codes, values = codes[order], values[order]
    for (low, high), (below, above) in zip(
        zip(codes, codes[1:], strict=False), zip(values, values[1:], strict=False), strict=True
    ):
        if below != above:
            even = low if low & 1 == 0 else high
            assert KINDS[name](
                np.array(decimal_code((below + above) / 2, name), codes.dtype).view(KINDS[name])
            ) == np.array(even, codes.dtype).view(KINDS[name])
