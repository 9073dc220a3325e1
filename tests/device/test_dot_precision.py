"""tl.dot of f32 with ``input_precision``, as products of bf16 where a device has them, against NumPy in float64: error
bounds, compared with tf32's own, and the numbers at both ends of the range."""

import numpy as np
import pytest
import triton.language as tl
from triton.backends.spirv.analysis.split_products import SPLITS

from tests.device.helpers import Guarded, device_capabilities, may_be_flushed, to_torch
from tests.device.test_dot import dot_kernel, operands
from tests.device.test_dot_fragments import has_fragments, multiplies, nvidias

FLT_MAX = float(np.finfo(np.float32).max)


def product(
    a: np.ndarray,
    b: np.ndarray,
    precision: str,
    c: np.ndarray | None = None,
    warps: int = 1,
    without: tuple[str, ...] = (),
) -> np.ndarray:
    """a × b + c, on the device's matrix units where they multiply bf16."""
    (m, k), n = a.shape, b.shape[1]
    result = Guarded((m, n), "float32")
    start = np.zeros((m, n), np.float32) if c is None else c
    kernel = dot_kernel[(1,)](
        *(to_torch(a), to_torch(b), to_torch(start), result.tensor, m, n, k, False, False, tl.float32, precision),
        c is not None,
        num_warps=warps,
        matrix_units="1",
        without=without,
    )
    long = k >= 16 or nvidias()  # whose lanes hold few steps of a sum
    assert has_fragments(kernel) == (multiplies("bfloat16") and long and precision != "ieee")
    return result.values()


def tf32(values: np.ndarray) -> np.ndarray:
    """Rounded to nearest, ties to even, to tf32's 11 bits."""
    bits = values.view(np.uint32).astype(np.uint64)
    bits = bits + 0xFFF + (bits >> 13 & 1) & ~np.uint64(0x1FFF)
    return bits.astype(np.uint32).view(np.float32)


def rounds_to_tf32(precision: str) -> bool:
    """Whether products have operands that are rounded to tf32, and are exact then."""
    traits = device_capabilities().traits
    return precision == "tf32" and multiplies("bfloat16") and multiplies("float16") and traits.multiplies_halves


