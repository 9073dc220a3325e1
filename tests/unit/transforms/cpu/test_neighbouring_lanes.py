"""Neighbouring lanes hold neighbouring elements, and encodings still follow from each other."""

import numpy as np
import pytest
from triton.backends.spirv.layouts.strip_layouts import ROWS, array_places, has_copies, memory_strides, strip_bits
from triton.backends.spirv.transforms.cpu.neighbouring_lanes import neighbouring_lanes, row_major
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.encodings import BlockedEncoding, SliceEncoding
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FloatType, TensorType

from tests.meaning import run

HEAD = """
#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#tall = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 2], warpsPerCTA = [1, 1], order = [0, 1]}>
#half = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#pair = #ttg.blocked<{sizePerThread=[1, 4, 2], threadsPerWarp=[2, 8, 1], warpsPerCTA=[1, 1, 1], order=[2, 1, 0]}>
#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [16], warpsPerCTA = [1], order = [0]}>
#rows = #ttg.slice<{dim = 1, parent = #wide}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @k(%x: tensor<32x64xf32, #wide>) -> RESULT {
"""


def rewritten(body: str, result: str) -> tuple[Module, Module]:
    text = f"{HEAD.replace('RESULT', result)}{body}\n  }}\n}}\n"
    before, module = parse_module(text), parse_module(text)
    verify(before)
    assert neighbouring_lanes(module)
    verify(module)
    x = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    run(before, x).same(run(module, x))
    return before, module


def encodings(module: Module, name: str) -> list[object]:
    return [value.tensor.encoding for one in module.walk() if one.name == name for value in one.results]


def test_a_transposition_renames_registers() -> None:
    result = "tensor<64x32xf32, #tall>"
    _, module = rewritten(
        f"    %t = tt.trans %x {{order = array<i32: 1, 0>}} : tensor<32x64xf32, #wide> -> {result}\n"
        f"    tt.return %t : {result}",
        result,
    )
    assert encodings(module, "tt.trans") == [BlockedEncoding((1, 1), (16, 1), (1, 1), (0, 1))]
    assert not encodings(module, "ttg.convert_layout")


def test_sums_of_rows_are_slices_of_the_same() -> None:
    _, module = rewritten(
        """    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<32x64xf32, #wide>) -> tensor<32xf32, #rows>
    tt.return %s : tensor<32xf32, #rows>""",
        "tensor<32xf32, #rows>",
    )
    assert encodings(module, "tt.reduce") == [SliceEncoding(1, BlockedEncoding((1, 1), (1, 16), (1, 1), (1, 0)))]


def test_a_reshape_keeps_the_order_of_elements() -> None:
    """Rows of 32 and of 64 elements are whole vectors one behind the other."""
    result = "tensor<64x32xf32, #half>"
    body = f"    %r = tt.reshape %x : tensor<32x64xf32, #wide> -> {result}\n    tt.return %r : {result}"
    module = parse_module(f"{HEAD.replace('RESULT', result)}{body}\n  }}\n}}\n")
    assert neighbouring_lanes(module)
    verify(module)
    assert not encodings(module, "ttg.convert_layout")


def test_pairs_that_upstream_keeps_in_a_lane_stay_there() -> None:
    result = "tensor<32x64x2xf32, #pair>"
    _, module = rewritten(
        f"    %r = tt.join %x, %x : tensor<32x64xf32, #wide> -> {result}\n    tt.return %r : {result}", result
    )
    assert encodings(module, "tt.join") == [BlockedEncoding((1, 4, 2), (2, 8, 1), (1, 1, 1), (2, 1, 0))]
    assert len(encodings(module, "ttg.convert_layout")) == 3


def _type(shape: tuple[int, ...], encoding: object) -> TensorType:
    return TensorType(shape, FloatType("f32"), encoding)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
@pytest.mark.parametrize("shape", [(64, 32), (8, 128), (128, 8), (16, 1), (4, 2)], ids=str)
def test_memory_holds_the_tensor_in_order(shape: tuple[int, int], order: tuple[int, int]) -> None:
    type_ = _type(shape, row_major(shape, order, 16))
    fast, slow = order
    strides = [0, 0]
    strides[fast], strides[slow] = 1, shape[fast]
    assert memory_strides(type_) == tuple(
        stride if extent > 1 else 0 for stride, extent in zip(strides, shape, strict=True)
    )
    assert array_places(type_, ROWS) == tuple(range(max(shape[0] * shape[1] // 16, 1)))
    assert has_copies(type_) == (shape[0] * shape[1] < 16)


def test_memory_of_lanes_apart_has_no_strides() -> None:
    squares = BlockedEncoding((2, 2), (4, 4), (1, 1), (1, 0))
    assert memory_strides(_type((32, 32), squares)) is None


def test_rows_shorter_than_a_vector_have_copies_between() -> None:
    """Of 16 lanes along rows of 8 elements."""
    type_ = _type((4, 8), BlockedEncoding((1, 1), (1, 16), (1, 1), (1, 0)))
    assert memory_strides(type_) == (16, 1) and has_copies(type_)


def test_strips_along_any_dimension_are_bits_of_the_place() -> None:
    type_ = _type((32, 64), row_major((32, 64), (1, 0), 16))
    assert strip_bits(type_, 0, 8, ROWS) == (4, 5, 6)
    assert strip_bits(type_, 1, 4, ROWS) == (0, 1)
    assert strip_bits(type_, 1, 2, 1) == (6,)
