"""Encodings that upstream relates by what they mean still mean the same when fragments are the device's."""

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.transforms.table import Stage, rewrite
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.encodings import (
    BlockedEncoding,
    Encoding,
    FoldedEncoding,
    FragmentEncoding,
    NvidiaMmaEncoding,
    TransposedEncoding,
    unsliced,
)
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import encoding_of

#: ``#turned`` is ``#b`` transposed. A column of ``#rows`` lies as one of ``#turned``, and so does a tile of ``#pairs``.
TEXT = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#turned = #ttg.linear<{register = [[0, 1], [0, 8], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]], block = []}>
#product = #ttg.linear<{register = [[1, 0], [0, 8], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[8, 0]], block = []}>
#joined = #ttg.linear<{register = [[0, 1], [1, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 0], [0, 0], [0, 0]], warp = [[8, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%h: f16, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tt.splat %h : f16 -> tensor<16x16xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<16x32xf32, #mma>
    BODY
    tt.return
  }
}
"""  # noqa: E501
DOT = (
    "%d = tt.dot %x, %t, %zero : tensor<16x16xf16, #a> * tensor<16x32xf16, #b> -> tensor<16x32xf32, #mma>\n"
    "%r = tt.trans %d {order = array<i32: 1, 0>} : tensor<16x32xf32, #mma> -> tensor<32x16xf32, #product>"
)
COLUMN = """
    %c = tt.splat %h : f16 -> tensor<32x1xf16, #rows>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %v = tt.broadcast %c : tensor<32x1xf16, #rows> -> tensor<32x16xf16, #turned>
      %w = tt.broadcast %c : tensor<32x1xf16, #rows> -> tensor<32x16xf16, #turned>
      %m = arith.mulf %v, %w : tensor<32x16xf16, #turned>
      %t = tt.trans %m {order = array<i32: 1, 0>} : tensor<32x16xf16, #turned> -> tensor<16x32xf16, #b>
    DOT
    }"""
TILE = """
    %c = tt.splat %h : f16 -> tensor<32x16xf16, #pairs>
    %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<32x16xf16, #pairs> -> tensor<16x32xf16, #b>
    DOT"""
SUM = """"tt.reduce"(%r) <{axis = 1 : i32}> ({
    ^bb0(%one: f32, %other: f32):
      %both = arith.addf %one, %other : f32
      tt.reduce.return %both : f32
    }) : (tensor<32x16xf32, #product>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #product}>>"""
JOIN = f"""
    %t = tt.splat %h : f16 -> tensor<16x32xf16, #b>
    DOT
    %s = {SUM}
    %j = tt.join %s, %s : tensor<32xf32, #ttg.slice<{{dim = 1, parent = #product}}>> -> tensor<32x2xf32, #joined>"""

BATCHES = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1, 1], instrShape = [1, 16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#sum = #ttg.slice<{dim = 0, parent = #mma}>
#turned = #ttg.linear<{register = [[1, 0], [0, 8], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%h: f16) {
    %x = tt.splat %h : f16 -> tensor<2x16x16xf16, #a>
    %y = tt.splat %h : f16 -> tensor<2x16x16xf16, #b>
    %zero = arith.constant dense<0.0> : tensor<2x16x16xf32, #mma>
    %d = tt.dot %x, %y, %zero : tensor<2x16x16xf16, #a> * tensor<2x16x16xf16, #b> -> tensor<2x16x16xf32, #mma>
    %s = "tt.reduce"(%d) <{axis = 0 : i32}> ({
    ^bb0(%one: f32, %other: f32):
      %both = arith.addf %one, %other : f32
      tt.reduce.return %both : f32
    }) : (tensor<2x16x16xf32, #mma>) -> tensor<16x16xf32, #sum>
    %t = tt.trans %s {order = array<i32: 1, 0>} : tensor<16x16xf32, #sum> -> tensor<16x16xf32, #turned>
    tt.return
  }
}
"""  # noqa: E501

profiles = pytest.mark.parametrize("profile", ["nvidia-hopper", "amd-rdna3", "intel-xe", "lavapipe-26"])


def text(body: str) -> str:
    return TEXT.replace("BODY", body).replace("DOT", DOT)


def arranged(source: str, profile: str) -> tuple[Module, dict[str, Operation]]:
    """A module with the fragments of a profile, and its operations by the names of their results."""
    module, device = parse_module(source), PROFILES[profile]
    verify(module)
    assert rewrite(module, Stage.FRAGMENTS, device, Options(matrices=device.matrices))
    verify(module)
    return module, {one.results[0].name: one for one in module.walk() if one.results}


def encoding(operation: Operation) -> Encoding | None:
    """Of the result, as upstream's subgroups have it."""
    found = encoding_of(operation.result.type)
    return found.inner if isinstance(found, FoldedEncoding) else found


def conversions(module: Module) -> list[Operation]:
    return [operation for operation in module.walk() if operation.name == "ttg.convert_layout"]


@profiles
def test_a_column_of_a_transposed_operand_is_converted_once_before_the_loop(profile: str) -> None:
    module, named = arranged(text(COLUMN), profile)
    (conversion,) = conversions(module)
    assert conversion.operands == [named["c"].result] and conversion.block is named["c"].block
    assert named["v"].operands == named["w"].operands == [conversion.result]
    assert isinstance(encoding(named["c"]), BlockedEncoding)
    turned = encoding(named["m"])
    assert encoding(conversion) == turned == encoding(named["v"])
    assert isinstance(turned, TransposedEncoding) and isinstance(turned.inner, FragmentEncoding)


@profiles
def test_a_tile_that_is_loaded_as_upstreams_operand_lies_keeps_its_layout(profile: str) -> None:
    module, named = arranged(text(TILE), profile)
    (conversion,) = conversions(module)
    assert conversion.operands == [named["c"].result] and named["t"].operands == [conversion.result]
    assert isinstance(encoding(named["c"]), BlockedEncoding)


@profiles
def test_a_transposed_slice_of_a_product_follows_it(profile: str) -> None:
    module, named = arranged(BATCHES, profile)
    assert not conversions(module)
    turned = encoding(named["t"])
    assert isinstance(turned, TransposedEncoding) and isinstance(unsliced(turned.inner), FragmentEncoding)


def test_slices_whose_encoding_a_join_works_out_keep_what_upstream_means() -> None:
    module, named = arranged(text(JOIN), "nvidia-hopper")
    assert not conversions(module)
    assert isinstance(encoding(named["d"]), NvidiaMmaEncoding)
