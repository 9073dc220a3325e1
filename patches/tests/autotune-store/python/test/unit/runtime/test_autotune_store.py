import warnings
from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources


class Store:
    def __init__(self, found=None):
        self.found, self.asked, self.kept = found, [], []

    def find(self, autotuner, args, configs):
        self.asked.append((autotuner.base_fn.__name__, args["n"], [config.kwargs["BLOCK"] for config in configs]))
        return next((config for config in configs if config.kwargs["BLOCK"] == self.found), None)

    def keep(self, autotuner, args, config):
        self.kept.append((autotuner.base_fn.__name__, args["n"], config.kwargs["BLOCK"]))


def stored(monkeypatch, store):
    from triton.runtime import autotune_store

    monkeypatch.setattr(autotune_store, "driver", SimpleNamespace(active=SimpleNamespace(autotune_store=store)))
    return store


def autotuned(failing=()):

    @triton.autotune(configs=[triton.Config({"BLOCK": size}) for size in (32, 64)], key=["n"])
    @triton.jit
    def kernel(out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    launched, timed = [], []

    def bench(call, quantiles):
        call()
        timed.append(launched[-1])
        return [float(launched[-1])] * 3

    def run(*args, BLOCK, **kwargs):
        if BLOCK in failing:
            raise OutOfResources(BLOCK, 1, "shared memory")
        launched.append(BLOCK)

    kernel._do_bench, kernel.fn.run = bench, run
    return kernel, launched, timed


def test_what_is_found_is_not_measured(monkeypatch):
    store = stored(monkeypatch, Store(found=64))
    kernel, launched, timed = autotuned()
    for _ in range(2):
        kernel[(1,)](SimpleNamespace(dtype="fp32"), 7)
    assert (launched, timed, kernel.best_config.kwargs) == ([64, 64], [], {"BLOCK": 64})
    assert (store.asked, store.kept) == ([("kernel", 7, [32, 64])], [])


def test_what_is_not_found_is_measured_and_kept(monkeypatch):
    store = stored(monkeypatch, Store())
    kernel, launched, timed = autotuned()
    for n in (7, 7, 8):
        kernel[(1,)](None, n)
    assert (launched, timed) == ([32, 64, 32, 32, 32, 64, 32], [32, 64, 32, 64])
    assert store.kept == [("kernel", 7, 32), ("kernel", 8, 32)]


def test_a_choice_without_times_is_not_kept(monkeypatch):
    store = stored(monkeypatch, Store())
    kernel, *_ = autotuned(failing=(32, 64))
    with warnings.catch_warnings(), pytest.raises(OutOfResources):
        warnings.simplefilter("ignore")
        kernel[(1,)](None, 7)
    assert store.kept == []


def test_configurations_of_the_same_code_are_measured_once(monkeypatch):
    store = stored(monkeypatch, Store())
    store.code = lambda kernel: kernel

    @triton.autotune(
        configs=[triton.Config({"BLOCK": size}, num_warps=warps) for size in (32, 64) for warps in (1, 2, 4)], key=["n"]
    )
    @triton.jit
    def kernel(out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    timed = []

    def bench(call, quantiles):
        call()
        timed.append(launched[-1])
        return [float(len(timed))] * 3

    launched = []

    def run(*args, BLOCK, num_warps, warmup, **kwargs):
        if not warmup:
            launched.append((BLOCK, num_warps))
        return "of one warp" if num_warps == 1 else "of several"

    kernel._do_bench, kernel.fn.run = bench, run
    kernel[(1,)](None, 7)
    assert timed == [(32, 1), (32, 2), (64, 1), (64, 2)]
    assert launched == [*timed, (32, 1)]
    assert [kernel.configs_timings[config][0] for config in kernel.configs] == [1, 2, 2, 3, 4, 4]
