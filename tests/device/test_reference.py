"""Kernels without their optional passes, rewrites and analyses compute the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv import optional
from triton.backends.spirv.cpu.decoded_module import KernelModule
from triton.backends.spirv.reference import KEPT, NAMES
from triton.backends.spirv.resources import CompilesTooLong

ROWS, COLUMNS, INNER = 45, 37, 70


@triton.jit
def products(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        x = tl.load(a + i[:, None] * k + at, mask=(i[:, None] < m) & (at < k), other=0.0)
        y = tl.load(b + at[:, None] * n + j, mask=(at[:, None] < k) & (j < n), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(out + i[:, None] * n + j, total, mask=(i[:, None] < m) & (j < n))


@triton.jit
def normalised(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    most, total = float("-inf"), 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        most = tl.maximum(most, tl.max(tl.load(x + row * n + at, mask=at < n, other=float("-inf")), 0))
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.exp(tl.load(x + row * n + at, mask=at < n, other=float("-inf")) - most), 0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.exp(tl.load(x + row * n + at, mask=at < n) - most) / total
        tl.store(out + row * n + at, value, mask=at < n)


@triton.jit
def turned(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (i[:, None] < m) & (j < n)
    value = tl.load(x + i[:, None] % m * n + j % n, mask=inside, other=0.0)
    tl.store(out + j[:, None] * m + i, tl.trans(tl.cumsum(value, 1)), mask=tl.trans(inside))


def _products(**options: Any) -> tuple[torch.Tensor, np.ndarray]:
    a, b, out = torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS), torch.full((ROWS, COLUMNS), 7.0)
    products[(2,)](a, b, out, ROWS, COLUMNS, INNER, M=32, N=64, K=16, **options)
    return out, a.double().numpy() @ b.double().numpy()


def _normalised(**options: Any) -> tuple[torch.Tensor, np.ndarray]:
    x, out = torch.randn(3, 150), torch.full((4, 150), 7.0)
    normalised[(3,)](x, out, 150, BLOCK=64, **options)
    expected = np.exp(x.double().numpy())
    return out, np.concatenate([expected / expected.sum(1, keepdims=True), np.full((1, 150), 7.0)])


def _turned(**options: Any) -> tuple[torch.Tensor, np.ndarray]:
    x, out = torch.randn(13, 27), torch.full((27, 13), 7.0)
    turned[(1,)](x, out, 13, 27, M=16, N=32, **options)
    return out, np.cumsum(x.double().numpy(), 1).T


LAUNCHES = (_products, _normalised, _turned)


@pytest.mark.parametrize("without", [{"reference": True}, {"without": NAMES}], ids=["reference", "everything"])
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.__name__)
def test_the_reference_is_right(launch: Callable[..., tuple[torch.Tensor, np.ndarray]], without: Any) -> None:
    out, expected = launch(**without)
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-5, atol=2e-5)


def test_the_reference_may_take_any_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    turned.device_caches.clear()
    turned.relaunch = None
    monkeypatch.setenv("TRITON_SPIRV_COMPILE_TIMEOUT", "0.01")
    with pytest.raises(CompilesTooLong):
        _turned()
    out, expected = _turned(reference=True)
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-5, atol=2e-5)


def test_machine_code_that_is_made_later_leaves_out_the_same() -> None:
    """A module that is loaded from the cache becomes machine code in another process, which knows the module alone."""
    x = torch.ones(64)
    usual = turned.warmup(x, x, 8, 8, M=8, N=8, grid=(1,))
    left_out = turned.warmup(x, x, 8, 8, M=8, N=8, grid=(1,), without=(optional.WHOLE_ROUNDS, "coalesce"))
    assert KernelModule(usual.asm["spv"]).without == frozenset()
    assert KernelModule(left_out.asm["spv"]).without == {optional.WHOLE_ROUNDS}
    reference = turned.warmup(x, x, 8, 8, M=8, N=8, grid=(1,), reference=True)
    assert KernelModule(reference.asm["spv"]).without == set(optional.OF_MACHINE_CODE)
    assert set(reference.metadata.without) == set(NAMES) - KEPT
