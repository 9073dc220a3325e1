"""Transposed operands of matrix dots are read from buffers, the ones that are there if possible."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gpu.matrix_buffers import pad_matrix_buffers
from triton.backends.spirv.transforms.gpu.transposed_operands import buffer_transposed_operands
from triton.backends.spirv.ttgir.encodings import PaddedSharedEncoding, SwizzledSharedEncoding
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import MemDescType

MODULE = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#x = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#turned = #ttg.linear<{register = [[0, 1], [0, 8], [8, 0], [16, 0], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]], block = []}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%k: tensor<32x64xf16, #x>, %q: tensor<64x64xf16, #a>, %p: tensor<64x32xf16, #a>, %s: tensor<64x32xf32, #mma>, %o: tensor<64x64xf32, #mma>) {
    BUFFER
    %c = ttg.convert_layout %k : tensor<32x64xf16, #x> -> tensor<32x64xf16, #turned>
    %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<32x64xf16, #turned> -> tensor<64x32xf16, #b>
    %one = arith.constant 1 : i32
    EXTRA
    %d = tt.dot %q, %t, %s : tensor<64x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<64x32xf32, #mma>
    DOT
    tt.return
  }
}
"""  # noqa: E501
BUFFER = "%m = ttg.local_alloc %k : (tensor<32x64xf16, #x>) -> !ttg.memdesc<32x64xf16, #shared, #smem>"
DOT = """%l = ttg.local_load %m : !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<32x64xf16, #b>
    %e = tt.dot %p, %l, %o : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>"""


def module(buffer: str = "", extra: str = "", dot: str = "") -> Module:
    return parse_module(MODULE.replace("BUFFER", buffer).replace("EXTRA", extra).replace("DOT", dot))


def operations(source: Module) -> list[Operation]:
    body = source.functions["k"].body
    assert body is not None
    return body.entry.operations


def test_a_buffer_is_read_across_right_before_the_dot() -> None:
    source = module()
    assert buffer_transposed_operands(source)
    found = operations(source)
    assert [one.name for one in found] == [
        *("ttg.local_alloc", "arith.constant", "ttg.memdesc_trans", "ttg.local_load", "tt.dot", "tt.return")
    ]
    allocated, _, view, load, dot, _ = found
    assert isinstance(view.result.type, MemDescType) and view.result.type.shape == (64, 32)
    assert view.result.type.encoding == SwizzledSharedEncoding(8, 1, 8, (0, 1))
    assert dot.operands[1] is load.result and load.operands == [view.result] and view.operands == [allocated.result]
    assert not buffer_transposed_operands(source)


def test_a_buffer_that_is_there_is_used() -> None:
    source = module(BUFFER, dot=DOT)
    assert buffer_transposed_operands(source)
    assert [one.name for one in operations(source)].count("ttg.local_alloc") == 1


@pytest.mark.parametrize("buffer, dot", [("", ""), (BUFFER, DOT)])
def test_it_is_padded_for_both_ways_to_read_it(buffer: str, dot: str) -> None:
    source = module(buffer, dot=dot)
    buffer_transposed_operands(source)
    assert pad_matrix_buffers(source)
    encodings = {
        one.name: one.result.type.encoding for one in operations(source) if "mem" in one.name or "alloc" in one.name
    }
    assert encodings == {
        "ttg.local_alloc": PaddedSharedEncoding(((64, 8),), (1, 0), (32, 64)),
        "ttg.memdesc_trans": PaddedSharedEncoding(((64, 8),), (0, 1), (64, 32)),
    }


def test_what_else_needs_the_conversion_keeps_it() -> None:
    assert not buffer_transposed_operands(module(extra="%n = arith.addf %c, %c : tensor<32x64xf16, #turned>"))
    assert not buffer_transposed_operands(module(extra="%n = arith.addf %t, %t : tensor<64x32xf16, #b>"))
