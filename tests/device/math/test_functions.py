"""The transcendental functions against mpmath, in ULP, and at the values where they are special."""

import math
import zlib

import ml_dtypes
import numpy as np
import pytest

from tests.device.helpers import accepted, assert_one_of
from tests.device.math.bounds import ABSOLUTE, BINARY, BOUNDS
from tests.device.math.harness import apply, assert_ulps, device_bound, exactly

FORMATS = {32: np.float32, 64: np.float64}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 1e30, -1e30, 1.5, 2.5, -2.5])

#: Functions that tl itself has.
IN_LANGUAGE = ("exp", "exp2", "log", "log2", "sin", "cos", "erf", "sqrt", "rsqrt")


def samples(name: str, draw, width: int, count: int = 600) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return draw(rng, count, width).astype(FORMATS[width])


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", BOUNDS)
def test_error_bound(name, width):
    bound = BOUNDS[name]
    x = samples(name, bound.samples, width)
    module = "tl" if name in IN_LANGUAGE else "libdevice"
    assert_ulps(
        apply(f"{module}.{name}(a)", x),
        accepted(lambda a: exactly(bound.reference, a), x),
        device_bound(name, width),
        x,
    )


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "sin", "cos"])
def test_error_bound_on_a_dense_sample(name, width):
    """The ordinary range, against NumPy in long double."""
    reference = getattr(np, name)
    low, high = {"exp": (-80, 80), "exp2": (-100, 100), "log": (1e-6, 100), "log2": (1e-6, 100)}.get(
        name, (-3200, 3200)
    )
    x = np.random.default_rng(1).uniform(low, high, 1 << 18).astype(FORMATS[width])
    assert_ulps(apply(f"tl.{name}(a)", x), [reference(x.astype(np.longdouble))], device_bound(name, width), x)


def test_erf_of_f32_on_a_dense_sample():
    """Both sides of where its form changes, against C's in float64."""
    x = np.random.default_rng(2).uniform(-4.2, 4.2, 1 << 18).astype(np.float32)
    assert_ulps(apply("tl.erf(a)", x), [np.array([math.erf(a) for a in x])], device_bound("erf", 32), x)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", ABSOLUTE)
def test_bessel_functions(name, width):
    reference, single, double, draw = ABSOLUTE[name]
    x = samples(name, draw, width, 300)
    error = np.abs(apply(f"libdevice.{name}(a)", x) - exactly(reference, x))
    assert error.max() <= (single if width == 32 else double), x[error.argmax()]


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name, width):
    reference, single, double, first, second = BINARY[name]
    x, y = samples(name, first, width), samples(name + "2", second, width)
    assert_ulps(
        apply(f"libdevice.{name}(a, b)", x, y),
        accepted(lambda a, b: exactly(reference, a, b), x, y),
        single if width == 32 else double,
        x,
        y,
    )


@pytest.mark.parametrize("kind", ["jn", "yn"])
def test_bessel_functions_of_integer_order(kind):
    import mpmath

    rng = np.random.default_rng(2)
    order, x = rng.integers(-8, 20, 300).astype(np.int32), rng.uniform(0.5, 40, 300)
    function = mpmath.besselj if kind == "jn" else mpmath.bessely
    expected = exactly(lambda n, y: function(int(n), y), order, x)
    actual = apply(f"libdevice.{kind}(a, b)", order, x, dtype=np.float64)
    error = np.abs(actual - expected) / np.maximum(np.abs(expected), 0.1)
    assert error.max() < 1e-12, (order[error.argmax()], x[error.argmax()])


def same_value(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    """Equal, signs of zero included, both NaN, or finite and close."""
    with np.errstate(all="ignore"):
        equal = (actual == expected) & (np.signbit(actual) == np.signbit(expected))
        close = np.isfinite(actual) & (expected != 0) & (np.abs(actual - expected) <= tolerance * np.abs(expected))
    return (np.isnan(actual) & np.isnan(expected)) | equal | close


UNARY_SPECIAL = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "sqrt": np.sqrt,
    "rint": np.rint,
    "trunc": np.trunc,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.copysign(np.trunc(np.abs(x) + 0.5), x),
    "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", UNARY_SPECIAL)
def test_special_values(name, width):
    x = SPECIAL.astype(FORMATS[width])
    with np.errstate(all="ignore"):
        expected = UNARY_SPECIAL[name](x.astype(np.float64)).astype(x.dtype)
    actual = apply(f"libdevice.{name}(a)", x)
    wrong = ~same_value(actual, expected, 1e-6 if width == 32 else 1e-14)
    assert not wrong.any(), list(zip(x[wrong], actual[wrong], expected[wrong], strict=True))


