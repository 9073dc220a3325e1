"""triton.language.extra.cuda, as code that was written for CUDA imports it."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.lowering.errors import UnsupportedOperation
from triton.language.extra import cuda
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait, globaltimer, smid
from triton.language.extra.cuda.libdevice import pow as cuda_pow

from tests.device.helpers import accepted, device_capabilities
from tests.device.math.bounds import ABSOLUTE, BINARY, BOUNDS
from tests.device.math.harness import apply, assert_ulps, exactly

COUNT = 96
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("name", BOUNDS)
def test_functions_of_one_argument(name: str) -> None:
    bound = BOUNDS[name]
    x = bound.samples(np.random.default_rng(5), COUNT, 32).astype(np.float32)
    looser = 4.5 if name == "sqrt" and not device_capabilities().traits.exact_division else 0
    expected = accepted(lambda a: exactly(bound.reference, a), x)
    assert_ulps(apply(f"nv.{name}(a)", x), expected, bound.single + looser, x)


@pytest.mark.parametrize("name", ABSOLUTE)
def test_bessel_functions(name: str) -> None:
    reference, _, double, draw = ABSOLUTE[name]
    x = draw(np.random.default_rng(5), COUNT, 64)
    assert np.abs(apply(f"nv.{name}(a)", x) - exactly(reference, x)).max() <= double


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name: str) -> None:
    reference, _, double, first, second = BINARY[name]
    rng = np.random.default_rng(5)
    x, y = first(rng, COUNT, 64), second(rng, COUNT, 64)
    assert_ulps(apply(f"nv.{name}(a, b)", x, y), accepted(lambda a, b: exactly(reference, a, b), x, y), double, x, y)


WORDS = RNG.integers(-(2**31), 2**31, COUNT).astype(np.int32)
LONGS = RNG.integers(-(2**63), 2**63 - 1, COUNT)
SINGLES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 3.7, -1e9, 7e9] * 8, np.float32)
DOUBLES = SINGLES.astype(np.float64) * 1.25
FINITE = np.where(np.isfinite(SINGLES), SINGLES, np.float32(1))


def _each(function: Callable[..., Any], dtype: Any) -> Callable[..., np.ndarray]:
    return lambda *operands: np.array([function(*map(int, row)) for row in zip(*operands, strict=True)], dtype)


#: Expression, operands, reference: functions whose results are exact.
EXACT: list[tuple[str, tuple[np.ndarray, ...], Callable[..., np.ndarray]]] = [
    ("nv.clz(a)", (WORDS,), _each(lambda x: 32 - (x & 0xFFFFFFFF).bit_length(), np.int32)),
    ("nv.clz(a)", (LONGS,), _each(lambda x: 64 - (x & (2**64 - 1)).bit_length(), np.int32)),
    ("nv.popc(a)", (WORDS,), _each(lambda x: (x & 0xFFFFFFFF).bit_count(), np.int32)),
    ("nv.ffs(a)", (LONGS,), _each(lambda x: (x & -x).bit_length(), np.int32)),
    ("nv.mulhi(a, b)", (WORDS, WORDS[::-1]), _each(lambda x, y: x * y >> 32, np.int32)),
    ("nv.mulhi(a, b)", (LONGS, LONGS[::-1]), _each(lambda x, y: x * y >> 64, np.int64)),
    ("nv.mulhi(a, b)", (WORDS.view(np.uint32), WORDS[::-1].view(np.uint32)), _each(lambda x, y: x * y >> 32, "u4")),
    ("nv.hadd(a, b)", (WORDS, WORDS[::-1]), _each(lambda x, y: x + y >> 1, np.int32)),
    ("nv.abs(a)", (LONGS,), np.abs),
    ("nv.abs(a)", (SINGLES,), np.abs),
    ("nv.isnan(a)", (SINGLES,), np.isnan),
    ("nv.isinf(a)", (DOUBLES,), np.isinf),
    ("nv.finitef(a)", (SINGLES,), np.isfinite),
    ("nv.isfinited(a)", (DOUBLES,), np.isfinite),
    ("nv.signbit(a) != 0", (DOUBLES,), np.signbit),
    ("nv.rint(a)", (SINGLES,), np.rint),
    ("nv.trunc(a)", (DOUBLES,), np.trunc),
    ("nv.llrint(a)", (FINITE,), lambda x: np.rint(x.astype(np.float64)).astype(np.int64)),
    ("nv.float2int_rz(a)", (np.clip(FINITE, -1e6, 1e6),), lambda x: np.trunc(x).astype(np.int32)),
    ("nv.int2float_rn(a)", (WORDS,), lambda x: x.astype(np.float32)),
    ("nv.double2float_rn(a)", (DOUBLES,), lambda x: x.astype(np.float32)),
    ("nv.float_as_int(a)", (SINGLES,), lambda x: x.view(np.int32)),
    ("nv.uint_as_float(a)", (FINITE.view(np.uint32),), lambda x: x.view(np.float32)),
    ("nv.add_rn(a, b)", (SINGLES, FINITE[::-1]), np.add),
    ("nv.mul_rn(a, b)", (DOUBLES, DOUBLES[::-1]), np.multiply),
    ("nv.fdim(a, b)", (FINITE, FINITE[::-1]), lambda x, y: np.maximum(x - y, 0)),
    ("nv.copysign(a, b)", (SINGLES, FINITE[::-1]), np.copysign),
    ("nv.nextafter(a, b)", (FINITE, FINITE[::-1]), np.nextafter),
    ("nv.fmod(a, b)", (FINITE, np.abs(FINITE[::-1]) + 1), np.fmod),
    ("nv.ldexp(a, b)", (FINITE, WORDS % 20), np.ldexp),
    ("nv.saturatef(a)", (SINGLES,), lambda x: np.nan_to_num(np.clip(x, 0, 1))),
]


@pytest.mark.parametrize(("expression", "operands", "reference"), EXACT, ids=[entry[0] for entry in EXACT])
def test_exact_functions(expression: str, operands: tuple[np.ndarray, ...], reference: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        expected = reference(*operands)
    np.testing.assert_array_equal(apply(expression, *operands, dtype=expected.dtype), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_integer_powers(dtype: Any) -> None:
    x = (RNG.uniform(0.2, 3, COUNT) * RNG.choice([-1, 1], COUNT)).astype(dtype)
    n = RNG.integers(-12, 13, COUNT).astype(np.int32)
    expected = exactly(lambda a, b: mpmath.power(a, int(b)), x, n)
    assert_ulps(apply("nv.pow(a, b)", x, n), [expected], 1.5, x, n)


@triton.jit
def by_name(x, out):
    at = tl.arange(0, 64)
    value = tl.load(x + at)
    tl.store(out + at, cuda_pow(value, 2.0))


def test_functions_that_are_imported_by_name() -> None:
    x, out = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    by_name[(1,)](x, out)
    np.testing.assert_array_equal(out.numpy(), x.numpy() ** 2)


@triton.jit
def sizes(out, BLOCK: tl.constexpr):
    threads: tl.constexpr = tl.extra.cuda.num_threads()
    tl.store(out + tl.arange(0, threads), tl.full((threads,), cuda.num_warps(), tl.int32))


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_num_threads_is_that_of_the_device(warps: int) -> None:
    threads = warps * device_capabilities().subgroup_size
    out = torch.zeros(threads + 8, dtype=torch.int32)
    sizes[(1,)](out, BLOCK=1, num_warps=warps)
    assert out.tolist() == [warps] * threads + [0] * 8


@triton.jit
def clocks(x, out):
    start = globaltimer()
    at = tl.arange(0, 1024)
    value = tl.load(x + at)
    for _ in range(200):
        value = value * 1.01 + 0.5
    tl.store(x + at, value)
    tl.debug_barrier()
    tl.store(out, start)
    tl.store(out + 1, tl.extra.cuda.globaltimer())


def test_the_clock_goes_on() -> None:
    x, out = torch.ones(1024), torch.zeros(2, dtype=torch.int64)
    if device_capabilities().has("device_clock"):
        clocks[(1,)](x, out)
        first, second = out.tolist()
        clocks[(1,)](x, out)
        assert 0 < first < second < out.tolist()[0]
    else:
        with pytest.raises(UnsupportedOperation, match=r"shaderDeviceClock.*do_bench"):
            clocks[(1,)](x, out)


@triton.jit
def multiprocessor(out):
    tl.store(out + tl.program_id(0), smid())


def test_multiprocessor() -> None:
    out = torch.full((64,), -1, dtype=torch.int32)
    if device_capabilities().has("multiprocessor_built_ins"):
        multiprocessor[(64,)](out)
        assert out.min() >= 0
    else:
        with pytest.raises(UnsupportedOperation, match=r"VK_NV_shader_sm_builtins.*tl.program_id"):
            multiprocessor[(64,)](out)


@triton.jit
def dependent(x, out):
    gdc_wait()
    tl.store(out + tl.arange(0, 64), tl.load(x + tl.arange(0, 64)) + 1)
    gdc_launch_dependents()


def test_dependent_launches_run_one_after_the_other() -> None:
    x = torch.zeros(64)
    for _ in range(20):
        dependent[(1,)](x, x, launch_pdl=True)
    assert x.tolist() == [20.0] * 64
