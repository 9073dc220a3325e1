"""Compile options change the code, not the result."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.device.helpers import Guarded, assert_same, device_capabilities, inputs, to_numpy, to_torch


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + at, at < n), tl.load(b_ptr + at, at < n)
    for _ in tl.range(3, num_stages=2):
        a = a * b + 1.25
    tl.store(out_ptr + at, a, at < n)


#: As many warps as workgroups may have, and 32 at most.
MOST_WARPS = min(device_capabilities().most_subgroups, 32)


def finite(seed: int) -> np.ndarray:
    x = inputs("float32", 777, seed)
    return np.where(np.isfinite(x) & (np.abs(x) < 100), x, np.float32(2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_warps": 1},
        {"num_warps": 16},
        {"num_warps": MOST_WARPS},
        {"num_stages": 1},
        {"num_stages": 5},
        {"debug": True},
        {"num_ctas": 1},
        {"enable_fp_fusion": False},
        {"warp_size": 64},
    ],
)
def test_result_is_the_same(options):
    a, b = finite(1), finite(2)
    out = Guarded(777, "float32")
    compiled = kernel[(4,)](to_torch(a), to_torch(b), out.tensor, 777, BLOCK=256, **options)
    subgroups = min(options.get("num_warps", 4), device_capabilities().most_subgroups)
    assert compiled.metadata.workgroup_size == device_capabilities().subgroup_size * subgroups
    expected = a.astype(np.float64)
    for _ in range(3):
        expected = expected * b + 1.25
    scale = np.abs(a.astype(np.float64)) * np.maximum(np.abs(b), 1) ** 3 + 10 * np.maximum(np.abs(b), 1) ** 2
    assert (np.abs(out.values() - expected) <= 1e-6 * scale).all()


@triton.jit
def rest_kernel(a_ptr, b_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    product = tl.load(a_ptr + at, at < n) * tl.load(b_ptr + at, at < n)
    tl.store(out_ptr + at, tl.load(c_ptr + at, at < n) - product, at < n)


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_without_fusion_alone_every_step_is_rounded(dtype: str, fusion: bool) -> None:
    to = getattr(torch, dtype)
    a, b = (torch.from_numpy(np.random.default_rng(seed).normal(size=777)).to(to).double() for seed in (1, 2))
    c = (a * b).to(to).double()
    out = Guarded(777, dtype)
    rest_kernel[(4,)](*(x.to(to) for x in (a, b, c)), out.tensor, 777, BLOCK=256, enable_fp_fusion=fusion)
    once = fusion and (dtype == "bfloat16" or device_capabilities().traits.fused)
    assert_same(out.values(), to_numpy((c - (a * b if once else c)).to(to)))


@pytest.mark.parametrize(("name", "value"), [("num_warps", "4"), ("num_stages", 2.5)])
def test_options_that_are_not_integers_are_refused_by_name(name: str, value: object) -> None:
    a, b, out = (to_torch(np.zeros(64, np.float32)) for _ in range(3))
    with pytest.raises(TypeError, match=f"{name}={value!r} must be an integer, not of type {type(value).__name__}"):
        kernel[(1,)](a, b, out, 64, BLOCK=64, **{name: value})
