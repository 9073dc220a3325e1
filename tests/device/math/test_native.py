"""Exponentials by the device's own Exp2: the probe that measures it, and kernels that use it."""

from dataclasses import replace

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv import driver_quirks
from triton.backends.spirv.capabilities import NATIVE_MATH, Capabilities
from triton.backends.spirv.runtime import from_numpy
from triton.backends.spirv.runtime.context import current
from triton.backends.spirv.runtime.measuring import measured, native_probe, probing
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.opcodes import Glsl

from tests.device.helpers import accepted, assert_one_of, device_capabilities, halves_the_smallest_normal
from tests.device.math.bounds import BOUNDS
from tests.device.math.harness import apply, assert_ulps, exactly, ulps

#: Units in the last place that Exp2 of Mesa 22.3's CPU driver is off, and what exp adds to that.
MESA, MORE = 3.0, 1.5
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38, -3e38, 200, -200, 89, 1e-40], np.float32)


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch, compiled_afresh: None) -> None:
    """Kernels use the device's own functions, however exact."""
    monkeypatch.setenv("TRITON_SPIRV_NATIVE_MATH", "1")


@pytest.fixture
def fused(native: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose f32 Fma rounds once: it is computed in f64."""
    for name, driver in driver_quirks.DRIVERS.items():
        monkeypatch.setitem(driver_quirks.DRIVERS, name, replace(driver, fused=True))
    glsl = FunctionBuilder.glsl

    def once(f: FunctionBuilder, number: int, type_id: int, *operands: int) -> int:
        if number != Glsl.Fma or f.module.kinds[type_id] != ("float", 32):
            return glsl(f, number, type_id, *operands)
        wide = f.module.float(64)
        a, b, c = (f.emit(op.FConvert, wide, operand) for operand in operands)
        return f.emit(op.FConvert, type_id, f.emit(op.FAdd, wide, f.emit(op.FMul, wide, a, b), c))

    monkeypatch.setattr(FunctionBuilder, "glsl", once)


def measured_results() -> tuple[np.ndarray, np.ndarray]:
    """The probe's arguments, and what the device made of them."""
    context, data = current(), native_probe.probe_data()
    capabilities = context.capabilities
    probing.run(context, native_probe.probe_module(capabilities.subgroup_size, capabilities.has), data)
    return data[: native_probe.SAMPLES], data[native_probe.SAMPLES :]


def test_the_probe_agrees_with_another_judge() -> None:
    x, found = measured_results()
    with np.errstate(over="ignore"):
        exact = np.exp2(x.astype(np.longdouble))
    off = ulps(found, exact)
    normal = ~(exact < 2.0**-126)
    expected = {"exp2"} if off[normal].max() <= native_probe.BOUND else set()
    if expected and off.max() <= native_probe.BOUND:
        expected.add("exp2_subnormal")
    assert measured.measure(current()) == expected


def test_the_kernels_function_is_the_measured_one(native: None) -> None:
    x, found = measured_results()
    normal = ~(x < -125)
    assert_one_of(apply("tl.exp2(a)", x[normal]), [found[normal]], x[normal])


@pytest.mark.parametrize("subnormal", [True, False])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_errors(fused: None, monkeypatch: pytest.MonkeyPatch, name: str, subnormal: bool) -> None:
    """Also where the device's Exp2 gives no subnormal numbers but the device computes with them."""
    has = Capabilities.has
    monkeypatch.setattr(
        Capabilities, "has", lambda self, key: not subnormal if key == "preserve_denormals32" else has(self, key)
    )
    if not subnormal:
        # A device without such a mode may keep them all the same.
        monkeypatch.setattr("triton.backends.spirv.lowering.entry_point.float_modes", lambda *_: [])
        monkeypatch.setattr(
            "triton.backends.spirv.stages.native_math", lambda *_: frozenset(NATIVE_MATH) - {"exp2_subnormal"}
        )
    low, high = (-150.0, 128.0) if name == "exp2" else (-104.0, 88.7)
    x = np.random.default_rng(2).uniform(low, high, 4000).astype(np.float32)
    x = np.concatenate([x, x[:500] * np.float32(2.0**-20), SPECIAL])
    expected = exactly(BOUNDS[name].reference, x)
    ways = accepted(lambda _: expected, x)
    if subnormal or not halves_the_smallest_normal("float32"):  # of Exp2's results, they may be zero on any device
        ways.append(np.where(np.abs(expected) < 2.0**-126, 0, expected))
    bound = MESA + (MORE if name == "exp" else 0)
    assert_ulps(apply(f"tl.{name}(a)", x), ways, bound, x)


@pytest.fixture(params=[False, True], ids=["as it is", "by roots"])
def quotients(request: pytest.FixtureRequest, fused: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device as it is, or one whose reciprocals are squares of roots."""
    for name, driver in driver_quirks.DRIVERS.items():
        if request.param:
            monkeypatch.setitem(driver_quirks.DRIVERS, name, replace(driver, reciprocal_roots=True))


def test_quotients_that_need_not_be_exact(quotients: None) -> None:
    rng = np.random.default_rng(6)
    x, y = (rng.uniform(1, 2, 20000) * np.exp2(rng.integers(-60, 60, 20000)) for _ in range(2))
    y *= rng.choice([-1, 1], y.size)
    x, y = np.float32(x), np.float32(y)
    bound = 2 if device_capabilities().traits.reciprocal_roots else 2.5
    assert_ulps(apply("libdevice.fast_dividef(a, b)", x, y), [x.astype(np.longdouble) / y], bound, x, y)
    assert_ulps(apply("libdevice.fast_dividef(1.0, a)", y), [1 / y.astype(np.longdouble)], bound, y)


def test_quotients_by_large_numbers(quotients: None) -> None:
    rng = np.random.default_rng(7)
    x, y = (np.float32(rng.uniform(1, 2, 20000) * 2.0**exponent) for exponent in (7, 126))
    y[::2] = np.minimum(y[::2] * np.float64(2), np.finfo(np.float32).max)
    bound = 2 if device_capabilities().traits.reciprocal_roots else 2.5
    assert_ulps(apply("libdevice.fast_dividef(a, b)", x, y), [x.astype(np.longdouble) / y], bound, x, y)


def test_quotients_of_special_numbers(quotients: None) -> None:
    special = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan], np.float32)
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        expected = x.astype(np.longdouble) / y
    assert_ulps(apply("libdevice.fast_dividef(a, b)", x, y), [expected], 2.5, x, y)
    one = apply("libdevice.fast_dividef(a, b)", np.ones_like(x), y)
    with np.errstate(all="ignore"):
        assert (np.signbit(one) == np.signbit(1 / y))[~np.isnan(y)].all()


@triton.jit
def shared_divisors_kernel(x_ptr, y_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + places, tl.load(x_ptr + places) / tl.load(y_ptr + rows)[:, None])


def _quotients(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rows by a number each, several of them in a program."""
    out = from_numpy(np.full_like(x, -7))
    shared_divisors_kernel.device_caches.clear()
    shared_divisors_kernel[(len(x) // 16,)](from_numpy(x), from_numpy(y), out, ROWS=16, COLUMNS=x.shape[1])
    return out.to_numpy().ravel()


@pytest.mark.parametrize("kind", ["moderate", "whole", "any", "special"])
def test_quotients_that_share_divisors(quotients: None, kind: str) -> None:
    """With the reciprocal, as good as exact ones; elsewhere as the device's own."""
    rng, rows, columns = np.random.default_rng(8), 512, 128
    x, y = (rng.uniform(1, 2, shape) for shape in ((rows, columns), rows))
    if kind == "whole":  # and so are the quotients
        y = rng.integers(1, 4000, rows).astype(np.float64)
        x = rng.integers(-4000, 4000, x.shape) * y[:, None]
    elif kind == "special":
        # A driver without subnormal numbers may take these for zeros.
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1.0, -1.0, 2.0**60, 2.0**-60, 1.2e-38]
        x, y = rng.choice(special, x.shape), rng.choice(special, rows)
    else:
        most = 40 if kind == "moderate" else 120
        x *= rng.choice([-1, 1], x.shape) * 2.0 ** rng.integers(-most, most, x.shape)
        y *= rng.choice([-1, 1] if kind == "any" else [1], rows) * 2.0 ** rng.integers(-most, most, rows)
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = _quotients(x, y)
    x, y = x.ravel(), np.repeat(y, columns)
    with np.errstate(all="ignore"):
        expected = x.astype(np.longdouble) / y
        ways = [expected, np.where(np.abs(expected) < 2.0**-126, expected * 0, expected)]
    exact = kind in ("moderate", "whole") and device_capabilities().traits.reciprocal_roots
    assert_ulps(found, ways, 0.5001 if exact else 2.5, x, y)
    zero = expected == 0
    assert (np.signbit(found) == np.signbit(expected))[zero].all()


def test_the_tangent_of_it(quotients: None) -> None:
    x = np.random.default_rng(3).uniform(-11, 11, 20000).astype(np.float32)
    x = np.concatenate([x, x * np.float32(0.1), x[:500] * np.float32(2.0**-130), SPECIAL])
    expected = exactly(BOUNDS["tanh"].reference, x)
    assert_ulps(apply("libdevice.fast_tanhf(a)", x), accepted(lambda _: expected, x), 4, x)


def test_libdevices_functions_keep_their_bounds(native: None) -> None:
    x = np.random.default_rng(4).uniform(-80, 80, 999).astype(np.float32)
    assert_ulps(apply("libdevice.exp(a)", x), [exactly(BOUNDS["exp"].reference, x)], BOUNDS["exp"].single, x)


def test_a_value_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, compiled_afresh: None) -> None:
    monkeypatch.setenv("TRITON_SPIRV_NATIVE_MATH", "often")
    with pytest.raises(ValueError, match="native_math='often' must be 0, 1 or auto"):
        apply("tl.exp(a)", SPECIAL)
