"""Parts of Triton outside triton.language that public kernel packages use."""

import collections
import importlib.util
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.language import target_info
from triton.language.core import _aggregate as aggregate
from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor
from triton.tools.ragged_tma import atomic_add_ragged, create_ragged_descriptor, load_ragged, store_ragged


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are compiled, whatever ran before."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    add_one_kernel.device_caches.clear()
    yield
    add_one_kernel.device_caches.clear()


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def ragged_kernel(x, y, total, start, size, M: tl.constexpr, N: tl.constexpr):
    rows = load_ragged(x, start, size, [0, 0])
    store_ragged(y, start, size, [0, 0], rows * 2)
    atomic_add_ragged(total, start, size, [0, 0], rows)


def test_ragged_descriptors_touch_their_rows_alone() -> None:
    x = torch.arange(64 * 32, dtype=torch.float32).reshape(64, 32)
    y, total, wanted = torch.zeros(64, 32), torch.ones(64, 32), torch.zeros(64, 32)
    described = [create_ragged_descriptor(tensor, [16, 32]) for tensor in (x, y, total)]
    ragged_kernel[(1,)](*described, 10, 5, M=16, N=32)
    wanted[10:15] = x[10:15]
    assert torch.equal(y, 2 * wanted) and torch.equal(total, 1 + wanted)


@aggregate
class Pair:
    """Two tensors and a constant, as packages carry state through a kernel."""

    a: tl.tensor
    b: tl.tensor
    factor: tl.constexpr

    @triton.constexpr_function
    def __init__(self, a: Any, b: Any, factor: Any) -> None:
        self.a, self.b, self.factor = a, b, tl.constexpr(factor)

    @triton.jit
    def total(self):
        return self.a + self.b * self.factor


@triton.jit
def aggregate_kernel(x_ptr, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    pair = Pair(tl.load(x_ptr + i), tl.load(x_ptr + i) + 1, 3)
    for _ in range(steps):
        pair = Pair(pair.total(), pair.b, 3)
    tl.store(x_ptr + i, pair.a)


def test_aggregates_are_carried_by_loops() -> None:
    x = torch.arange(64, dtype=torch.float32)
    aggregate_kernel[(1,)](x, 2, BLOCK=64)
    wanted = torch.arange(64, dtype=torch.float32)
    assert torch.equal(x, wanted + 6 * (wanted + 1))


Arguments = collections.namedtuple("Arguments", "x y n")


@triton.jit
def named_kernel(given, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(given.y + i, tl.load(given.x + i, mask=i < given.n) * 2, mask=i < given.n)


def test_named_tuples_are_arguments() -> None:
    x, y = torch.ones(64), torch.zeros(64)
    named_kernel[(1,)](Arguments(x, y, 50), BLOCK=64)
    assert y[:50].eq(2).all() and y[50:].eq(0).all()


@triton.jit
def target_kernel(out_ptr):
    tl.store(out_ptr, target_info.is_cuda())
    tl.store(out_ptr + 1, target_info.is_hip())
    tl.store(out_ptr + 2, target_info.cuda_capability_geq(9, 0))
    tl.store(out_ptr + 3, target_info.is_hip_cdna4())


def test_kernels_see_that_the_target_is_no_vendors() -> None:
    out = torch.full((4,), 7, dtype=torch.int32)
    target_kernel[(1,)](out)
    assert out.eq(0).all()


def test_hooks_of_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_, **__: seen.append(name)

    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", note("before"))
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", note("after"))
    monkeypatch.setattr(knobs.compilation, "listener", note("compiled"))
    x = torch.zeros(64)
    for _ in range(3):
        add_one_kernel[(1,)](x, 64, BLOCK=64)
    assert seen == ["before", "compiled", "after"] and x.eq(3).all()


def test_a_specialization_is_loaded_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[str] = []
    monkeypatch.setattr(
        knobs.runtime,
        "jit_post_compile_hook",
        lambda *_, **given: saved.append(given["compile"]["specialization_data"]),
    )
    x = torch.zeros(128)
    add_one_kernel[(1,)](x, 100, BLOCK=128)
    assert json.loads(saved[0])["options"]["num_warps"] == 4
    add_one_kernel.device_caches.clear()
    assert add_one_kernel.preload(saved[0]) is not None
    add_one_kernel[(1,)](x, 100, BLOCK=128)
    assert len(saved) == 2 and x[:100].eq(2).all() and x[100:].eq(0).all()  # the launch compiles nothing


def test_kernels_are_compiled_in_threads() -> None:
    x = torch.zeros(256)
    tuned = triton.autotune([triton.Config({"BLOCK": block}) for block in (256, 512)], key=[], reset_to_zero=["x_ptr"])(
        add_one_kernel
    )
    with knobs.autotuning.scope(), ThreadPoolExecutor(2) as executor, triton.AsyncCompileMode(executor):
        knobs.autotuning.print = True
        kernels = [add_one_kernel.warmup(x, 200, BLOCK=block, grid=(1,)) for block in (256, 512)]
        tuned[(1,)](x, 256)
    assert all(kernels) and x.eq(1).all()


def test_microscaling_formats_of_upstreams_tools() -> None:
    packed = MXFP4Tensor(size=(32, 64)).random()
    again = MXFP4Tensor(data=packed.to(torch.float32), device="cpu")
    assert torch.equal(packed.to(torch.float32), again.to(torch.float32))
    assert MXScaleTensor(size=(4, 4)).random(high=4.0).to(torch.float32).max() <= 4


def test_upstreams_disassembler_is_for_its_own_binaries() -> None:
    assert importlib.util.find_spec("triton.tools.disasm") is not None
    kernel = add_one_kernel.warmup(torch.zeros(1), 1, BLOCK=16, grid=(1,))
    with pytest.raises(KeyError):
        kernel.asm["sass"]
    assert kernel.asm["spv"]
