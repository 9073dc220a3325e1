"""float16 on devices that cannot compute with it: kernels are compiled here as for such a device."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.matrices import component_features

FEATURES = frozenset({"float16", "round_to_nearest_even16"})


def without_halves(capabilities: Capabilities) -> Capabilities:
    """Those of such a device. Where float16 is left out, matrices of it are left out, too (runtime/measuring)."""
    features = capabilities.features - FEATURES
    matrices = tuple(one for one in capabilities.matrices if component_features(one.types) <= features)
    return replace(capabilities, features=features, matrices=matrices)


@pytest.fixture(autouse=True)
def without_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = Capabilities.parse
    monkeypatch.setattr(Capabilities, "parse", lambda text: without_halves(parse(text)))


@triton.jit
def convert_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n).to(out.dtype.element_ty), mask=i < n)


@triton.jit
def arithmetic_kernel(x, y, added, product, least, less, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(added + i, a + b, mask=i < n)
    tl.store(product + i, a * b, mask=i < n)
    tl.store(least + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=i < n)
    tl.store(less + i, a < b, mask=i < n)


@triton.jit
def product_kernel(x, y, out, total, sums, M: tl.constexpr, K: tl.constexpr):
    rows, steps = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(x + rows[:, None] * K + steps[None, :])
    b = tl.load(y + steps[:, None] * M + rows[None, :])
    tl.store(out + rows[:, None] * M + rows[None, :], tl.dot(a, b, out_dtype=tl.float16))
    tl.store(sums + rows, tl.cumsum(tl.sum(a, 1), 0))
    tl.atomic_add(total + rows, tl.max(a, 1))


def converted(x: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """``x``, in guarded memory that starts an element late, as ``dtype``."""
    source = torch.from_numpy(np.concatenate([x[:1], x]))[1:]
    out = torch.full((len(x) + 2,), 77, dtype=dtype)
    kernel = convert_kernel[(triton.cdiv(len(x), 512),)](source, out[1:], len(x), BLOCK=512)
    assert b"\x11\x00\x02\x00\x09\x00\x00\x00" not in kernel.asm["spv"], "OpCapability Float16"
    told = out.numpy()
    assert told[0] == told[-1] == 77
    return told[1:-1]


def same(told: np.ndarray, wanted: np.ndarray) -> None:
    """The same numbers with the same signs, NaN for NaN."""
    assert np.array_equal(np.isnan(told), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    assert np.array_equal(told[numbers].view(f"u{told.itemsize}"), wanted[numbers].view(f"u{wanted.itemsize}"))


ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_half_as_a_wider_float(dtype: torch.dtype) -> None:
    same(converted(ALL, dtype), ALL.astype({torch.float32: np.float32, torch.float64: np.float64}[dtype]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wider_floats_are_rounded_once_to_nearest_even(dtype: type) -> None:
    random = np.random.default_rng(5)
    finite = np.sort(ALL[np.isfinite(ALL)].astype(dtype))
    between = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([finite, between, np.nextafter(between, dtype(np.inf)), np.nextafter(between, dtype(-np.inf))])
    edges = np.array([65519, 65519.99, 65520, 65536, 1e30, np.inf, np.nan, 2.0**-25, 2.0**-26, -0.0], dtype)
    drawn = random.normal(size=2001) * 10.0 ** random.integers(-9, 6, 2001)
    x = np.concatenate([x, edges, -edges, drawn.astype(dtype)])
    with np.errstate(over="ignore"):
        same(converted(x.astype(dtype), torch.float16), x.astype(dtype).astype(np.float16))


def test_integers_are_rounded_once() -> None:
    random = np.random.default_rng(6)
    x = np.concatenate([np.arange(-70000, 70000, 7), random.integers(-(2**31), 2**31, 501)]).astype(np.int32)
    with np.errstate(over="ignore"):
        same(converted(x, torch.float16), x.astype(np.float64).astype(np.float16))


def test_arithmetic_is_that_of_halves() -> None:
    random = np.random.default_rng(7)
    x, y = (random.integers(0, 1 << 16, 5003).astype(np.uint16).view(np.float16) for _ in range(2))
    outs = [torch.empty(len(x), dtype=dtype) for dtype in (torch.float16,) * 3 + (torch.bool,)]
    a, b = (torch.from_numpy(values) for values in (x, y))
    arithmetic_kernel[(triton.cdiv(len(x), 256),)](a, b, *outs, len(x), BLOCK=256)
    added, product, least, less = (out.numpy() for out in outs)
    with np.errstate(all="ignore"):
        same(added, x + y)
        same(product, x * y)
        assert np.array_equal(least, np.minimum(x, y), equal_nan=True)
        assert np.array_equal(less, x < y)


def test_matrices_of_float16_go_with_it() -> None:
    """A driver whose float16 fails its self-test has no matrices of it either; NVIDIA's crashes over matrices of the
    bits of such numbers."""
    hopper = PROFILES["nvidia-hopper"]
    left = {name for one in without_halves(hopper).matrices for name in one.types}
    assert "f16" in {name for one in hopper.matrices for name in one.types} and "f16" not in left and "bf16" in left


@pytest.mark.parametrize("units", ["0", "1"])
def test_dots_reductions_scans_and_atomic_operations(units: str) -> None:
    random = np.random.default_rng(8)
    x, y = random.integers(-4, 5, (16, 32)).astype(np.float16), random.integers(-4, 5, (32, 16)).astype(np.float16)
    out, total, sums = (torch.zeros(shape, dtype=torch.float16) for shape in ((16, 16), 16, 16))
    halves = (torch.from_numpy(values) for values in (x, y))
    product_kernel[(1,)](*halves, out, total, sums, M=16, K=32, matrix_units=units)
    assert np.array_equal(out.numpy(), x @ y)
    assert np.array_equal(total.numpy(), x.max(1))
    assert np.array_equal(sums.numpy(), np.cumsum(x.sum(1)))
