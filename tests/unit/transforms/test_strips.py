"""Long element-by-element code goes into loops over strips, and only where that is the same program."""

from __future__ import annotations

from typing import Any

import pytest
from triton.backends.spirv.analysis.loop_count import most_iterations
from triton.backends.spirv.driver_quirks import Driver
from triton.backends.spirv.transforms.strip_loops import ROLLED
from triton.backends.spirv.transforms.strips import _Strips, cut_in_strips
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Block, Function, Operation
from triton.backends.spirv.ttgir.parser import parse_module

MODULE = """
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#twos = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#down = #ttg.slice<{dim = 1, parent = #wide}>
#across = #ttg.slice<{dim = 0, parent = #wide}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %given: tensor<1024xf32, #row>) {
BODY
    tt.return
  }
}
"""

ROW = """
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #row>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %a = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %b = tt.addptr %qs, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %x = tt.load %a : tensor<1024x!tt.ptr<f32>, #row>
BETWEEN
    %y = arith.addf %x, %x : tensor<1024xf32, #row>
    tt.store %b, VALUE : tensor<1024x!tt.ptr<f32>, #row>
AFTER
"""

TILE = """
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #down>
    %j = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #across>
    %width = arith.constant dense<32> : tensor<64x1xi32, #wide>
    %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #down> -> tensor<64x1xi32, #wide>
    %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<32xi32, #across> -> tensor<1x32xi32, #wide>
    %starts = arith.muli %rows, %width : tensor<64x1xi32, #wide>
    %r = tt.broadcast %starts : tensor<64x1xi32, #wide> -> tensor<64x32xi32, #wide>
    %c = tt.broadcast %columns : tensor<1x32xi32, #wide> -> tensor<64x32xi32, #wide>
    %at = arith.addi %r, %c : tensor<64x32xi32, #wide>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>, #wide>
    %a = tt.addptr %ps, %at : tensor<64x32x!tt.ptr<f32>, #wide>, tensor<64x32xi32, #wide>
    %x = tt.load %a : tensor<64x32x!tt.ptr<f32>, #wide>
    tt.store %a, %x : tensor<64x32x!tt.ptr<f32>, #wide>
"""


def cut(body: str, budget: int = 100, rows: bool = False) -> tuple[Function, list[Operation]]:
    """The function after the rewrite, and the loops that it made."""
    module = parse_module(MODULE.replace("BODY", body))
    function = module.functions["k"]
    assert function.body is not None
    changed = cut_in_strips(function, Driver(unrolled_elementwise=budget), rows)
    loops = [operation for operation in function.body.entry.operations if operation.name == "scf.for"]
    assert changed is bool(loops) and all(ROLLED in loop.attributes for loop in loops)
    verify(module)
    return function, loops


def row(between: str = "", value: str = "%y", after: str = "") -> str:
    return ROW.replace("BETWEEN", between).replace("VALUE", value).replace("AFTER", after)


def names(loop: Operation) -> list[str]:
    return [operation.name for operation in loop.regions[0].entry.operations]


def test_a_row_is_cut_to_what_the_budget_has_room_for():
    function, (loop,) = cut(row(), 200)
    bounds = [value.owner.attributes["value"] for value in loop.operands if isinstance(value.owner, Operation)]
    assert bounds == [0, 1024, 256]  # 32 registers take 608 instructions, 8 of them 152
    assert names(loop)[-1] == "scf.yield" and names(loop).count("tt.load") == names(loop).count("tt.store") == 1
    assert {result.type.shape for operation in loop.walk() for result in operation.results} == {(256,)}
    left = [operation.name for operation in function.body.entry.operations]
    assert left == ["arith.constant"] * 3 + ["scf.for", "tt.return"]
    assert most_iterations(function) == 5


def test_strips_have_whole_tiles_of_their_layout():
    _, (loop,) = cut(row(), 1)
    assert loop.operands[2].owner.attributes["value"] == 128


def test_what_is_short_stays():
    assert cut(row(), 1000)[1] == []


def test_a_tile_is_cut_along_its_rows():
    _, (loop,) = cut(TILE, 400)
    shapes = {result.type.shape for operation in loop.walk() for result in operation.results}
    assert shapes == {(16,), (16, 1), (16, 32)}
    assert "tt.expand_dims" in names(loop) and names(loop).count("tt.make_range") == 1  # columns stay outside


SCAN = """
    %one = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.scan.return %s : f32
    }) : (tensor<1024xf32, #row>) -> tensor<1024xf32, #row>
"""

