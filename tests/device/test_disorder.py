"""Subgroups in another order (``disorder``): the same results, and a barrier that is left out makes them wrong."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.workgroup_memory import SharedMemory
from triton.backends.spirv.target import target_of
from triton.compiler import ASTSource
from triton.compiler import compile as compile_kernel
from triton.runtime import driver

#: A register or more of each subgroup's lanes, in the order of the subgroups.
SIZE = 128


@triton.jit
def before_kernel(x_ptr, y_ptr, SIZE: tl.constexpr, DISTANCE: tl.constexpr):
    """Each element from a subgroup that comes earlier."""
    at = tl.arange(0, SIZE)
    y = tl.gather(tl.load(x_ptr + at), tl.maximum(at - DISTANCE, 0), 0)
    tl.store(y_ptr + at, y)


@triton.jit
def busy_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at[:, None] * SIZE + at[None, :])
    for step in range(3):
        x = tl.trans(tl.dot(x, x + step)) - tl.cumsum(tl.sum(x, 0), 0)[None, :]
        x = tl.minimum(tl.maximum(x, -2.0), 2.0)
    tl.store(y_ptr + at[:, None] * SIZE + at[None, :], x)


@pytest.fixture
def compiled_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    monkeypatch.delenv("TRITON_SPIRV_CHECK_RACES", raising=False)  # it would find the barrier that is left out first
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


def shifted(disorder: int) -> bool:
    """Whether every element is right. No two calls have the same ones: shared memory keeps what was in it."""
    device = driver.active.get_active_torch_device()
    x = torch.randint(1, 2**31 - 1, (SIZE,), dtype=torch.int32)
    expected, x, y = x[(torch.arange(SIZE) - SIZE // 2).clamp(min=0)], x.to(device), torch.zeros_like(x).to(device)
    before_kernel.device_caches.clear()
    before_kernel[(1,)](x, y, SIZE=SIZE, DISTANCE=SIZE // 2, num_warps=4, disorder=disorder)
    return torch.equal(y.cpu(), expected)


@pytest.mark.parametrize("disorder", [0, 1, 2, 2**31 - 1])
def test_results_are_the_same(disorder: int) -> None:
    device = driver.active.get_active_torch_device()
    x = torch.randint(-2, 3, (32, 32)).float()
    expected = x
    for step in range(3):
        expected = ((expected @ (expected + step)).T - expected.sum(0).cumsum(0)[None, :]).clamp(-2, 2)
    x, y = x.to(device), torch.zeros(32, 32, device=device)
    busy_kernel[(1,)](x, y, SIZE=32, num_warps=4, disorder=disorder)
    assert torch.equal(y.cpu(), expected)
    assert shifted(disorder)


@pytest.mark.only_on("Vulkan", "a workgroup of one subgroup has no barriers of the workgroup")
def test_a_barrier_that_is_left_out_is_found(compiled_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As usual the CPU driver runs the subgroup that writes before the one that reads."""
    assert shifted(0) and shifted(1)
    monkeypatch.setattr(SharedMemory, "barrier", lambda *_: None)
    assert not all(shifted(disorder) for disorder in range(1, 6))
    if driver.active.get_current_target().arch.find("llvmpipe") >= 0:
        assert shifted(0)


@pytest.mark.only_on("Vulkan", "CPU", "an emulated device orders subgroups itself (test_emulated.py)")
def test_the_variable_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_DISORDER", "3")
    device = driver.active.get_active_torch_device()
    x, y = torch.ones(SIZE, device=device).int(), torch.zeros(SIZE, device=device).int()
    before_kernel.device_caches.clear()
    kernel = before_kernel[(1,)](x, y, SIZE=SIZE, DISTANCE=1, num_warps=4)
    assert kernel.metadata.disorder == 3 and torch.equal(x, y)


@pytest.mark.parametrize(("clock", "warps", "reads"), [(True, 4, 4), (False, 4, 0), (True, 1, 0)])
def test_a_device_with_a_clock_waits_at_the_start_and_behind_each_barrier(clock: bool, warps: int, reads: int) -> None:
    hopper = PROFILES["nvidia-hopper"]
    device = replace(hopper, features=hopper.features | {"device_clock"} if clock else hopper.features)
    signature = {"x_ptr": "*i32", "y_ptr": "*i32", "SIZE": "constexpr", "DISTANCE": "constexpr"}
    source = ASTSource(before_kernel, signature, {(2,): SIZE, (3,): SIZE // 2})
    target = target_of(device)
    made = compile_kernel(source, target=target, options={"num_warps": warps, "disorder": 5}).asm["spvasm"]
    assert made.count("OpReadClockKHR") == reads
    assert compile_kernel(source, target=target, options={"num_warps": warps}).asm["spvasm"].count("ReadClock") == 0
