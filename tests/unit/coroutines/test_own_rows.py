"""Subgroups get rows of their own where reductions go along rows, and only where that fits everything."""

from __future__ import annotations

import pytest
from triton.backends.spirv.coroutines.own_rows import encodings_along_rows
from triton.backends.spirv.transforms.rewriting import encode_again
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

MODULE = """
#tile = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 8], warpsPerCTA = [1, 4], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %x = arith.constant dense<1.0> : tensor<ROWSx64xf32, #tile>
SUMS
    tt.return
  }
}
"""
SUM = """
    %sAXIS = "tt.reduce"(%x) <{axis = AXIS : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %sum = arith.addf %l, %r : f32
      tt.reduce.return %sum : f32
    }) : (tensor<ROWSx64xf32, #tile>) -> tensor<LEFTxf32, #ttg.slice<{dim = AXIS, parent = #tile}>>
"""


def moved(rows: int, *axes: int) -> str | None:
    """The module after the rewrite; None where it changes nothing."""
    sums = [SUM.replace("AXIS", str(axis)).replace("LEFT", str([64, rows][axis])) for axis in axes]
    module = parse_module(MODULE.replace("SUMS", "".join(sums)).replace("ROWS", str(rows)))
    meant = encodings_along_rows(module)
    if meant is None:
        return None
    encode_again(module, meant)
    return print_module(module)


def test_each_subgroup_has_rows_of_its_own():
    text = moved(16, 1)
    assert text is not None and text.count("warpsPerCTA = [4, 1]") == 3  # the constant, and the sum's two types
    assert text.count("warpsPerCTA = [1, 4]") == 1  # a name that nothing uses


@pytest.mark.parametrize(("rows", "axes"), [(2, (1,)), (16, (0,)), (16, (0, 1))])
def test_too_few_rows_and_reductions_along_columns_change_nothing(rows: int, axes: tuple[int, ...]):
    assert moved(rows, *axes) is None


def test_an_encoding_that_meets_another_one_stays():
    """Upstream lets encodings meet that mean the same, which they would no longer do."""
    other = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 8], warpsPerCTA = [2, 2], order = [1, 0]}>"
    meeting = f"""
    %thin = arith.constant dense<1.0> : tensor<16x1xf32, {other}>
    %wide = tt.broadcast %thin : tensor<16x1xf32, {other}> -> tensor<16x64xf32, #tile>
"""
    total = SUM.replace("AXIS", "1").replace("LEFT", "16")
    module = parse_module(MODULE.replace("SUMS", meeting + total).replace("ROWS", "16"))
    assert encodings_along_rows(module) is None