BINARY_SPECIAL = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "pow": np.power,
    "copysign": np.copysign,
    "fdim": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a > b, a - b, 0.0)),
    "remainder": np.vectorize(
        lambda a, b: math.remainder(a, b) if math.isfinite(a) and b and not math.isnan(b) else math.nan
    ),
}


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", BINARY_SPECIAL)
def test_special_pairs(name, width):
    x, y = (part.ravel().astype(FORMATS[width]) for part in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = BINARY_SPECIAL[name](x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    actual = apply(f"libdevice.{name}(a, b)", x, y)
    wrong = ~same_value(actual, expected, 1e-6 if width == 32 else 1e-14)
    assert not wrong.any(), list(zip(x[wrong], y[wrong], actual[wrong], expected[wrong], strict=True))


@pytest.mark.parametrize("width", [32, 64])
def test_neighbours_and_exponents(width):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(500) * np.exp2(rng.integers(-100, 100, 500))).astype(FORMATS[width])
    x[:8] = [0.0, -0.0, 1, -1, np.finfo(x.dtype).max, np.finfo(x.dtype).smallest_subnormal, np.inf, 2]
    y = np.roll(x, 1)
    assert_one_of(apply("libdevice.nextafter(a, b)", x, y), accepted(np.nextafter, x, y))
    finite = x[np.isfinite(x) & (x != 0)]
    np.testing.assert_array_equal(apply("libdevice.ilogb(a)", finite, dtype=np.int32), np.frexp(finite)[1] - 1)
    np.testing.assert_array_equal(apply("libdevice.logb(a)", finite), np.frexp(finite)[1] - 1)
    scale = rng.integers(-300, 300, 500).astype(np.int32)
    with np.errstate(all="ignore"):
        expected = accepted(lambda a, b: np.ldexp(a.astype(np.longdouble), b).astype(a.dtype), x, scale)
        assert_one_of(apply("libdevice.ldexp(a, b)", x, scale), expected)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(("name", "count"), [("norm3d", 3), ("norm4d", 4), ("rnorm3d", 3), ("rnorm4d", 4)])
def test_norms(name, count, width):
    rng = np.random.default_rng(4)
    scale = np.exp2(rng.integers(-120, 120, 400)) if width == 32 else np.exp2(rng.integers(-1000, 1000, 400))
    values = [(rng.standard_normal(400) * scale).astype(FORMATS[width]) for _ in range(count)]
    norm = np.sqrt(sum(value.astype(np.longdouble) ** 2 for value in values))
    actual = apply(f"libdevice.{name}({', '.join('abcd'[:count])})", *values)
    assert_ulps(actual, [1 / norm if name[0] == "r" else norm], 2, *values)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_formats_are_computed_in_single(name, dtype):
    """Every finite value of the format, through f32: one rounding of a result good to 2 ULP of f32."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    narrow = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    with np.errstate(all="ignore"):
        references = accepted(lambda x: UNARY_SPECIAL[name](x.astype(np.float64)), codes.view(narrow))
    value = f"a.to(tl.{dtype}, bitcast=True).to(tl.float32)"
    module = "libdevice" if name == "tanh" else "tl"
    actual = apply(f"{module}.{name}({value}).to(tl.{dtype}).to(tl.uint16, bitcast=True)", codes)
    number = actual.view(narrow).astype(np.float64)
    unit = 2.0 ** -(10 if dtype == "float16" else 7)
    tiny = float(ml_dtypes.finfo(narrow).smallest_subnormal)
    fine = np.zeros(codes.shape, bool)
    for expected in references:
        with np.errstate(all="ignore"):
            close = np.abs(number - expected) <= 0.505 * np.abs(expected) * unit + 0.51 * tiny
            rounded = expected.astype(narrow).astype(np.float64)
        fine |= close | (np.isnan(number) & np.isnan(expected)) | (number == rounded)
    assert fine.all(), (codes.view(narrow)[~fine][:4], number[~fine][:4], [e[~fine][:4] for e in references])


def test_the_same_in_a_loop_over_registers():
    """More registers than are unrolled: 32 a lane."""
    x = np.random.default_rng(5).uniform(-50, 50, 3000).astype(np.float32)
    for expression in ("tl.sin(a)", "tl.erf(a)", "libdevice.pow(tl.abs(a), a)"):
        np.testing.assert_array_equal(apply(expression, x, block=1024), apply(expression, x, block=32))