def errors(values: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray | float = 0.0) -> np.ndarray:
    """Of each element, as a part of the sum of |a| × |b|."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.abs(values - (a @ b + c)) / (np.abs(a) @ np.abs(b) + np.abs(c))


@pytest.mark.parametrize(
    "precision, shape, warps",
    [
        *((precision, (16, 8, 16), 1) for precision in SPLITS),
        *((precision, shape, 1) for precision in ("tf32", "bf16x6") for shape in ((2, 4, 32), (16, 16, 8))),
        ("tf32", (32, 8, 16), 2),
    ],
)
def test_error_bounds(precision: str, shape: tuple[int, int, int], warps: int) -> None:
    m, n, k = shape
    a, b = operands("float32", (m, k), (k, n))
    (c,) = operands("float32", (m, n), seed=1)
    bits = a[::2].view(np.uint32)
    bits[:] = bits & 0xFFFF0000 | 0x7FFF  # as much as can be left after the first part
    values = product(a, b, precision, c, warps)
    split = SPLITS[precision]
    roundings = (len(split.terms) * k + 2) * 2.0**-24  # one for each addition in f32
    if rounds_to_tf32(precision):
        assert errors(values, tf32(a), tf32(b), c.astype(np.float64)).max() <= roundings
    else:
        assert errors(values, a, b, c.astype(np.float64)).max() <= split.error + roundings < 2.0**-10


def test_products_of_float16_can_be_left_out_alone() -> None:
    """The rewrite is an item of its own: what is left are the products of bfloat16, whose error is another one."""
    a, b = operands("float32", (16, 16), (16, 8))
    values = product(a, b, "tf32", without=("multiply tf32 as f16",))
    assert errors(values, a, b).max() <= SPLITS["tf32"].error + 34 * 2.0**-24
    assert (values != product(a, b, "tf32")).any() == rounds_to_tf32("tf32")


@pytest.mark.parametrize("precision", SPLITS)
@pytest.mark.parametrize("scale", (1.0, 2.0**-60, 2.0**60))
def test_the_error_of_tf32_is_never_passed(precision: str, scale: float) -> None:
    a, b = operands("float32", (16, 16), (16, 8))
    a = (a * np.float32(scale)).astype(np.float32)
    values = product(a, b, precision)
    rounded = errors(tf32(a).astype(np.float64) @ tf32(b).astype(np.float64), a, b)
    if rounds_to_tf32(precision):
        assert errors(values, tf32(a), tf32(b)).max() <= 32 * 2.0**-24
    else:
        assert errors(values, a, b).max() < rounded.max() / 8


@pytest.mark.parametrize("precision", [*SPLITS, "ieee"])
def test_numbers_that_tf32_holds_exactly(precision: str) -> None:
    """CUDA's products of these are exact. "tf32" leaves out that of their low parts where no float16 matrices do them;
    others have all products."""
    random = np.random.default_rng(6)
    a, b = np.zeros((16, 16), np.float32), np.zeros((16, 8), np.float32)
    for row in range(16):  # four products of 11 by 11 bits are a sum that float32 holds
        at = random.permutation(16)[:4]
        a[row, at] = random.integers(1024, 2048, 4) * random.choice([-1, 1], 4)
    b[:] = random.integers(1024, 2048, b.shape) * random.choice([-1, 1], b.shape)
    assert (tf32(a) == a).all() and (tf32(b) == b).all()
    values = product(a, b, precision)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    whole = precision in ("tf32x3", "bf16x6", "ieee") or rounds_to_tf32(precision)
    if whole or not multiplies("bfloat16"):
        assert (values == exact).all()
    else:
        assert errors(values, a, b).max() <= 2.0**-16 + 14 * 2.0**-24
        assert errors(values, a, b).max() > 2.0**-22, "the page says that it is not exact"


def test_three_parts_are_the_number() -> None:
    """The products of one number with powers of two are exact."""
    a, _ = operands("float32", (16, 16), (1, 1))
    identity = np.diag(2.0 ** np.arange(-8, 8)).astype(np.float32)
    values = product(a, identity, "bf16x6")
    assert (values == a @ identity).all()


@pytest.mark.parametrize("precision", ("tf32", "bf16x6"))
def test_infinities_and_nan(precision: str) -> None:
    """One product in each sum, of every two of these, and sums with finite numbers."""
    some = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1000.3, 3e-5], np.float32)
    low = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)  # NaN in the lowest bit alone, and in all
    some = np.concatenate([some, low, np.float32([FLT_MAX, -FLT_MAX, 1.7e38, 1e-30, 7.0, -3.0])])
    a, b = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    a[:, 3], b[3, :] = some, some
    a[:, 5], b[5, :] = 0.37, -1.1
    values = product(a, b, precision)
    with np.errstate(all="ignore"):
        wanted = np.float32(some[:, None]) * some[None, :] + np.float32(0.37) * np.float32(-1.1)
        far = np.abs(some[:, None].astype(np.float64) * some[None, :]) > FLT_MAX
    far &= np.isfinite(some[:, None]) & np.isfinite(some[None, :])  # past the range: an infinity or NaN
    assert not np.isfinite(values[far]).any()
    values, wanted = values[~far], wanted[~far]
    assert (np.isnan(values) == np.isnan(wanted)).all()
    assert (values[np.isinf(wanted)] == wanted[np.isinf(wanted)]).all()
    finite = np.isfinite(wanted)
    rounding = 2.0**-10 if rounds_to_tf32(precision) else 2.0**-12
    assert np.allclose(values[finite], wanted[finite], rtol=rounding, atol=1e-6 if rounding < 2.0**-10 else 1e-3)


@pytest.mark.parametrize("precision", ("tf32", "bf16x6"))
def test_the_largest_and_the_smallest(precision: str) -> None:
    """FLT_MAX stays finite; subnormal numbers lose at most what a device loses that takes them for zero."""
    a = np.zeros((16, 16), np.float32)
    a[np.arange(16), np.arange(16)] = [
        *(FLT_MAX, -FLT_MAX, 3.396e38, 2.0**127 * 1.99, 2.0**-126, -(2.0**-130) * 1.7, 1e-45, 2.0**-120 * 1.37),
        *(1e-44, 2.0**-149, -(2.0**-126) * 1.999, 2.0**-110 * 1.1, 65505.0, 1e-8, 2.0**127, -3.4e38),
    ]
    b = np.full((16, 16), 0.75, np.float32)
    values = product(a, b, precision)
    wanted = np.diag(a).astype(np.float64) * 0.75
    rounding = 2.0**-10 if rounds_to_tf32(precision) else 2.0**-12 if precision == "tf32" else 2.0**-22
    bound = np.abs(wanted) * rounding + 2.0**-125
    assert (np.abs(values - wanted[:, None]) <= bound[:, None]).all()


@pytest.mark.parametrize("precision", ("tf32", "tf32x3", "bf16x6"))
def test_products_of_subnormal_numbers_and_large_ones(precision: str) -> None:
    """The numbers are off by half of bf16's smallest one at most, as docs/internals/matrix-units.md says."""
    a = np.zeros((16, 16), np.float32)
    small = np.float32(2.0) ** np.arange(-140, -108, 2, dtype=np.float32)
    a[np.arange(16), np.arange(16)] = small * np.linspace(1.01, 1.99, 16, dtype=np.float32)
    a[0, 0] = 1e-40
    b = np.full((16, 16), 3.4e38, np.float32)
    values = product(a, b, precision)
    exact = np.diag(a).astype(np.float64) * np.float64(b[0, 0])
    off = 2.0**-126 if may_be_flushed(a.dtype) else 2.0**-134
    bound = np.abs(exact) * SPLITS[precision].error * 4 + off * np.float64(b[0, 0])
    assert (np.abs(values - exact[:, None]) <= bound[:, None]).all()


def test_without_bf16_matrices_it_is_computed_in_full() -> None:
    """f16 products are no substitute: their range is too small."""
    a, b = operands("float32", (16, 16), (16, 16))
    full = errors(product(a, b, "tf32"), a, b).max() < 20 * 2.0**-24
    assert full or multiplies("bfloat16")


def test_ieee_is_never_split() -> None:
    a, b = operands("float32", (16, 16), (16, 16))
    values = product(a, b, "ieee")
    assert errors(values, a, b).max() < 20 * 2.0**-24
