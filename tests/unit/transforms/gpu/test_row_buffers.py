"""Which rows of a loop are loaded by way of shared memory."""

from __future__ import annotations

import re

import pytest
from triton.backends.spirv.transforms.gpu.row_buffers import buffer_rows
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module

from ..test_meaning import ROWS

LANES, WARPS = 8, 4
#: Bytes of the loop's buffers of 16×32 float32, and of the row.
BUFFERS, ROW = 2 * 16 * 32 * 4, 16 * 4


def rewritten(text: str, most: int = BUFFERS + ROW, stages: int = 2) -> list[str] | None:
    """The loop's operations on the row and on shared memory; None if nothing was changed."""
    module = parse_module(text)
    function = module.functions["k"]
    if not buffer_rows(function, stages, LANES, WARPS, most):
        return None
    verify(module)
    (loop,) = (operation for operation in function.walk() if operation.name == "scf.for")
    names = [one.name for one in loop.regions[0].entry.operations]
    return [name for name in names if name in ("tt.load", "ttg.local_alloc", "ttg.local_load", "tt.expand_dims")]


def test_a_row_is_loaded_once_and_read_where_it_is_used() -> None:
    tile = ["tt.load", "ttg.local_alloc", "ttg.local_load", "ttg.local_load", "ttg.local_load"]
    assert rewritten(ROWS) == [*tile, "tt.load", "ttg.local_alloc", "ttg.local_load", "tt.expand_dims"]


def test_each_lane_loads_one_number() -> None:
    module = parse_module(ROWS)
    assert buffer_rows(module.functions["k"], 2, LANES, WARPS, BUFFERS + ROW)
    (load,) = (one for one in module.walk() if one.name == "tt.load" and one.result.tensor.shape == (16,))
    encoding = load.result.tensor.encoding
    assert (encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta) == ((1,), (8,), (4,))  # type: ignore[union-attr]
    assert {operand.tensor.encoding for operand in load.operands} == {encoding}


@pytest.mark.parametrize("most, stages", [(BUFFERS + ROW - 1, 2), (BUFFERS + ROW, 1)], ids=["no room", "one stage"])
def test_only_with_room_and_loads_ahead(most: int, stages: int) -> None:
    assert rewritten(ROWS, most, stages) is None


def test_few_registers_are_loaded_ahead_as_they_are() -> None:
    narrow = "sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1]"
    assert (
        rewritten(ROWS.replace("sizePerThread = [1, 16], threadsPerWarp = [8, 1], warpsPerCTA = [4, 1]", narrow))
        is None
    )


def test_a_volatile_load_stays() -> None:
    assert rewritten(ROWS.replace("%ra, %known, %seven :", "%ra, %known, %seven {isVolatile = true} :")) is None


def test_what_is_masked_by_more_than_places_stays() -> None:
    text = ROWS.replace("%n: i32)", "%n: i32, %mask: tensor<16xi1, #columns>)")
    assert rewritten(text.replace("%ra, %known, %seven", "%ra, %mask, %seven")) is None


def test_what_is_masked_by_one_of_two_results_stays() -> None:
    extended = "%sum, %over = arith.addui_extended %rr, %limit : tensor<16xi32, #columns>, tensor<16xi1, #columns>"
    text = ROWS.replace("      %seven =", f"      {extended}\n      %seven =")
    assert rewritten(text.replace("%ra, %known, %seven", "%ra, %over, %seven")) is None


def test_what_is_not_loaded_ahead_stays() -> None:
    """Its address is a number that the loop loads."""
    text = ROWS.replace("%n: i32)", "%n: i32, %places: !tt.ptr<i32>)")
    loaded = "%place = tt.load %places : !tt.ptr<i32>\n      %rp = tt.addptr %p, %place"
    assert rewritten(text.replace("%rp = tt.addptr %p, %i", loaded)) is None


def test_what_stands_before_a_dot_whose_operands_are_loaded_stays() -> None:
    """The dots would not find their operands in shared memory any more."""
    row = re.search(r"(?s)      %rp = .*?(?=      %r1 =)", ROWS)
    assert row is not None
    text = ROWS.replace(row[0], "")
    assert rewritten(text.replace("      %d = tt.dot", row[0] + "      %d = tt.dot")) is None
    assert rewritten(text.replace("      %l = ", row[0] + "      %l = ")) is not None


def test_a_loop_without_buffers_stays() -> None:
    text = re.sub(r" +%m = .*\n", "", ROWS).replace("%m :", "%mf :").replace("%m {", "%mf {")
    assert rewritten(text) is None
