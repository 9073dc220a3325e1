"""Dot operands that are loaded an iteration ahead: the same results, and nothing is read past the end."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.driver_quirks import DRIVERS, OTHER
from triton.backends.spirv.transforms import table
from triton.backends.spirv.transforms.gpu.row_buffers import buffer_rows

from tests.device.helpers import Guarded, device_capabilities, to_torch
from tests.device.test_dot import operands


@pytest.fixture(autouse=True)
def ahead(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    """Kernels are compiled as for a GPU's driver, whatever the device's is."""
    driver = Capabilities.parse(str(triton.runtime.driver.active.get_current_target().arch)).driver
    monkeypatch.setitem(DRIVERS, driver, replace(DRIVERS.get(driver, OTHER), prefetch=True))
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield


@triton.jit
def product(a, b, bias, c, length, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr):
    """The sum over blocks of K of (a × 2) × (b + bias), where the bias is of each step of K."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, length, K, num_stages=STAGES):
        at = start + k
        left = tl.load(a + m[:, None] * length + at[None, :], mask=at[None, :] < length, other=0.0)
        right = tl.load(b + at[:, None] * N + n[None, :], mask=at[:, None] < length, other=0.0)
        more = tl.load(bias + at, mask=at < length, other=0.0)
        total = tl.dot(left * 2, right + more[:, None], total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("length", (0, 5, 16, 43))
@pytest.mark.parametrize("dtype, units", [("float32", "0"), ("float16", "1")])
def test_loads_are_ahead(dtype: str, units: str, length: int) -> None:
    a, b, bias = operands(dtype, (16, length), (length, 16), (length,))
    result = Guarded((16, 16), "float32")
    kernel: Any = product[(1,)](
        to_torch(a), to_torch(b), to_torch(bias), result.tensor, length, 16, 16, 16, 2, num_warps=2, matrix_units=units
    )
    left, right = a.astype(np.float64) * 2, (b + bias[:, None]).astype(np.float64)
    assert (np.abs(result.values() - left @ right) <= 2.0**-18 * (np.abs(left) @ np.abs(right))).all()
    assert ("nvidia_mma" in kernel.asm["ttgir"]) == (units == "1" and bool(device_capabilities().matrices))


def _loads(stages: int, warps: int = 2) -> int:
    """In the whole kernel."""
    spvasm = triton.compile(
        triton.compiler.ASTSource(
            product,
            {"a": "*fp32", "b": "*fp32", "bias": "*fp32", "c": "*fp32", "length": "i32"}
            | dict.fromkeys(("M", "N", "K", "STAGES"), "constexpr"),
            {(5,): 16, (6,): 16, (7,): 16, (8,): stages},
        ),
        options={"num_warps": warps, "matrix_units": "0"},
    ).asm["spvasm"]
    return sum("OpLoad" in line and "Aligned" in line for line in spvasm.split("\n"))


def test_one_stage_loads_nothing_ahead() -> None:
    """Otherwise loads are there twice: before the loop, and in it."""
    assert _loads(2) == _loads(3) > _loads(1)


@triton.jit
def weighted(a, b, weights, c, length, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The sum over blocks of columns of (a × b) × weights, where each column has its own weight."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    total = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, length, N, num_stages=2):
        at = start + n
        right = tl.load(b + k[:, None] * length + at[None, :], mask=at[None, :] < length, other=0.0)
        weight = tl.load(weights + at, mask=at < length, other=0.0)
        total += tl.dot(left, right) * weight[None, :]
    tl.store(c + m[:, None] * N + n[None, :], total)


@pytest.mark.only_on("Vulkan", "emulated", "the CPU device multiplies tiles in memory of the thread")
@pytest.mark.parametrize("length", (0, 5, 32, 83))
@pytest.mark.parametrize("most", (1 << 14, 1), ids=["rows in shared memory", "no room"])
def test_rows_of_a_loop(monkeypatch: pytest.MonkeyPatch, length: int, most: int) -> None:
    """The weights of a block are loaded in the layout of the dot's result, or one by each lane, where there is room for
    them in shared memory beside the block's operands."""
    device, rewritten = device_capabilities(), []

    def spy(*arguments: Any) -> bool:
        rewritten.append(buffer_rows(*arguments))
        return rewritten[-1]

    monkeypatch.setattr(table, "buffer_rows", spy)
    habits = {"resident_shared": most, "unit_registers": 1 << 20}
    monkeypatch.setitem(DRIVERS, device.driver, replace(DRIVERS[device.driver], **habits))
    a, b, weights = operands("float16", (64, 16), (16, length), (length,))
    weights = weights.astype(np.float32)
    result = Guarded((64, 64), "float32")
    weighted.device_caches.clear()
    weighted[(1,)](*map(to_torch, (a, b, weights)), result.tensor, length, 64, 64, 16, num_warps=4, matrix_units="1")
    # A dot's result on matrix units has each weight in many lanes; where lanes have few registers there are more
    # subgroups, and few of the weights in a lane.
    repeated = bool(device.matrices) and device.traits.lane_registers >= 64
    assert rewritten == [most > 1 and repeated]
    columns = np.zeros((64, -length % 64 + length), np.float64)
    columns[:, :length] = a.astype(np.float64) @ b.astype(np.float64) * weights
    blocks = columns.reshape(64, -1, 64)
    assert (np.abs(result.values() - blocks.sum(axis=1)) <= 2.0**-16 * (np.abs(blocks).sum(axis=1) + 1)).all()
