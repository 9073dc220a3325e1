"""Devices that take subnormal f32 numbers for zero, and those with loose roots and division."""

from pathlib import Path

import ml_dtypes
import mpmath
import numpy as np
import pytest
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.errors import UnsupportedOperation

from tests.device import helpers
from tests.device.helpers import accepted, assert_one_of, flushed
from tests.device.math import test_functions as functions
from tests.device.math import test_rounding as rounding
from tests.device.math import weaker
from tests.device.math.bounds import BOUNDS
from tests.device.math.harness import apply, assert_ulps, exactly

TINY = np.float32(3e-39)


@pytest.fixture
def flushing(compiled_afresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    weaker.flush(monkeypatch)


# -- what is accepted --------------------------------------------------------------------------------------------
def test_the_reference_alone_where_subnormal_numbers_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "computes_with_subnormals", lambda: True)
    x = np.array([1, TINY, 0], np.float32)
    (only,) = accepted(np.negative, x)
    np.testing.assert_array_equal(only, -x)


def test_flushed_numbers_keep_their_sign() -> None:
    x = np.array([TINY, -TINY, 2.0**-126, -(2.0**-126), np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)
    want = np.array([0.0, -0.0, 2.0**-126, -(2.0**-126), np.inf, -np.inf, np.nan, -0.0, 0.0], np.float32)
    np.testing.assert_array_equal(flushed(x), want)
    np.testing.assert_array_equal(np.signbit(flushed(x)), np.signbit(want))


def test_only_elements_with_subnormal_numbers_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "computes_with_subnormals", lambda: False)
    x = np.array([3, TINY, 1e-30, TINY, 5, -TINY], np.float32)
    y = np.array([4, 2, 1e-30, TINY, -2, 0], np.float32)
    ways = accepted(np.multiply, x, y)
    exact = x * y
    # 0: no subnormal; 1: operand and result; 2: result (0 anyway in f32); 3: both operands; 4: none; 5: 0 either way.
    assert {float(way[0]) for way in ways} == {12.0} and {float(way[4]) for way in ways} == {-10.0}
    assert {float(way[1]) for way in ways} == {float(exact[1]), 0.0}
    sums = accepted(np.add, x, y)
    assert {float(way[1]) for way in sums} == {2.0}
    assert {float(way[3]) for way in sums} == {float(x[3] + y[3]), float(TINY), 0.0}


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_formats_keep_their_subnormal_numbers(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(helpers, "computes_with_subnormals", lambda: False)
    monkeypatch.setattr(helpers, "halves_the_smallest_normal", lambda dtype: True)
    x = np.array([np.finfo(dtype).smallest_subnormal, 1], dtype)
    ways = accepted(np.negative, x)
    assert len(ways) == 1 and np.array_equal(ways[0], -x)
    # A result in f32 may be zero.
    assert {
        float(way[0]) for way in accepted(lambda v: v.astype(np.float32), np.array([1e-40]), result=np.float32)
    } == {float(np.float32(1e-40)), 0.0}
    narrow = np.array([1e-39], ml_dtypes.bfloat16)
    assert {float(way[0]) for way in accepted(np.negative, narrow)} == {-float(narrow[0]), 0.0}


@pytest.mark.parametrize("wrong", [0.0, np.nextafter(np.float32(0.375), np.float32(1)), np.inf, np.nan])
def test_a_wrong_normal_result_still_fails(flushing: None, wrong: float) -> None:
    x = np.array([TINY, 0.75], np.float32)
    ways = accepted(lambda v: v.astype(np.longdouble) / 2, x)
    assert_ulps(np.array([0, 0.375], np.float32), ways, 0.5, x)
    assert_ulps(np.array([TINY / 2, 0.375], np.float32), ways, 0.5, x)
    for bad in (np.array([0, wrong], np.float32), np.array([1e-30, 0.375], np.float32)):
        with pytest.raises(AssertionError, match="ULP at"):
            assert_ulps(bad, ways, 0.5, x)
        with pytest.raises(AssertionError, match="1 of 2 differ"):
            assert_one_of(bad, [way.astype(np.float32) for way in ways], x)


# -- the device that is made up ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "expression",
    [
        "a + a",
        "a * 1.5",
        "tl.maximum(a, 0.0) / 0.25",
        "tl.exp2(a) - 1 + a",
        "tl.sqrt(a)",
        "(a > 0).to(tl.float32)",
        "(a.to(tl.float64) * 2).to(tl.float32)",
    ],
)
def test_arithmetic_flushes(flushing: None, expression: str) -> None:
    x = np.full(8, TINY)
    np.testing.assert_array_equal(apply(expression, x), 0)
    np.testing.assert_array_equal(apply("a", x), x)  # moving is no arithmetic


