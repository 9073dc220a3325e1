"""Gathers that go through shared memory are not converted to the layout that shuffles would need."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gathers import gather_without_conversions
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module

TEXT = """
#rows = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#lines = #ttg.blocked<{sizePerThread = [EACH, 1], threadsPerWarp = [8, 1], warpsPerCTA = [2, 2], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%x: tensor<SIZEx2xf32, #rows>, %i: tensor<SIZEx2xi32, #rows>,
      %p: tensor<SIZEx2x!tt.ptr<f32>, #rows>, %q: tensor<SIZEx2x!tt.ptr<f32>, #lines>) {
    %a = ttg.convert_layout %x : tensor<SIZEx2xf32, #rows> -> tensor<SIZEx2xf32, #lines>
    %b = ttg.convert_layout %i : tensor<SIZEx2xi32, #rows> -> tensor<SIZEx2xi32, #lines>
    %g = tt.gather %a[%b] {axis = 0 : i32, efficient_layout} : (tensor<SIZEx2xf32, #lines>, tensor<SIZEx2xi32, #lines>)
      -> tensor<SIZEx2xf32, #lines>
    %c = ttg.convert_layout %g : tensor<SIZEx2xf32, #lines> -> tensor<SIZEx2xf32, #rows>
    tt.store %p, %c : tensor<SIZEx2x!tt.ptr<f32>, #rows>
OTHER
    tt.return
  }
}
"""
OTHER = "    tt.store %q, %g : tensor<SIZEx2x!tt.ptr<f32>, #lines>"


@pytest.mark.parametrize(
    ("each", "other", "wanted"),
    [
        (128, "", ["tt.gather", "tt.store", "tt.return"]),
        (128, OTHER, ["tt.gather", "ttg.convert_layout", "tt.store", "tt.store", "tt.return"]),
        (2, "", [*["ttg.convert_layout"] * 2, "tt.gather", "ttg.convert_layout", "tt.store", "tt.return"]),  # shuffles
    ],
)
def test_conversions_stay_where_shuffles_suffice(each: int, other: str, wanted: list[str]) -> None:
    text = TEXT.replace("OTHER", other).replace("EACH", str(each)).replace("SIZE", str(8 * each))
    module = parse_module(text)
    function = module.functions["k"]
    assert function.body is not None
    assert gather_without_conversions(function) is (each > 2)
    block = function.body.entry
    assert [operation.name for operation in block.operations] == wanted
    verify(module)
    (gather,) = (one for one in block.operations if one.name == "tt.gather")
    if each > 2:
        assert gather.operands == block.operations[0].operands == function.body.entry.arguments[:2]
        assert gather.result.type == gather.operands[0].type
