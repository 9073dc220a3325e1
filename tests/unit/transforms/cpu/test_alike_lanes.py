"""Which quotients and remainders lanes have in common, and where that may be used."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.cpu.alike_lanes import ALIKE, NEIGHBOURS, SAME, mark_alike
from triton.backends.spirv.ttgir.parser import parse_module

TEXT = """
#row = #ttg.blocked<{sizePerThread = [SIZE], threadsPerWarp = [16], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32 {tt.divisibility = DIVISOR : i32}) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #row>
    %b = tt.get_program_id x : i32
    %c = arith.constant BLOCK : i32
    %s = arith.muli %b, %c : i32
    %ss = tt.splat %s : i32 -> tensor<128xi32, #row>
    %x = arith.addi %ss, %i : tensor<128xi32, #row>
    %d = tt.splat %n : i32 -> tensor<128xi32, #row>
    %r = arith.OPERATION %x, %d : tensor<128xi32, #row>
    USES
    tt.return
  }
}
"""
ADDRESSES = """
    %w = arith.extsi %r : tensor<128xi32, #row> to tensor<128xi64, #row>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %a = tt.addptr %ps, %w : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi64, #row>
    %v = tt.load %a : tensor<128x!tt.ptr<f32>, #row>
    tt.store %a, %v : tensor<128x!tt.ptr<f32>, #row>
"""
A_NUMBER = ADDRESSES.replace("%v = tt.load %a :", "%v = arith.sitofp %r : tensor<128xi32, #row> to").replace(
    "to tensor<128x!tt.ptr<f32>, #row>\n    tt.store", "to tensor<128xf32, #row>\n    tt.store"
)


def marked(operation: str, uses: str = ADDRESSES, divisor: int = 16, block: int = 128, size: int = 1) -> str | None:
    text = TEXT.replace("OPERATION", operation).replace("USES", uses).replace("DIVISOR", str(divisor))
    module = parse_module(text.replace("BLOCK", str(block)).replace("SIZE", str(size)))
    changed = mark_alike(module.functions["k"])
    (found,) = (one for one in module.walk() if one.name == f"arith.{operation}")
    assert changed == (ALIKE in found.attributes)
    return found.attributes.get(ALIKE)


@pytest.mark.parametrize("sign", "su")
def test_remainders_are_neighbours_and_quotients_are_one(sign: str) -> None:
    assert marked(f"rem{sign}i") == NEIGHBOURS
    assert marked(f"div{sign}i") == SAME


@pytest.mark.parametrize("operation", ["remsi", "divui"])
def test_a_block_or_divisor_that_begins_in_a_vector_gives_any(operation: str) -> None:
    assert marked(operation, divisor=8) is None
    assert marked(operation, block=8) is None


def test_signed_numbers_that_are_more_than_addresses_stay() -> None:
    assert marked("remsi", A_NUMBER) is None
    assert marked("remui", A_NUMBER) == NEIGHBOURS


def test_lanes_that_hold_several_neighbours_are_none() -> None:
    assert marked("remsi", size=4) is None
