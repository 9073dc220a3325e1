"""Dots are cut along K into dots of the same order of sums."""

from pathlib import Path

import numpy as np
import pytest
from triton._C.libtriton import ir
from triton.backends.spirv.transforms.split_dots import split_dots
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module
from triton.backends.spirv.ttgir.types import TensorType

from tests.meaning import run

LOOP = """
module {
  tt.func public @k(%a: tensor<8x64xf32>, %b: tensor<64x16xf32>, %n: i32) -> tensor<8x16xf32> {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant dense<0.0> : tensor<8x16xf32>
    %q = arith.mulf %a, %a : tensor<8x64xf32>
    %r = scf.for %i = %c0 to %n step %n iter_args(%sum = %zero) -> (tensor<8x16xf32>) : i32 {
      %w = arith.mulf %b, %b : tensor<64x16xf32>
      %d = tt.dot %q, %w, %sum : tensor<8x64xf32> * tensor<64x16xf32> -> tensor<8x16xf32>
      scf.yield %d : tensor<8x16xf32>
    }
    tt.return %r : tensor<8x16xf32>
  }
}
"""


@pytest.mark.parametrize(("pieces", "steps"), [(1, [64]), (2, [32] * 2), (4, [16] * 4), (8, [16] * 4)])
def test_the_pieces_make_the_whole(pieces: int, steps: list[int]) -> None:
    module = parse_module(LOOP)
    assert split_dots(module, pieces) == (pieces > 1)
    verify(module)
    dots = [operation.operands[0].type for operation in module.walk() if operation.name == "tt.dot"]
    assert [type_.shape[1] for type_ in dots if isinstance(type_, TensorType)] == steps
    rng = np.random.default_rng(7)
    a, b = rng.integers(-9, 9, (8, 64)), rng.integers(-9, 9, (64, 16))
    np.testing.assert_array_equal(run(module, a, b, 1).results[0], (a * a) @ (b * b))


def test_upstream_takes_the_result(tmp_path: Path) -> None:
    module = parse_module(LOOP)
    split_dots(module, 4)
    path = tmp_path / "split.ttir"
    path.write_text(print_module(module))
    context = ir.context()
    ir.load_dialects(context)
    assert str(ir.parse_mlir_module(str(path), context)).count("tt.dot ") == 4


def test_what_does_not_change_in_a_loop_is_parted_before_it() -> None:
    module = parse_module(LOOP)
    split_dots(module, 2)
    body = module.functions["k"].body
    assert body is not None
    assert [operation.name for operation in body.entry.operations].count("tt.split") == 1
    loop = next(operation for operation in body.entry.operations if operation.name == "scf.for")
    assert [operation.name for operation in loop.regions[0].entry.operations].count("tt.split") == 1


def test_short_dots_stay() -> None:
    short = LOOP.replace("8x64", "8x16").replace("64x16", "16x16")
    module = parse_module(short)
    before = print_module(module)
    assert not split_dots(module, 2)
    assert print_module(module) == before


SCALED = """
module {
  tt.func public @k(%a: tensor<8x64xi8>, %sa: tensor<8x4xi8>, %b: tensor<128x16xf8E5M2>, %sb: tensor<16x4xi8>,
      %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e5m2 {fastMath = false}
        : tensor<8x64xi8>, tensor<8x4xi8> * tensor<128x16xf8E5M2>, tensor<16x4xi8> -> tensor<8x16xf32>
    tt.return %d : tensor<8x16xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("pieces", "bytes_of_a", "scales"), [(2, [32] * 2, 2), (4, [16] * 4, 1), (8, [8] * 8, 1), (16, [8] * 8, 1)]
)
def test_scaled_dots_are_cut_with_their_scales(pieces: int, bytes_of_a: list[int], scales: int, tmp_path: Path) -> None:
    """Down to 16 elements; pieces of a group share its scale."""
    module = parse_module(SCALED)
    assert split_dots(module, pieces)
    verify(module)
    dots = [operation for operation in module.walk() if operation.name == "tt.dot_scaled"]
    assert [dot.operands[0].tensor.shape[1] for dot in dots] == bytes_of_a
    assert [dot.operands[1].tensor.shape[0] for dot in dots] == [2 * count for count in bytes_of_a]
    assert {dot.operands[number].tensor.shape[1] for dot in dots for number in (3, 4)} == {scales}
    path = tmp_path / "split.ttir"
    path.write_text(print_module(module))
    context = ir.context()
    ir.load_dialects(context)
    assert str(ir.parse_mlir_module(str(path), context)).count("tt.dot_scaled ") == len(dots)