#: What ends a loop before it: what is needed behind it goes into an array.
APART = {
    "a barrier between": (row("    ttg.barrier local"), [1, 0]),
    "a report between": (row('    tt.print "x" {hex = false, isSigned = array<i32: 0>} : %n : i32'), [1, 0]),
    "another store between": (
        row("    %three = arith.constant 3.0 : f32\n    tt.store %p, %three : !tt.ptr<f32>"),
        [1, 0],
    ),
    "a value from elsewhere": (row(value="%given"), [0]),
    "what is loaded is used elsewhere": (row(SCAN), [1, 0]),
    "a volatile load": (row().replace("tt.load %a", "tt.load %a {isVolatile = true}"), [0]),
}


@pytest.mark.parametrize(("body", "loads"), APART.values(), ids=APART)
def test_arrays_hold_what_other_code_gives_or_needs(body: str, loads: list[int]):
    function, loops = cut(body, 10)
    assert [names(loop).count("tt.load") for loop in loops] == loads
    assert names(loops[-1]).count("tt.store") == 1 and names(loops[-1]).count("spirv.strip") == 1
    if len(loops) > 1:
        assert names(loops[0]).count("spirv.put") == 1 and names(loops[0]).count("tt.store") == 0
    order = [operation.name for operation in function.body.entry.operations]
    for fence in ("ttg.barrier", "tt.print", "tt.scan"):
        if fence in order:
            first, last = (place for place, name in enumerate(order) if name == "scf.for")
            assert first < order.index(fence) < last


@pytest.mark.parametrize("body", [body for body, _ in APART.values()], ids=APART)
def test_arrays_have_to_spare_more_than_they_cost(body: str):
    assert cut(body, 300)[1] == []


CONVERTED = """
    %other = ttg.convert_layout %y : tensor<1024xf32, #row> -> tensor<1024xf32, #twos>
    %t = tt.splat %TO : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #twos>
    %k = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #twos>
    %u = tt.addptr %t, %k : tensor<1024x!tt.ptr<f32>, #twos>, tensor<1024xi32, #twos>
    tt.store %u, %other : tensor<1024x!tt.ptr<f32>, #twos>
"""


def test_a_conversion_is_between_loops():
    body = row(after=CONVERTED.replace("%TO", "%q")).replace(
        "    tt.store %b, %y : tensor<1024x!tt.ptr<f32>, #row>\n", ""
    )
    function, loops = cut(body, 10)
    assert [names(loop).count("tt.load") for loop in loops] == [1, 0]
    order = [operation.name for operation in function.body.entry.operations]
    assert order.index("scf.for") < order.index("ttg.convert_layout") < len(order) - order[::-1].index("scf.for")


PASSED = """
    %v = ttg.convert_layout %given : tensor<1024xf32, #row> -> tensor<1024xf32, #twos>
    %w = ttg.convert_layout %v : tensor<1024xf32, #twos> -> tensor<1024xf32, #row>
"""


def test_a_load_goes_past_no_wait():
    """The conversions have barriers, behind which other lanes may be at the store already: arguments may overlap."""
    body = row(PASSED, "%w2").replace(
        "    tt.store %b", "    %w2 = arith.addf %w, %y : tensor<1024xf32, #row>\n    tt.store %b"
    )
    function, loops = cut(body, 10)
    assert [names(loop).count("tt.load") for loop in loops] == [1, 0]
    order = [operation.name for operation in function.body.entry.operations]
    first, last = (place for place, name in enumerate(order) if name == "scf.for")
    assert first < order.index("ttg.convert_layout") < last


TWO_LOADS = """
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #row>
    %m = arith.fptosi %given : tensor<1024xf32, #row> to tensor<1024xi32, #row>
    %n2 = arith.fptoui %given : tensor<1024xf32, #row> to tensor<1024xi32, #row>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %a = tt.addptr %ps, %m : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %b = tt.addptr %qs, %n2 : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %x = tt.load %a : tensor<1024x!tt.ptr<f32>, #row>
    %y = tt.load %b : tensor<1024x!tt.ptr<f32>, #row>
    %v = ttg.convert_layout %given : tensor<1024xf32, #row> -> tensor<1024xf32, #twos>
    %w = ttg.convert_layout %v : tensor<1024xf32, #twos> -> tensor<1024xf32, #row>
    %both = arith.addf FIRST, SECOND : tensor<1024xf32, #row>
    %sum = arith.addf %both, %w : tensor<1024xf32, #row>
    %to = tt.addptr %qs, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    tt.store %to, %sum : tensor<1024x!tt.ptr<f32>, #row>
"""


