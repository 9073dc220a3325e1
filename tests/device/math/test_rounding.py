"""Arithmetic in every rounding mode against exact fractions, and the conversions between numbers."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import driver_quirks
from triton.backends.spirv.lowering.numerics import quotients
from triton.backends.spirv.lowering.numerics.numeric import Numeric

from tests.device.helpers import accepted, assert_one_of, computes_with_subnormals, device_capabilities, same
from tests.device.math import harness
from tests.device.math.harness import apply

FORMATS = {32: (np.float32, np.uint32, 23, 127), 64: (np.float64, np.uint64, 52, 1023)}
MODES = ("rn", "rz", "rd", "ru")
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1, "rcp": 1}


def rounded(value: Fraction, width: int, mode: str, zero_negative: bool = False) -> float:
    """The number of the format that ``value`` rounds to."""
    _, _, mantissa, bias = FORMATS[width]
    if value == 0:
        return -0.0 if zero_negative else 0.0
    negative, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, 1 - bias) - mantissa)
    kept, rest = divmod(size / unit, 1)
    if mode == "rn":
        kept += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and kept & 1)
    else:
        kept += rest > 0 and mode == ("rd" if negative else "ru")
    largest = (2 - Fraction(2) ** -mantissa) * Fraction(2) ** bias
    if kept * unit > largest:
        result = math.inf if mode in ("rn", "rd" if negative else "ru") else float(largest)
    else:
        result = float(kept * unit)
    return -result if negative else result


def expected(name: str, operands: list[float], width: int, mode: str) -> float:
    """The exact result rounded, of finite operands; NaN where the function is not defined."""
    values = [Fraction(x) for x in operands]
    minus = [math.copysign(1, x) < 0 for x in operands]
    if name == "sub":
        return expected("add", [operands[0], -operands[1]], width, mode)
    if name == "add":
        total = sum(values)
        return rounded(total, width, mode, all(minus) or (mode == "rd" and any(minus)))
    if name == "mul":
        return rounded(values[0] * values[1], width, mode, minus[0] != minus[1])
    if name == "fma":
        product_minus = minus[0] != minus[1]
        zero = (product_minus and minus[2]) or (mode == "rd" and (product_minus or minus[2]))
        return rounded(values[0] * values[1] + values[2], width, mode, zero)
    if name in ("div", "rcp"):
        if name == "rcp":
            values, minus = [Fraction(1), *values], [False, *minus]
        negative = minus[0] != minus[1]
        if values[1] == 0:
            return math.nan if values[0] == 0 else -math.inf if negative else math.inf
        return rounded(values[0] / values[1], width, mode, negative)
    if operands[0] < 0:
        return math.nan
    shift = 2400
    scaled = values[0] * Fraction(4) ** shift
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root) if root * root == scaled else root + Fraction(1, 2)
    return rounded(exact / Fraction(2) ** shift, width, mode, minus[0])


def operands(width: int, count: int = 400) -> list[np.ndarray]:
    """Random bits, moderate numbers, near-cancelling sums, and products that are subnormal."""
    real, integer, mantissa, bias = FORMATS[width]
    rng = np.random.default_rng(6)

    def any_bits() -> np.ndarray:
        return rng.integers(0, 1 << width, count, dtype=np.uint64).astype(integer).view(real)

    def moderate() -> np.ndarray:
        return (rng.uniform(1, 2, count) * np.exp2(rng.integers(-8, 8, count)) * rng.choice([-1, 1], count)).astype(
            real
        )

    a, b, c = [any_bits(), moderate(), moderate()], [any_bits(), moderate()], [any_bits(), moderate()]
    short = moderate().astype(np.float16).astype(real)
    b.append(short)
    c.append(-(a[2] * short) * (1 + np.finfo(real).eps * rng.integers(-2, 3, count)).astype(real))
    a.append(moderate() * real(2.0 ** -(bias // 2)))
    b.append(moderate() * real(2.0 ** -(bias // 2 + mantissa // 2)))
    c.append(rng.integers(0, 9, count).astype(integer).view(real))
    special = np.array([0.0, -0.0, 1, -1, np.inf, np.nan, np.finfo(real).max, np.finfo(real).smallest_subnormal], real)
    grid = np.meshgrid(special, special)
    return [
        np.concatenate([*a, grid[0].ravel()]),
        np.concatenate([*b, grid[1].ravel()]),
        np.concatenate([*c, np.roll(grid[0].ravel(), 3)]),
    ]


def check(name: str, width: int, mode: str, expression: str = "libdevice.{}_{}") -> None:
    values = operands(width)[: ARITY[name]]
    actual = apply(f"{expression.format(name, mode)}({', '.join('abc'[: len(values)])})", *values)
    finite = np.all([np.isfinite(x) for x in values], axis=0)
    values, actual = [x[finite] for x in values], actual[finite]

    def reference(*operands: np.ndarray) -> np.ndarray:
        return np.array(
            [expected(name, [float(x) for x in row], width, mode) for row in zip(*operands, strict=True)],
            FORMATS[width][0],
        )

    assert_one_of(actual, accepted(reference, *values), *values)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", ARITY)
def test_every_rounding_mode(name, width, mode):
    check(name, width, mode)


ESTIMATES = {
    "quotient_estimate": lambda a, b: a / b,
    "reciprocal_estimate": lambda n, b: n.real(1.0) / b,
    "root_estimate": lambda x: x.sqrt(),
    "reciprocal_root_estimate": lambda x: x.inverse_sqrt(),
}


def fused_by_sums(n, a, b, c):
    """a b + c rounded once: in f32 by f64, where it is rounded to odd, of which f32 has the nearest; in f64 by parts,
    where what is left after rounding is exact, as remainders are."""
    wide = Numeric(n.emitter, 64)
    wide.fused = False
    a, b, c = (wide.convert(x if hasattr(x, "id") else n.real(x)) for x in (a, b, c))
    if n.width == 64:
        product, error = wide.two_product(a, b)
        total, lost = wide.two_sum(product, c)
        return n.wrap((total + (lost + error)).id)
    total, lost = wide.two_sum(a * b, c)
    bits, down = total.bits(), (lost < 0.0) ^ (total < 0.0)
    neighbour = (bits + wide.where(down, wide.integer(-1, 64), 1)).as_real()
    odd = wide.where(lost.ne(0.0) & (bits & 1).eq(0), neighbour, total)
    return n.convert(odd)


#: Units that the device's estimates are off, whether its Fma rounds once, and whether reciprocals are squares of roots.
WAYS = [(units, fused, False) for fused in (True, False) for units in (-3, 0, 3)]
WAYS += [(units, True, True) for units in (-1, 0, 1)]


@pytest.fixture(params=[None, *WAYS], ids=str)
def inexact(request, monkeypatch, tmp_path):
    """One of WAYS, on a device whose division and roots are not known for exact ones. None: the device as it is."""
    if request.param is None:
        yield
        return
    units, fused, roots = request.param
    if fused and not device_capabilities().traits.fused:
        monkeypatch.setattr(Numeric, "fma", fused_by_sums)
    for name, driver in driver_quirks.DRIVERS.items():
        monkeypatch.setitem(
            driver_quirks.DRIVERS, name, replace(driver, exact_division=False, fused=fused, reciprocal_roots=roots)
        )
    for name, estimate in ESTIMATES.items():
        if roots and name == "reciprocal_estimate":
            continue
        off = lambda *x, estimate=estimate: (estimate(*x).bits() + units).as_real()  # noqa: E731
        monkeypatch.setattr(quotients, name, off)
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        harness._module.cache_clear()
        division_kernel.device_caches.clear()
        yield
    harness._module.cache_clear()
    division_kernel.device_caches.clear()


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", ["div", "sqrt", "rcp"])
def test_rounding_to_nearest_without_the_devices_own(name, width, inexact):
    check(name, width, "rn")


@triton.jit
def division_kernel(a_ptr, b_ptr, out_ptr, n, ROOT: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    a = tl.load(a_ptr + at, mask=at < n)
    if ROOT:
        out = tl.sqrt_rn(a)
    else:
        out = tl.div_rn(a, tl.load(b_ptr + at, mask=at < n))
    tl.store(out_ptr + at, out, mask=at < n)


def divided(a, b=None):
    """a / b, or the roots of a, by tl.div_rn and tl.sqrt_rn."""
    out = torch.empty(a.size)
    tensors = [torch.from_numpy(x) for x in (a, a if b is None else b)]
    division_kernel[(triton.cdiv(a.size, 512),)](*tensors, out, a.size, b is None, 512)
    return out.numpy()


def hard_quotients(step):
    """float32 a and b whose quotient is as near to a number halfway between two others as any: with integers of 24
    bits, a 2^s - m b is k for an odd m of 25 bits, and a small odd k. Of every ``step``th odd b."""
    b = np.arange((1 << 23) + 1, 1 << 24, 2 * step, dtype=np.uint64)
    b = np.concatenate([b, np.arange((1 << 24) - 63, 1 << 24, 2, dtype=np.uint64)])
    inverse = b.copy()
    for _ in range(6):
        inverse = inverse * (np.uint64(2) - b * inverse)  # modulo 2^64
    pairs = []
    for s, k in itertools.product((24, 25), (1, -1, 3, -3)):
        k = np.uint64(k % (1 << 64))
        m = (~k + np.uint64(1)) * inverse % np.uint64(1 << s) | np.uint64((s == 24) << 24)
        a = (m * b + k) >> np.uint64(s)
        fits = (m >= 1 << 24) & (a >= 1 << 23) & (a < 1 << 24) & (m * b + k == a << np.uint64(s))
        pairs.append((a[fits], b[fits]))
    a, b = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return a.astype(np.float32), b.astype(np.float32)


def test_quotients_next_to_halfway(inexact):
    a, b = hard_quotients(8)
    assert a.size > 1 << 20
    wanted = (a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)  # 53 bits are more than 2 × 24 + 1
    np.testing.assert_array_equal(divided(a, b), wanted)


def test_quotients_of_rare_and_other_operands_beside_each_other(inexact):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 1 << 32, 1 << 16, np.uint64).astype(np.uint32).view(np.float32) for _ in range(2))
    a[::7], b[::5] = 1.5, 0.75
    with np.errstate(all="ignore"):
        assert_one_of(divided(a, b), accepted(np.divide, a, b), a, b)


def test_every_root(inexact):
    x = np.arange(0x3F800000, 0x40800000, dtype=np.uint32).view(np.float32)  # from 1 to 4
    np.testing.assert_array_equal(divided(x), np.sqrt(x))


def test_the_languages_own_precise_functions():
    for name, expression in (("div", "tl.div_rn"), ("sqrt", "tl.sqrt_rn"), ("fma", "tl.fma")):
        check(name, 32, "rn", expression)


def test_fma_of_narrow_formats_rounds_once():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 4000)).astype(np.float16)
    c = (-(a.astype(np.float64) * b) * (1 + rng.integers(-2, 3, 4000) * 2.0**-11)).astype(np.float16)
    c[::2] = rng.standard_normal(2000).astype(np.float16) * np.float16(2.0**-9)
    wanted = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(apply("tl.fma(a, b, c)", a, b, c), wanted)


def test_an_infinite_addend_of_a_product_past_the_largest():
    a = np.array([2e30, -2e30, 3e38, 2e30], np.float32)
    b = np.array([2e30, 2e30, 3e38, 2e30], np.float32)
    c = np.array([-np.inf, np.inf, np.inf, np.nan], np.float32)
    for mode in MODES:
        np.testing.assert_array_equal(apply(f"libdevice.fma_{mode}(a, b, c)", a, b, c), c)


def test_fma_of_bfloat16_where_products_over_or_underflow():
    bfloat = ml_dtypes.bfloat16
    small, big = float(ml_dtypes.finfo(bfloat).smallest_subnormal), 2.0**127
    rows = [
        (big, 1.9921875, -big, 0.9921875 * big),
        (big, 2.0, -1.9921875 * big, 2.0**120),
        (-big, 2.0, 1.9921875 * big, -(2.0**120)),
        (big, 2.0, 1.0, np.inf),
        (big, 4.0, -np.inf, -np.inf),
        (-small, small, 0.0, -0.0),
        (-small, small, -0.0, -0.0),
        (small, 0.0, -0.0, 0.0),
        (small, 0.5, 0.0, 0.0),  # half the least number: a tie
        (small, 0.50390625, 0.0, small),
        (2.0**-70, 2.0**-64, 0.0, 0.0),
        (2.0**-70, (1 + 2.0**-7) * 2.0**-64, 0.0, small),  # beyond a tie by less than a subnormal f32
        (2.0**-126, 2.0**-100, 1.0, 1.0),
    ]
    a, b, c, wanted = np.array(rows, np.float64).T.astype(bfloat)
    got = apply("tl.fma(a, b, c)", a, b, c)
    keeps = np.abs(wanted.astype(np.float64)) > small if not computes_with_subnormals() else np.ones(len(rows), bool)
    assert same(got, wanted)[keeps].all(), list(zip(got, wanted, strict=True))


INTEGERS = {
    "int": (32, True, np.int32),
    "uint": (32, False, np.uint32),
    "ll": (64, True, np.int64),
    "ull": (64, False, np.uint64),
}
TO_INTEGER = {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize(("source", "width"), [("float", 32), ("double", 64)])
def test_to_integer(source, width, target, mode):
    bits, signed, dtype = INTEGERS[target]
    real = FORMATS[width][0]
    x = operands(width)[1]
    with np.errstate(all="ignore"):
        x = np.concatenate(
            [
                x,
                x * real(2.0**28),
                x * real(2.0**58),
                np.arange(-5, 5, 0.5).astype(real),
                np.array([np.inf, -np.inf, np.nan], real),
            ]
        )
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    actual = apply(f"libdevice.{source}2{target}_{mode}(a)", x, dtype=np.int32 if bits == 32 else np.int64).view(dtype)

    def reference(values: np.ndarray) -> np.ndarray:
        ends = {math.inf: high, -math.inf: low}
        return np.array(
            [
                min(max(TO_INTEGER[mode](Fraction(float(value))), low), high)
                if math.isfinite(value)
                else ends.get(float(value), 0)
                for value in values
            ],
            dtype,
        )

    assert_one_of(actual, accepted(reference, x, result=dtype), x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize(("target", "width"), [("float", 32), ("double", 64)])
def test_from_integer(source, target, width, mode):
    bits, _, dtype = INTEGERS[source]
    if width == 64 and bits == 32:
        mode = "rn"  # exact: the only form
    rng = np.random.default_rng(8)
    x = rng.integers(0, 1 << bits, 500, dtype=np.uint64) >> rng.integers(0, bits, 500).astype(np.uint64)
    x = np.concatenate([x, np.array([0, 1, (1 << bits) - 1, 1 << (bits - 1)], np.uint64)])
    x = x.astype(np.uint32 if bits == 32 else np.uint64).view(dtype)
    actual = apply(f"libdevice.{source}2{target}_{mode}(a)", x, dtype=FORMATS[width][0])
    for value, result in zip(x, actual, strict=True):
        assert float(result) == rounded(Fraction(int(value)), width, mode), (value, result)


@pytest.mark.parametrize("mode", MODES)
def test_double_to_single(mode):
    x = operands(64)[1]
    x = np.concatenate([x, x * 2.0**-135])

    def reference(values: np.ndarray) -> np.ndarray:
        return np.array(
            [
                rounded(Fraction(float(value)), 32, mode, math.copysign(1, value) < 0)
                if math.isfinite(value)
                else value
                for value in values
            ],
            np.float32,
        )

    actual = apply(f"libdevice.double2float_{mode}(a)", x, dtype=np.float32)
    assert_one_of(actual, accepted(reference, x, result=np.float32), x)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_are_exact(name, width):
    x, y = operands(width)[:2]
    actual = apply(f"libdevice.{name}(a, b)", x, y)
    reference = math.fmod if name == "fmod" else math.remainder

    def rests(*operands: np.ndarray) -> np.ndarray:
        return np.array(
            [
                reference(float(a), float(b)) if math.isfinite(a) and not math.isnan(b) and b != 0 else math.nan
                for a, b in zip(*operands, strict=True)
            ],
            x.dtype,
        )

    assert_one_of(actual, accepted(rests, x, y), x, y)


@pytest.mark.parametrize("width", [32, 64])
def test_remainders_of_the_smallest_numbers_need_no_arithmetic_on_them(width):
    """Exact on every device, whatever it takes subnormal numbers for: the divisors are below four times the smallest
    normal number."""
    dtype, word, mantissa, _ = FORMATS[width]
    rng = np.random.default_rng(width)
    y = rng.integers(1, 4 << mantissa, 3000).astype(word).view(dtype)
    y[:200] = np.arange(1, 201, dtype=word).view(dtype)
    x = (y.astype(np.longdouble) * rng.integers(-9, 10, y.size) / 2).astype(dtype)
    x[::3] = rng.integers(1, 8 << mantissa, x[::3].size).astype(word).view(dtype)
    expected = np.array([math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], dtype)
    assert_one_of(apply("libdevice.remainder(a, b)", x, y), [expected], x, y)


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("constant", [0, 5, -3, 1 << 31, -(1 << 31), 1 << 40, -(1 << 40)])
def test_a_sign_extended_number_against_a_constant(comparison, constant):
    """Mesa 22.3 gets the 64-bit comparison wrong; ours is made in 32 bits."""
    x = np.array([-1, -5, -100000001, 7, 0, 5, -3, (1 << 31) - 1, -(1 << 31)], np.int32)
    for text in (
        f"a.to(tl.int64) {comparison} tl.full((128,), {constant}, tl.int64)",
        f"tl.full((128,), {constant}, tl.int64) {comparison} a.to(tl.int64)",
    ):
        wanted = eval(
            text.replace("a.to(tl.int64)", "x.astype(np.int64)").replace(
                f"tl.full((128,), {constant}, tl.int64)", f"np.int64({constant})"
            )
        )
        np.testing.assert_array_equal(apply(f"({text}).to(tl.int32)", x), wanted.astype(np.int32), text)