@pytest.mark.parametrize("name", [name for name in BOUNDS if not name.startswith(("cyl", "tgamma"))])
def test_functions(flushing: None, name: str) -> None:
    functions.test_error_bound(name, 32)


@pytest.mark.parametrize("mode", rounding.MODES)
@pytest.mark.parametrize("name", rounding.ARITY)
def test_exact_arithmetic(flushing: None, name: str, mode: str) -> None:
    rounding.check(name, 32, mode)


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("name", rounding.ARITY)
def test_directed_rounding_keeps_subnormal_numbers(
    flushing: None, monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    """They are computed in integers, so the device's zeros do not matter."""
    monkeypatch.setattr(helpers, "computes_with_subnormals", lambda: True)
    rounding.check(name, 32, mode)


def test_neighbours_and_exponents(flushing: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They look at bits alone."""
    monkeypatch.setattr(helpers, "computes_with_subnormals", lambda: True)
    functions.test_neighbours_and_exponents(32)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf"])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_bfloat16(flushing: None, name: str) -> None:
    functions.test_narrow_formats_are_computed_in_single(name, "bfloat16")


@pytest.mark.parametrize("units", [-3, 3])
@pytest.mark.parametrize("name", ["norm3d", "norm4d", "rnorm3d", "rnorm4d", "hypot", "rhypot"])
def test_norms_where_roots_and_division_are_loose(
    compiled_afresh: None, monkeypatch: pytest.MonkeyPatch, name: str, units: int
) -> None:
    """Vulkan allows 2 units in an inverse root and 2.5 in a division, and a root of both."""
    weaker.loosen(monkeypatch, units)
    x = np.full(8, 2, np.float32)
    assert (apply("tl.sqrt(a)", x) != np.sqrt(x)).all() and (apply("a / 3", x) != x / 3).all()
    if "norm" in name:
        functions.test_norms(name, int(name.strip("rnomd")), 32)
    else:
        functions.test_two_arguments(name, 32)


# -- devices without float64 -------------------------------------------------------------------------------------
@pytest.fixture
def single(compiled_afresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on kernels are compiled for a device without float64."""
    has = Capabilities.has
    monkeypatch.setattr(Capabilities, "has", lambda self, feature: feature != "float64" and has(self, feature))


#: Units in the last place of functions that are computed in f32 where there is no f64 (docs/internals/math.md).
IN_SINGLE = {"erfc": 4, "erfcx": 6, "erfinv": 4, "erfcinv": 5, "normcdf": 5, "normcdfinv": 4, "lgamma": 5, "tgamma": 6}


@pytest.mark.parametrize("name", IN_SINGLE)
def test_special_functions_in_single_precision(single: None, name: str) -> None:
    bound = BOUNDS[name]
    x = bound.samples(np.random.default_rng(11), 1500, 32).astype(np.float32)
    expected = accepted(lambda a: exactly(bound.reference, a.astype(np.float64)), x)
    assert_ulps(apply(f"libdevice.{name}(a)", x), expected, IN_SINGLE[name], x)


_INF, _NAN = np.inf, np.nan
#: What they give for 0, -0, 1, -1, 2, infinities and NaN.
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, _INF, -_INF, _NAN)
_OF_SPECIAL = {
    "erfc": (1, 1, 0.15729921, 1.8427008, 0.0046777350, 0, 2, _NAN),
    "erfcx": (1, 1, 0.42758358, 5.0089800, 0.25539568, 0, _INF, _NAN),
    "erfinv": (0.0, -0.0, _INF, -_INF, _NAN, _NAN, _NAN, _NAN),
    "erfcinv": (_INF, _INF, 0, _NAN, -_INF, _NAN, _NAN, _NAN),
    "normcdf": (0.5, 0.5, 0.84134475, 0.15865525, 0.97724987, 1, 0, _NAN),
    "normcdfinv": (-_INF, -_INF, _INF, _NAN, _NAN, _NAN, _NAN, _NAN),
    "lgamma": (_INF, _INF, 0, _INF, 0, _INF, _INF, _NAN),
    "tgamma": (_INF, -_INF, 1, _NAN, 1, _INF, _NAN, _NAN),
}


@pytest.mark.parametrize("name", IN_SINGLE)
def test_special_arguments_in_single_precision(single: None, name: str) -> None:
    got = apply(f"libdevice.{name}(a)", np.array(_SPECIAL, np.float32))
    want = np.array(_OF_SPECIAL[name], np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    zeros = want == 0
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def test_gamma_of_negative_numbers_is_subnormal_before_it_is_zero(single: None) -> None:
    x = np.array([-35.5, -37.25, -38.5, -40.5, -50.5], np.float32)
    want = np.array([float(mpmath.gamma(float(value))) for value in x])
    assert np.abs(apply("libdevice.tgamma(a)", x) - want).max() <= 2.0**-148


def test_a_reciprocal_root_is_rounded_once_in_single_precision(single: None) -> None:
    rng = np.random.default_rng(4)
    x = np.exp2(rng.uniform(-149, 127.99, 1 << 15)).astype(np.float32)
    x[:6] = [0.0, np.inf, 1.0, 4.0, 2.0**-149, np.finfo(np.float32).max]
    with np.errstate(divide="ignore"):
        exact = 1 / np.sqrt(x.astype(np.longdouble))
    assert_ulps(apply("libdevice.rsqrt_rn(a)", x), [exact], 0.5001, x)
    special = np.array([-0.0, -1.0, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(apply("libdevice.rsqrt_rn(a)", special), [-np.inf, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("call", ["j0(a)", "y1(a)", "cyl_bessel_i0(a)"])
def test_bessel_functions_are_refused_in_single_precision(single: None, call: str) -> None:
    with pytest.raises(UnsupportedOperation, match="float64"):
        apply(f"libdevice.{call}", np.ones(8, np.float32))


def test_the_page_has_the_bounds_in_single_precision() -> None:
    page = (Path(__file__).parents[3] / "docs" / "internals" / "math.md").read_text(encoding="utf-8")
    assert ", ".join(f"{name} {bound}" for name, bound in IN_SINGLE.items()) in page.replace("\n", " ")


def _close(got: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Within 1.5 units of the last place of x^y, whose float64 is exact enough to tell."""
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    unit = np.spacing(np.maximum(np.abs(exact), 2.0**-126).astype(np.float32)).astype(np.float64)
    normal = (np.abs(exact) >= 2.0**-126) & (np.abs(exact) < 2.0**127)
    error = np.abs(got.astype(np.float64) - exact)[normal] / unit[normal]
    assert normal.sum() > len(x) // 2 and error.max() <= 1.5, error.max()


def test_powers_in_single_precision(single: None) -> None:
    rng, count = np.random.default_rng(3), 1 << 16
    x = np.exp2(rng.uniform(-126, 127, count)).astype(np.float32)
    near_one = (1 + rng.uniform(-1, 1, count) * 2.0 ** -rng.uniform(1, 23, count)).astype(np.float32)
    for base in (x, near_one):
        bound = 87 / np.maximum(np.abs(np.log(base.astype(np.float64))), 1e-7)
        y = (rng.uniform(-1, 1, count) * np.minimum(bound, 1e9)).astype(np.float32)
        _close(apply("libdevice.pow(a, b)", base, y), base, y)
        whole = np.clip(np.rint(y), -(2.0**31), 2.0**31 - 256).astype(np.int32)
        signed = base * rng.choice([-1, 1], count).astype(np.float32)
        _close(apply("nv.pow(a, b)", signed, whole), signed, whole)


def test_powers_of_special_numbers_in_single_precision(single: None) -> None:
    numbers = np.array(
        [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, -1.5, 1e30, -1e30, 16777216, 16777215, -8388607, 1e-30]
        + [np.inf, -np.inf, np.nan],
        np.float32,
    )
    x, y = (part.reshape(-1).copy() for part in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    got = apply("libdevice.pow(a, b)", x, y)
    np.testing.assert_allclose(got, want, rtol=2e-7)
    assert np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])
    whole = np.array([0, 1, -1, 2, 3, 16777217, -16777217, 33554435, 2**31 - 1, -(2**31)], np.int32)
    x, n = (part.reshape(-1).copy() for part in np.meshgrid(numbers, whole))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), n.astype(np.float64)).astype(np.float32)
    got = apply("nv.pow(a, b)", x, n)
    np.testing.assert_allclose(got, want, rtol=2e-7)
    assert np.array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])