@pytest.mark.parametrize("order", [("%x", "%y"), ("%y", "%x")], ids=["in order", "the later one first"])
def test_an_array_that_an_earlier_loop_reads_as_well_is_made_before_both(order: tuple[str, str]):
    function, loops = cut(TWO_LOADS.replace("FIRST", order[0]).replace("SECOND", order[1]), 10)
    assert [names(loop).count("tt.load") for loop in loops] == [1, 1, 0]
    spilled = [one.operands[0].name for one in function.body.entry.operations if one.name == "spirv.spill"]
    assert sorted(spilled) == ["given", "w"]


def test_stores_of_one_size_share_a_loop():
    _, loops = cut(row(after="    tt.store %a, %y : tensor<1024x!tt.ptr<f32>, #row>"))
    (loop,) = loops
    assert names(loop).count("tt.store") == 2 and names(loop).count("tt.load") == 1


def test_a_load_after_a_store_is_in_a_loop_of_its_own():
    again = (
        "    %again = tt.load %b : tensor<1024x!tt.ptr<f32>, #row>\n"
        "    tt.store %a, %again : tensor<1024x!tt.ptr<f32>, #row>"
    )
    _, loops = cut(row(after=again))
    assert [names(loop).count("tt.store") for loop in loops] == [1, 1]


SUM = """
    %one = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<1024xf32, #row>) -> f32
"""


def test_a_reduction_along_the_loop_carries_a_tile():
    function, (loop,) = cut(row(after=SUM + "    tt.store %q, %one : !tt.ptr<f32>"), 200)
    assert function.body is not None
    assert names(loop).count("tt.store") == 1 and names(loop)[-2:] == ["spirv.fold", "scf.yield"]
    assert [result.type.shape for result in loop.results] == [(128,)]
    (reduction,) = (one for one in function.body.entry.operations if one.name == "tt.reduce")
    assert reduction.operands == loop.results and reduction.result.uses[0].name == "tt.store"


def test_what_needs_a_reduction_is_in_a_later_loop():
    mean = (
        SUM
        + """
    %ones = tt.splat %one : f32 -> tensor<1024xf32, #row>
    %z = arith.subf %y, %ones : tensor<1024xf32, #row>
    tt.store %b, %z : tensor<1024x!tt.ptr<f32>, #row>
"""
    )
    body = row(after=mean).replace("    tt.store %b, %y : tensor<1024x!tt.ptr<f32>, #row>\n", "")
    _, (first, second) = cut(body, 100)
    assert "spirv.fold" in names(first) and names(first).count("tt.load") == 1
    assert names(second).count("spirv.strip") == 1 and names(second).count("tt.store") == 1


ROWS = """
    %sums = "tt.reduce"(%x) <{axis = AXIS : i32}> ({
    ^bb0(%left: f32, %right: f32):
      %s = arith.addf %left, %right : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x32xf32, #wide>) -> tensor<64xf32, #down>
    %apart = tt.expand_dims %sums {axis = 1 : i32} : tensor<64xf32, #down> -> tensor<64x1xf32, #wide>
    %more = tt.broadcast %apart : tensor<64x1xf32, #wide> -> tensor<64x32xf32, #wide>
    %y = arith.subf %x, %more : tensor<64x32xf32, #wide>
    tt.store %a, %y : tensor<64x32x!tt.ptr<f32>, #wide>
"""


def test_rows_that_one_subgroup_has_are_reduced_in_the_loop():
    stored = "    tt.store %a, %x : tensor<64x32x!tt.ptr<f32>, #wide>\n"
    _, (loop,) = cut(TILE.replace(stored, ROWS.replace("AXIS", "1")), 400)
    (reduction,) = (one for one in loop.regions[0].entry.operations if one.name == "tt.reduce")
    assert reduction.operands[0].type.shape == (8, 32) and reduction.result.type.shape == (8,)
    assert names(loop).count("tt.store") == 1


def test_long_rows_are_reduced_piece_by_piece():
    """One subgroup has whole rows, but a lane has too much of each."""
    body = TILE.replace("64x32", "8x8192").replace("64x1x", "8x1x").replace("1x32x", "1x8192x")
    body = body.replace("end = 64", "end = 8").replace("end = 32", "end = 8192")
    body = body.replace("tensor<64xi32", "tensor<8xi32").replace("tensor<32xi32", "tensor<8192xi32")
    stored = "    tt.store %a, %x : tensor<8x8192x!tt.ptr<f32>, #wide>\n"
    rows = ROWS.replace("64x32", "8x8192").replace("64x1x", "8x1x").replace("64xf32", "8xf32").replace("AXIS", "1")
    _, loops = cut(body.replace(stored, rows), 400)
    assert "spirv.fold" in names(loops[0]) and names(loops[1]).count("tt.store") == 1


