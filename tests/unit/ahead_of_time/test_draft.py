"""The signature that is suggested for a kernel without one compiles the kernel where its guesses are right."""

import importlib
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.spirv.ahead_of_time.build import compile_kernel
from triton.backends.spirv.ahead_of_time.draft import draft
from triton.backends.spirv.capabilities import PROFILES


@triton.jit
def rows(x_ptr, out, count_ptr, stride, columns, BLOCK: tl.constexpr, SCALE: tl.constexpr = 0.5):
    row = x_ptr + tl.program_id(0) * stride
    i = tl.arange(0, BLOCK)
    values = tl.load(row + i, mask=i < columns, other=0.0)
    tl.atomic_add(count_ptr, 1.0)
    tl.store(out + tl.program_id(0), tl.sum(values) * SCALE)


def test_pointers_numbers_and_constants_are_told_apart() -> None:
    assert draft(rows) == (
        "x_ptr=*fp32:16, out=*fp32:16, count_ptr=*fp32:16, stride=i32, columns=i32, BLOCK=64, SCALE=0.5"
    )
    compiled = compile_kernel(rows, draft(rows), PROFILES["generic"], {"enable_fp_fusion": True})
    assert [argument.name for argument in compiled.abi.arguments][:3] == ["x_ptr", "out", "count_ptr"]


@pytest.mark.parametrize(("module", "name"), [("vector_add", "add_kernel"), ("fused_softmax", "softmax_kernel")])
def test_the_examples_kernels_compile_with_their_drafts(module: str, name: str) -> None:
    kernel: Any = getattr(importlib.import_module(f"examples.{module}"), name)
    while not hasattr(kernel, "params"):
        kernel = kernel.fn
    compile_kernel(kernel, draft(kernel), PROFILES["generic"], {"enable_fp_fusion": True})
