"""triton.testing, triton.autotune and triton.heuristics on this backend, with every parameter."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton import testing
from triton.backends.spirv.compiler import TooManyWarps
from triton.runtime import driver

from tests.device.helpers import device_capabilities

SIZE = 1 << 12


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


def _tensors() -> tuple[torch.Tensor, torch.Tensor]:
    device = driver.active.get_active_torch_device()
    return torch.arange(SIZE, dtype=torch.float32).to(device), torch.zeros(SIZE).to(device)


def _launch() -> None:
    x, out = _KEPT
    double[(SIZE // 256,)](x, out, SIZE, BLOCK=256)


_KEPT: Any = None


@pytest.fixture(autouse=True)
def tensors() -> Any:
    """The tensors of ``_launch``."""
    global _KEPT
    _KEPT = _tensors()
    return _KEPT


@pytest.mark.parametrize("bench", [testing.do_bench, testing.do_bench_cudagraph])
@pytest.mark.parametrize("mode", ["min", "max", "mean", "median"])
def test_a_time_in_milliseconds(bench: Any, mode: str, tensors: Any) -> None:
    assert 0 < bench(_launch, rep=2, return_mode=mode) < 1e3
    np.testing.assert_array_equal(tensors[1].cpu().numpy(), tensors[0].cpu().numpy() * 2)


@pytest.mark.parametrize("bench", [testing.do_bench, testing.do_bench_cudagraph])
def test_quantiles_and_all_times(bench: Any) -> None:
    low, high = bench(_launch, rep=2, quantiles=[0.2, 0.8])
    assert 0 < low <= high
    assert len(bench(_launch, rep=2, return_mode="all")) >= 1


def test_gradients_are_dropped() -> None:
    x = torch.ones(4, requires_grad=True)
    x.sum().backward()
    testing.do_bench(_launch, warmup=1, rep=1, grad_to_none=[x])
    assert x.grad is None


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((64, 1), (256, 4))]


def _grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(SIZE, meta["BLOCK"]),)


PARAMETERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "graph": {"use_cuda_graph": True, "rep": 2},
    "times": {"warmup": 1, "rep": 1},
    "own": {"do_bench": lambda call, quantiles: testing.do_bench(call, warmup=1, rep=1, quantiles=quantiles)},
    "early": {"prune_configs_by": {"early_config_prune": lambda configs, named, **_: configs[:1]}},
    "model": {"prune_configs_by": {"perf_model": lambda **all_: all_["BLOCK"], "top_k": 1}},
    "reset": {"reset_to_zero": ["out"]},
    "restore": {"restore_value": ["out"]},
    "hooks": {"pre_hook": lambda named, reset_only=False: None, "post_hook": lambda named, exception: None},
    "cached": {"cache_results": True},
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_autotune(name: str, tensors: Any) -> None:
    tuned = triton.autotune(CONFIGS, key=["n"], **PARAMETERS[name])(double)
    tuned[_grid](*tensors, SIZE)
    np.testing.assert_array_equal(tensors[1].cpu().numpy(), tensors[0].cpu().numpy() * 2)
    assert tuned.best_config in CONFIGS
    if name in ("early", "model"):
        assert tuned.best_config is CONFIGS[0]


def test_every_parameter_of_autotune_is_passed() -> None:
    passed = {name for parameters in PARAMETERS.values() for name in parameters} | {"configs", "key"}
    assert set(inspect.signature(triton.autotune).parameters) == passed


def test_configurations() -> None:
    seen = []
    config = triton.Config(
        {"BLOCK": 64}, num_warps=2, num_stages=2, num_ctas=1, maxnreg=32, pre_hook=seen.append, ir_override=None
    )
    assert set(inspect.signature(triton.Config).parameters) == {
        "kwargs", "num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook", "ir_override",
    }  # fmt: skip
    x, out = _tensors()
    tuned = triton.autotune([config], key=[])(double)
    tuned[_grid](x, out, SIZE)
    assert seen[0]["num_warps"] == 2
    np.testing.assert_array_equal(out.cpu().numpy(), x.cpu().numpy() * 2)


def test_heuristics() -> None:
    x, out = _tensors()
    chosen = triton.heuristics({"BLOCK": lambda named: 64 if named["n"] < 5 else 128})(double)
    chosen[_grid](x, out, SIZE)
    np.testing.assert_array_equal(out.cpu().numpy(), x.cpu().numpy() * 2)


@pytest.mark.only_on("Vulkan", "the CPU device runs any number of warps as one subgroup")
def test_configurations_that_do_not_fit_are_left_out() -> None:
    limit = device_capabilities().max_workgroup_invocations // device_capabilities().subgroup_size
    configs = [*CONFIGS, triton.Config({"BLOCK": 64}, num_warps=2 * limit)]
    with pytest.raises(TooManyWarps):
        double.warmup(torch.float32, torch.float32, SIZE, BLOCK=64, num_warps=2 * limit, grid=(1,))
    tuned = triton.autotune(configs, key=["n"])(double)
    assert len(tuned.warmup(torch.float32, torch.float32, SIZE, grid=(1,))) == len(CONFIGS)
    x, out = _tensors()
    tuned[_grid](x, out, SIZE)
    assert tuned.best_config in CONFIGS


def test_jit_takes_every_parameter() -> None:
    @triton.jit(
        version=2,
        repr=lambda _: "named",
        launch_metadata=lambda grid, kernel, args: {"name": "named"},
        do_not_specialize=["n"],
        do_not_specialize_on_alignment=["x"],
        debug=False,
        noinline=False,
    )
    def kernel(x, n):
        tl.store(x, n)

    assert set(inspect.signature(triton.jit).parameters) == {
        "fn", "version", "repr", "launch_metadata", "do_not_specialize", "do_not_specialize_on_alignment", "debug",
        "noinline",
    }  # fmt: skip
    x = torch.zeros(4)
    assert kernel[(1,)](x, 7).metadata.name == "named"
    assert x.tolist() == [7, 0, 0, 0]


def test_what_vulkan_does_not_report_is_said() -> None:
    with pytest.raises(KeyError, match=r"Vulkan does not report the device property 'mem_clock_rate'.*do_bench"):
        testing.get_dram_gbps()
    properties = driver.active.utils.get_device_properties(0)
    assert properties["warpSize"] == device_capabilities().subgroup_size
    assert properties.get("mem_clock_rate") is None


def test_names_of_cudas_driver_say_what_to_use_instead() -> None:
    for owner in (driver.active, driver.active.get_device_interface()):
        assert not hasattr(owner, "get_device_capability") and not hasattr(owner, "no_such_name")
        with pytest.raises(AttributeError, match=r"get_device_capability.*get_current_target"):
            owner.get_device_capability(0)
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_name'$"):
        driver.active.no_such_name  # noqa: B018


@testing.perf_report(testing.Benchmark(["n"], [256, 512], "how", ["triton"], ["Triton"], "double", {}, ylabel="ms"))
def report(n: int, how: str) -> float:
    return float(testing.do_bench(_launch, warmup=1, rep=1))


def test_closeness_and_reports() -> None:
    testing.assert_close(torch.ones(3), torch.ones(3) + 1e-6)
    with pytest.raises(AssertionError):
        testing.assert_close(torch.ones(3), torch.zeros(3))
    assert callable(report.run)