LINES = """
#line = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 8], warpsPerCTA = [1, 4], order = [1, 0]}>
#other = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 8], warpsPerCTA = [1, 4], order = [1, 0]}>
"""


def test_a_line_is_not_cut_along_its_axis_of_one():
    body = """
    %l = tt.reshape %given : tensor<1024xf32, #row> -> tensor<1x1024xf32, #line>
    %e = math.exp %l : tensor<1x1024xf32, #line>
    %s = math.sin %e : tensor<1x1024xf32, #line>
    %o = ttg.convert_layout %s : tensor<1x1024xf32, #line> -> tensor<1x1024xf32, #other>
    tt.print ": " {hex = false, isSigned = array<i32: 0>} : %o : tensor<1x1024xf32, #other>
"""
    function = parse_module(LINES + MODULE.replace("BODY", body)).functions["k"]
    assert function.body is not None and cut_in_strips(function, Driver(unrolled_elementwise=40))
    (loop,) = [operation for operation in function.body.entry.operations if operation.name == "scf.for"]
    bounds = [value.owner.attributes["value"] for value in loop.operands if isinstance(value.owner, Operation)]
    assert bounds[:2] == [0, 1024]


def test_a_dimension_whose_layout_cannot_be_cut_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort has a tensor of ten dimensions for each of its steps: to trace all of them along each took minutes."""
    tried: list[int] = []
    run = _Strips._run

    def recorded(self: _Strips, block: Block, sinks: list[Operation], dim: int) -> Any:
        tried.append(dim)
        return run(self, block, sinks, dim)

    monkeypatch.setattr(_Strips, "_run", recorded)
    wide = TILE.replace("64x", "8x").replace("end = 64", "end = 8").replace("<64", "<8").replace("x32x", "x1024x")
    wide = wide.replace("end = 32", "end = 1024").replace("<32x", "<1024x").replace("dense<32>", "dense<1024>")
    _, loops = cut(wide)
    assert len(loops) == 1 and set(tried) == {1}


TURN = """
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 1], warpsPerCTA = [1, 1], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @k(%p: tensor<NxNx!tt.ptr<f32>, #rows>, %q: tensor<NxNx!tt.ptr<f32>, #rows>) {
    %x = tt.load %p : tensor<NxNx!tt.ptr<f32>, #rows>
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<NxNxf32, #rows> -> tensor<NxNxf32, #columns>
    %y = ttg.convert_layout %t : tensor<NxNxf32, #columns> -> tensor<NxNxf32, #rows>
    tt.store %q, %y : tensor<NxNx!tt.ptr<f32>, #rows>
    tt.return
  }
}
"""


@pytest.mark.parametrize(
    ("side", "most", "shapes"),
    [(64, 64, {(16, 64), (64, 16)}), (128, 128, {(16, 128), (128, 16)}), (64, 256, {(64, 64)}), (64, 32, {(64, 64)})],
    ids=["64", "128", "what is allowed as a whole", "what strips do not allow either"],
)
def test_a_conversion_of_many_shuffles_is_cut(side: int, most: int, shapes: set[tuple[int, ...]]):
    module = parse_module(TURN.replace("NxN", f"{side}x{side}"))
    function = module.functions["k"]
    cut_in_strips(function, Driver(unrolled_elementwise=100, most_shuffles=most), True)
    verify(module)
    conversions = [operation for operation in function.walk() if operation.name == "ttg.convert_layout"]
    assert {value.tensor.shape for one in conversions for value in (*one.operands, *one.results)} <= shapes
    assert all(
        any(ROLLED in holder.attributes for holder in one.holders()) is ((side, side) not in shapes)
        for one in conversions
    )


_SCAN = """
    %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%l: f32, %r: f32):
      tt.scan.return %r : f32
    }) : (tensor<1024xf32, #row>) -> tensor<1024xf32, #row>
    %e = arith.negf %s : tensor<1024xf32, #row>
"""


def test_scans_in_the_order_of_rows_stay_whole():
    for computed, rows, loops in (("arith.negf", True, 0), ("arith.negf", False, 2), ("math.exp", True, 2)):
        assert len(cut(row(_SCAN.replace("arith.negf", computed), "%e"), rows=rows)[1]) == loops
