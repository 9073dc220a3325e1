"""Configurations of autotuning that lead to the same code: they are compiled once on a processor, and measured once."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv import stages
from triton.backends.spirv.runtime.context import current
from triton.language.extra import cuda

N = 300
OPTIONS = [(warps, stages_) for warps in (1, 4) for stages_ in (1, 2, 3)]


class Bench:
    """Measures nothing, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, call: Callable[[], None], quantiles: Any) -> list[float]:
        call()
        self.calls += 1
        return [float(self.calls)] * 3


def _tuned(function: Any, **more: Any) -> tuple[Any, Bench]:
    bench = Bench()
    configs = [
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages_, **more)
        for block in (64, 128)
        for warps, stages_ in OPTIONS
    ]
    kernel = triton.autotune(configs=configs, key=["n"], do_bench=bench)(triton.jit(function))
    return kernel, bench


def _launch(kernel: Any) -> torch.Tensor:
    out = torch.zeros(N, dtype=torch.int32)
    kernel[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](out, N)
    return out


def _codes(kernel: Any) -> int:
    """How many kernels of different code the configurations lead to."""
    found = {
        kernel.fn.warmup(torch.int32, N, grid=(1,), **config.all_kwargs()).metadata.sha256["spv"]
        for config in kernel.configs
    }
    return len(found)


def counting(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(n % 7):
        total += i * k
    tl.store(out + i, total, mask=i < n)


def narrow(out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 128)
    tl.store(out + tl.arange(0, BLOCK), n)


def telling(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i + cuda.num_warps(), mask=i < n)


def compiled_alike(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i * 3 + n, mask=i < n)


def test_equal_code_is_measured_once() -> None:
    kernel, bench = _tuned(counting)
    assert torch.equal(_launch(kernel), torch.arange(N, dtype=torch.int32) * sum(range(N % 7)))
    assert bench.calls == _codes(kernel) and len(kernel.configs_timings) == len(kernel.configs)
    assert set(Counter(map(tuple, kernel.configs_timings.values())).values()) == {len(kernel.configs) // bench.calls}
    assert kernel.best_config is kernel.configs[0]  # of equal times the first, as without it
    if current().capabilities.processor:
        assert bench.calls == 2


def test_a_kernel_that_reads_an_option_is_measured_for_each() -> None:
    kernel, bench = _tuned(telling)
    assert torch.equal(_launch(kernel), torch.arange(N, dtype=torch.int32) + 1)
    assert bench.calls == _codes(kernel) >= 4


def test_configurations_with_a_hook_are_measured_each() -> None:
    calls: list[int] = []
    kernel, bench = _tuned(counting, pre_hook=lambda args: calls.append(args["BLOCK"]))
    _launch(kernel)
    assert bench.calls == len(kernel.configs) == len(calls) - 1


def test_what_cannot_be_compiled_is_told_for_each() -> None:
    kernel, _ = _tuned(narrow)
    _launch(kernel)
    failed = {(config.kwargs["BLOCK"], config.num_warps, config.num_stages) for config in kernel.failures}
    assert failed == {(128, warps, stages_) for warps, stages_ in OPTIONS}
    assert kernel.best_config is kernel.configs[0]


@pytest.mark.parametrize("always", [False, True])
def test_a_processor_has_equal_kernels_laid_out_once(always: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[str] = []
    choose = stages.choose
    monkeypatch.setattr(stages, "choose", lambda *args: laid_out.append(args[1]) or choose(*args))
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", str(int(always)))
    kernel, _ = _tuned(compiled_alike)
    compiled = [
        kernel.fn.warmup(torch.int32, N + always, grid=(1,), **config.all_kwargs()) for config in kernel.configs
    ]
    once = current().capabilities.processor and not always
    assert len(laid_out) == (2 if once else len(kernel.configs))
    for one, config in zip(compiled, kernel.configs, strict=True):
        assert (one.metadata.num_warps, one.metadata.num_stages) == (config.num_warps, config.num_stages)
        assert one.asm["ttgir"] and one.metadata.workgroup_size
