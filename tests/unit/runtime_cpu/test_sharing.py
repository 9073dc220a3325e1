"""Whether threads share a kernel's launches: what its earlier launches took decides, each way."""

from __future__ import annotations

import numpy as np
import pytest
from triton.backends.spirv.runtime.cpu.loaded_kernel import CpuKernel
from triton.backends.spirv.runtime.modules.module_info import ModuleInfo

from .objects import compiled
from .programs import NATIVE, SQUARES


def alone(shared: float, one: float, launches: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Which of so many launches one thread runs, where a program takes so many nanoseconds either way. ``noise``: the
    part of launches that take up to a hundred times as long."""
    random, sharing, found = np.random.default_rng(seed), NATIVE.CpuSharing(), []
    for _ in range(launches):
        found.append(sharing.alone)
        longer = random.uniform(2, 100) if random.random() < noise else random.uniform(1, 1.1)
        sharing.add((one if found[-1] else shared) * longer)
    return np.array(found)


@pytest.mark.parametrize("ratio", [1.2, 2, 8, 50])
@pytest.mark.parametrize("noise", [0, 0.1])
@pytest.mark.parametrize("alone_is_faster", [False, True])
def test_most_launches_run_the_faster_way(ratio: float, noise: float, alone_is_faster: bool) -> None:
    ways = alone(*((ratio, 1) if alone_is_faster else (1, ratio)), launches=20_000, noise=noise)
    slower = ways != alone_is_faster
    assert not ways[:8].any(), "threads share the first launches"
    assert slower[1_000:].any(), "the slower way is tried again"
    assert slower[8:].sum() * (ratio - 1) < (0.2 if noise else 0.03) * ways.size


def test_what_changes_is_found_again() -> None:
    sharing, times = NATIVE.CpuSharing(), {False: 3.0, True: 1.0}
    for _ in range(1_000):
        sharing.add(times[sharing.alone])
    times[True], ways = 10.0, []
    for _ in range(1_000):
        ways.append(sharing.alone)
        sharing.add(times[sharing.alone])
    assert np.mean(ways[500:]) < 0.1


@pytest.mark.parametrize("has_atomics", [False, True])
def test_a_kernel_contends_if_its_module_has_atomics(has_atomics: bool) -> None:
    """The pool tries one thread for no others (native/cpu/pool.cpp)."""
    kernel = CpuKernel("k", compiled(SQUARES), 0, ModuleInfo("k", (1, 1, 1), None, has_atomics=has_atomics), 64)
    assert kernel._kernel.contends is has_atomics
