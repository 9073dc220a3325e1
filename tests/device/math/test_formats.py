"""Conversions to and from the narrow float formats, exhaustive where there are 2^16 inputs or fewer."""

import ml_dtypes
import numpy as np
import pytest
from triton import knobs
from triton.backends.spirv.capabilities import Capabilities

from tests.device.math import harness
from tests.device.math.harness import apply

#: Name in Triton → ml_dtypes' type and the largest number, to which larger ones are clamped.
EIGHT_BIT = {
    "float8e5": (ml_dtypes.float8_e5m2, 57344.0),
    "float8e4nv": (ml_dtypes.float8_e4m3fn, 448.0),
    "float8e5b16": (ml_dtypes.float8_e5m2fnuz, 57344.0),
    "float8e4b8": (ml_dtypes.float8_e4m3fnuz, 240.0),
}
CODES = {8: np.arange(1 << 8, dtype=np.uint8), 16: np.arange(1 << 16, dtype=np.uint16)}


def singles() -> np.ndarray:
    """f32 numbers of every exponent and every leading bits, on, beside and between the narrow formats' numbers."""
    high = np.arange(1 << 16, dtype=np.uint64) << 16
    codes = np.concatenate([high + low for low in (0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    return codes.astype(np.uint32).view(np.float32)


def to_odd(x: np.ndarray) -> np.ndarray:
    """f64 as f32 with the last bit of inexact results odd, so that ml_dtypes rounds once."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32)
    inexact = (near.astype(np.float64) != x) & ~np.isnan(x)
    larger = np.abs(near.astype(np.float64)) > np.abs(x)
    return np.where(inexact, (bits - (inexact & larger)) | 1, bits).astype(np.uint32).view(np.float32)


def codes_equal(actual: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Equal bits, or both NaN."""
    bits = np.uint8 if actual.itemsize == 1 else np.uint16
    nan = np.isnan(actual.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
    return nan | (actual.view(bits) == wanted.view(bits))


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", EIGHT_BIT)
def test_from_eight_bits(name, target):
    wanted = CODES[8].view(EIGHT_BIT[name][0]).astype(np.float64)
    value = f"a.to(tl.{name}, bitcast=True).to(tl.{target}).to(tl.float64)"
    actual = apply(value, CODES[8], dtype=np.float64)
    np.testing.assert_array_equal(actual, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(wanted[number]))


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", EIGHT_BIT)
def test_to_eight_bits(name, source):
    dtype, largest = EIGHT_BIT[name]
    if source in ("float16", "bfloat16"):
        x = CODES[16]
        value = f"a.to(tl.{source}, bitcast=True)"
        exact = x.view(np.float16 if source == "float16" else ml_dtypes.bfloat16).astype(np.float64)
    else:
        x = singles()
        if source == "float64":
            x = x.astype(np.float64)
            x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
        value, exact = "a", x.astype(np.float64)
    actual = apply(f"{value}.to(tl.{name}).to(tl.uint8, bitcast=True)", x, dtype=np.uint8, block=1024).view(dtype)
    wanted = to_odd(np.clip(exact, -largest, largest)).astype(dtype)
    wrong = ~codes_equal(actual, wanted)
    assert not wrong.any(), (exact[wrong][:4], actual[wrong][:4], wanted[wrong][:4])


def truncated(x: np.ndarray, dtype: type) -> np.ndarray:
    """f32 rounded towards zero to a 16-bit format."""
    near = x.astype(dtype)
    larger = (np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))) & np.isfinite(x)
    return (near.view(np.uint16) - larger).astype(np.uint16).view(dtype)


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_towards_zero():
    x = singles()
    for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        actual = apply(f"a.to(tl.{name}, fp_downcast_rounding='rtz').to(tl.uint16, bitcast=True)", x, dtype=np.uint16)
        assert codes_equal(actual.view(dtype), truncated(x, dtype)).all(), name
    actual = apply("a.to(tl.float8e5, fp_downcast_rounding='rtz').to(tl.uint8, bitcast=True)", x, dtype=np.uint8)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(actual[number], (truncated(x, np.float16).view(np.uint16) >> 8)[number])


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
@pytest.mark.parametrize("native", [True, False])
def test_half_precision(native, monkeypatch, tmp_path):
    """f32 and f64 to f16, by the device's instruction and without it."""
    has = Capabilities.has
    if not native:
        monkeypatch.setattr(
            Capabilities, "has", lambda self, name: name != "round_to_nearest_even16" and has(self, name)
        )
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        harness._module.cache_clear()
        x = singles()
        assert codes_equal(apply("a.to(tl.float16)", x, dtype=np.float16), x.astype(np.float16)).all()
        wide = x.astype(np.float64)
        wide = np.concatenate([np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf)])
        assert codes_equal(apply("a.to(tl.float16)", wide, dtype=np.float16), wide.astype(np.float16)).all()
        harness._module.cache_clear()
