"""Operands are converted before they are stored to shared memory."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gpu.converted_operands import convert_operands
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module

MODULE = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#x = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%x: tensor<64x64xf32, #x>, %m: tensor<64x64xf16, #b>, %w: tensor<64x64xf32, #a>, %f: f32, %t: tensor<64x64xf32, #mma>) {
    %c = arith.constant dense<2.0> : tensor<64x64xf32, #a>
    %s = tt.splat %f : f32 -> tensor<64x64xf32, #a>
    %buffer = ttg.local_alloc %x : (tensor<64x64xf32, #x>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
    %l = ttg.local_load %buffer : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #a>
    %y = arith.mulf %l, %OTHER : tensor<64x64xf32, #a>
    %h = arith.truncf %y : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
    %d = tt.dot %h, %m, %t : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #mma>
    MORE
    tt.return
  }
}
"""  # noqa: E501


def names(other: str, more: str = "") -> list[str] | None:
    """The operations from the buffer's on, with what is now before it; None where nothing was moved."""
    source = parse_module(MODULE.replace("OTHER", other).replace("MORE", more))
    if not convert_operands(source):
        return None
    verify(source)
    body = source.functions["k"].body
    assert body is not None
    stored = next(one for one in body.entry.operations if one.name == "ttg.local_alloc")
    assert str(stored.result.memdesc.element) == "f16"
    return [one.name for one in body.entry.operations[2:]]


@pytest.mark.parametrize("other, again", [("c", "arith.constant"), ("s", "tt.splat")])
def test_products_with_a_number_and_conversions_move(other: str, again: str) -> None:
    moved = [again, "arith.mulf", "arith.truncf", "ttg.local_alloc", "ttg.local_load", "tt.dot", "tt.return"]
    assert names(other) == moved


def test_products_with_another_tensor_stay() -> None:
    assert names("w") is None


def test_what_is_loaded_for_something_else_too_stays() -> None:
    assert names("c", "%z = arith.addf %l, %l : tensor<64x64xf32, #a>") is None


def test_fragments_are_loaded_where_they_are_used() -> None:
    """Behind the store of another operand: two barriers are enough for both."""
    store = "%other = ttg.local_alloc %x : (tensor<64x64xf32, #x>) -> !ttg.memdesc<64x64xf32, #shared, #smem>"
    text = MODULE.replace("OTHER", "c").replace("MORE", "").replace("%d = tt.dot", f"{store}\n    %d = tt.dot")
    source = parse_module(text)
    assert convert_operands(source)
    verify(source)
    body = source.functions["k"].body
    assert body is not None
    found = [one.name for one in body.entry.operations]
    assert found[-5:] == ["ttg.local_alloc", "ttg.local_alloc", "ttg.local_load", "tt.dot", "tt.return"]
