"""Launches written for CUDA and AMD pass options of those backends; debug=True checks integers for overflow."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.backends.spirv.runtime.reports.failures import KernelAssertionError


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)


FOREIGN = {
    "maxnreg": 64,
    "ptx_options": "-O1",
    "waves_per_eu": 2,
    "matrix_instr_nonkdim": 16,
    "kpack": 2,
    "num_ctas": 1,
    "launch_pdl": True,
    "launch_cooperative_grid": False,
    "schedule_hint": "attention",
    "sched4reg": True,
    "enable_reflect_ftz": False,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_options_of_other_backends(name: str) -> None:
    x, out = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    double[(2,)](x, out, 100, BLOCK=64, **{name: FOREIGN[name]})
    np.testing.assert_array_equal(out.numpy(), x.numpy() * 2)


def test_autotuning_configurations_for_other_devices() -> None:
    configs = [
        triton.Config({"BLOCK": 64, "waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2}, num_warps=2),
        triton.Config({"BLOCK": 32}, num_warps=1, maxnreg=32),
    ]
    tuned = triton.autotune(configs, key=["n"])(double)
    x, out = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    np.testing.assert_array_equal(out.numpy(), x.numpy() * 2)


def test_a_name_that_no_backend_has() -> None:
    x = torch.zeros(64)
    with pytest.raises(KeyError, match="number_of_wraps"):
        double[(1,)](x, x, 64, BLOCK=64, number_of_wraps=4)


@triton.jit
def combine(a_ptr, b_ptr, out, KIND: tl.constexpr):
    at = tl.arange(0, 32)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    if KIND == "add":
        tl.store(out + at, a + b)
    elif KIND == "sub":
        tl.store(out + at, a - b)
    else:
        tl.store(out + at, a * b)


@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_overflow(kind: str, dtype: torch.dtype) -> None:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    a, b, out = (torch.zeros(32, dtype=dtype) for _ in range(3))
    a[7], b[7] = (low, 1) if kind == "sub" else (high, 2)
    combine[(1,)](a, b, out, KIND=kind)  # wraps around without debug=True
    wrapped = {"add": low + 1, "sub": high, "mul": -2}[kind]
    assert out[7].item() == wrapped
    if dtype == torch.int64:  # upstream checks no 64-bit integers
        combine[(1,)](a, b, out, KIND=kind, debug=True)
        return
    with pytest.raises(KernelAssertionError, match=f"overflow detected.*{kind}"):
        combine[(1,)](a, b, out, KIND=kind, debug=True)
    combine[(1,)](a, b, out, KIND=kind, debug=True, sanitize_overflow=False)
    a[7] = 0
    combine[(1,)](a, b, out, KIND=kind, debug=True)


def test_overflow_where_the_environment_asks_for_debugging() -> None:
    code = (
        "import torch; from tests.device.test_launch_options import combine; "
        "a = torch.full((32,), 2**31 - 1, dtype=torch.int32); combine[(1,)](a, a, torch.zeros_like(a), KIND='add')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TRITON_DEBUG": "1"},
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode != 0 and "int32 overflow detected for operation add" in run.stderr
