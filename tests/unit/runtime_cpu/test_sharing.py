"""Whether threads share a kernel's launches: what its earlier launches took decides, each way."""

from __future__ import annotations

import numpy as np
import pytest
from triton.backends.spirv.runtime.cpu.loaded_kernel import CpuKernel
from triton.backends.spirv.runtime.modules.module_info import ModuleInfo

from .objects import block, compiled, program_loop
from .programs import DELAY, FOREVER, NATIVE, address


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


#: out[program] = 1 where one thread runs the launch, 2 where several may.
TELLS = program_loop(f"""
  %out = load ptr, ptr %block
{DELAY}
  %place = getelementptr i32, ptr %grid, i64 3
  %told = load i32, ptr %place
  %at = getelementptr i32, ptr %out, i64 %program
  store i32 %told, ptr %at
  br label %next""")


@pytest.mark.parametrize("has_atomics", [False, True])
def test_one_thread_is_tried_for_kernels_with_atomics_alone(has_atomics: bool) -> None:
    info = ModuleInfo("k", (1, 1, 1), None, has_atomics=has_atomics)
    kernel = CpuKernel("k", compiled(TELLS), 0, info, 64)._kernel
    device = NATIVE.CpuDevice(threads=2, timeout_ns=FOREVER)
    assert kernel.contends is has_atomics
    out, alone = np.zeros(8, np.int32), []
    while len(alone) < 40 or (has_atomics and not any(alone) and len(alone) < 10_000):
        device.launch(kernel, block(address(out)), (8, 1, 1), name="k", waits=True)
        alone += [(out == 1).all()]  # a launch of which nothing is known begins on one thread
    assert any(alone) is has_atomics
