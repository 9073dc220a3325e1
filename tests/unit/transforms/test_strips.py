"""What is counted and tried of loops over strips, which no pattern says. What they are: text/strips.ttgir."""

from typing import Any

import pytest
from triton.backends.spirv.analysis.loop_count import most_iterations
from triton.backends.spirv.driver_quirks import Driver
from triton.backends.spirv.transforms.strips import _Strips, cut_in_strips
from triton.backends.spirv.ttgir.ir import Block, Function, Operation
from triton.backends.spirv.ttgir.parser import parse_module

TILE = """
#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#across = #ttg.slice<{dim = 0, parent = #wide}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %to: tensor<8x1024x!tt.ptr<f32>, #wide>) {
    %j = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #across>
    %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<1024xi32, #across> -> tensor<1x1024xi32, #wide>
    %c = tt.broadcast %columns : tensor<1x1024xi32, #wide> -> tensor<8x1024xi32, #wide>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x1024x!tt.ptr<f32>, #wide>
    %a = tt.addptr %ps, %c : tensor<8x1024x!tt.ptr<f32>, #wide>, tensor<8x1024xi32, #wide>
    %x = tt.load %a : tensor<8x1024x!tt.ptr<f32>, #wide>
    tt.store %to, %x : tensor<8x1024x!tt.ptr<f32>, #wide>
    tt.return
  }
}
"""


def cut() -> Function:
    function = parse_module(TILE).functions["k"]
    assert cut_in_strips(function, Driver(unrolled_elementwise=100))
    return function


def test_iterations_of_a_loop_over_strips_are_known():
    (loop,) = (one for one in cut().walk() if one.name == "scf.for")
    start, end, step = (value.owner.attributes["value"] for value in loop.operands)
    assert start == 0 and end == 1024 and most_iterations(cut()) == end // step + 1


def test_a_dimension_whose_layout_cannot_be_cut_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort has a tensor of ten dimensions for each of its steps: to trace all of them along each took minutes."""
    tried: list[int] = []
    run = _Strips._run

    def recorded(self: _Strips, block: Block, sinks: list[Operation], dim: int) -> Any:
        tried.append(dim)
        return run(self, block, sinks, dim)

    monkeypatch.setattr(_Strips, "_run", recorded)
    assert [one.name for one in cut().walk()].count("scf.for") == 1 and set(tried) == {1}


@pytest.mark.parametrize("alone", [False, True])
def test_a_load_goes_past_no_wait_where_something_is_stored(alone: bool) -> None:
    """Arguments may overlap: what is loaded before a wait is not what is stored behind it."""
    moved = """
    %v = ttg.convert_layout %columns : tensor<1x1024xi32, #wide> -> tensor<1x1024xi32, #other>
    tt.store %to, %x"""
    other = (
        "#other = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>"
    )
    text = other + TILE.replace("\n    tt.store %to, %x", moved)
    function = parse_module(text).functions["k"]
    cut_in_strips(function, Driver(unrolled_elementwise=100), True, alone)
    assert function.body is not None
    order = [one.name for one in function.walk() if one.name in ("tt.load", "ttg.convert_layout", "tt.store")]
    assert order.index("tt.load") < order.index("ttg.convert_layout") < order.index("tt.store")
