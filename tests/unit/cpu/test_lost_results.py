"""Exponentials that are 0: masked lanes of a softmax, which microcode would compute, one vector after the other."""

import re
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.cpu.host import host_of
from triton.backends.spirv.cpu.machine import assembly
from triton.backends.spirv.cpu.module_translation import translate
from triton.language.extra import libdevice

from tests.unit.cpu.kernels import PROFILES_HERE, compiled, run


@triton.jit
def exponentials(x, out, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=-float("inf"))
    if FUNCTION == "exp":
        result = tl.exp(value)
    elif FUNCTION == "exp2":
        result = tl.exp2(value)
    elif FUNCTION == "exp10":
        result = libdevice.exp10(value)
    else:
        result = libdevice.expm1(value)
    tl.store(out + at, result, mask=at < n)


_FUNCTIONS = {"exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1}
#: log2 of the base.
_SCALES = {"exp": np.log2(np.e), "exp2": 1.0, "exp10": np.log2(10), "expm1": np.log2(np.e)}


@pytest.mark.parametrize("profile", PROFILES_HERE)
@pytest.mark.parametrize("function", _FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_results(profile: str, function: str, dtype: Any) -> None:
    """Where results are normal, subnormal, 0 and infinite; and nothing beside them is written."""
    n = 1021
    low, high = (-160, 135) if dtype is np.float32 else (-1090, 1030)
    x = (np.linspace(low, high, n + 3) / _SCALES[function]).astype(dtype)
    x[:8] = [-np.inf, np.inf, np.nan, -np.nan, -1e30, 1e30, -0.0, -1e-40]
    out = np.full(n + 3, 7, dtype)
    run(profile, exponentials, (1,), x, out, n, FUNCTION=function, BLOCK=1024)
    with np.errstate(over="ignore", under="ignore"):
        expected = _FUNCTIONS[function](x.astype(np.longdouble)).astype(dtype)
    with np.errstate(invalid="ignore"):
        unit = np.spacing(np.abs(expected))
        near = np.abs(out.astype(np.longdouble) - expected) <= 2 * unit
    assert (near | (out == expected) | (np.isnan(out) & np.isnan(expected)))[:n].all()
    assert (out[n:] == 7).all()
    assert np.isnan(out[2:4]).all() and (function == "expm1" or out[0] == 0 == out[4])


@pytest.mark.skipif("cpu-x86-64-v4" not in PROFILES_HERE, reason="the instruction is AVX-512's")
@pytest.mark.parametrize("function", ["exp", "exp2"])
def test_lanes_whose_result_is_0_are_left_out(function: str) -> None:
    arrays = [np.zeros(4, np.float32)] * 2
    kernel = compiled("cpu-x86-64-v4", exponentials, [*arrays, 4], {"FUNCTION": function, "BLOCK": 64})
    host = host_of(PROFILES["cpu-x86-64-v4"].processor)
    lines = re.findall(r"vscalefps.*", assembly(translate(kernel.asm["spv"], host, 16).text, host))
    assert len(lines) == 4 and all(line.endswith("{z}") for line in lines)
