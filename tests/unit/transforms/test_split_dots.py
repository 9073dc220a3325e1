"""Dots are cut along K into dots of the same order of sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton._C.libtriton import ir
from triton.backends.spirv.transforms.split_dots import split_dots
from triton.backends.spirv.ttgir.ir import Module, Operation, Value
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

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


def interpreted(module: Module, a: Any, b: Any) -> tuple[Any, list[int]]:
    """What one pass through the body of LOOP gives, and the extent of K of each dot."""
    function = module.functions["k"]
    assert function.body is not None
    top = function.body.entry
    loop = next(operation for operation in top.operations if operation.name == "scf.for")
    known: dict[Value, Any] = {top.arguments[0]: a, top.arguments[1]: b}
    known[loop.regions[0].entry.arguments[1]] = np.zeros((8, 16))
    steps: list[int] = []

    def run(operation: Operation) -> None:
        values = [known[value] for value in operation.operands]
        if operation.name == "arith.mulf":
            made = [values[0] * values[1]]
        elif operation.name == "tt.reshape":
            made = [values[0].reshape(operation.result.type.shape)]
        elif operation.name == "tt.trans":
            made = [values[0].transpose(operation.attributes["order"])]
        elif operation.name == "tt.split":
            made = [values[0][..., 0], values[0][..., 1]]
        else:
            assert operation.name == "tt.dot"
            steps.append(values[0].shape[1])
            made = [values[0] @ values[1] + values[2]]
        known.update(zip(operation.results, made, strict=True))

    for operation in top.operations:
        if operation.name in ("arith.mulf", "tt.reshape", "tt.trans", "tt.split"):
            run(operation)
    for operation in loop.regions[0].entry.operations[:-1]:
        run(operation)
    return known[loop.regions[0].entry.terminator.operands[0]], steps


@pytest.mark.parametrize(("pieces", "steps"), [(1, [64]), (2, [32] * 2), (4, [16] * 4), (8, [16] * 4)])
def test_the_pieces_make_the_whole(pieces: int, steps: list[int]) -> None:
    module = parse_module(LOOP)
    assert split_dots(module, pieces) == (pieces > 1)
    rng = np.random.default_rng(7)
    a, b = rng.integers(-9, 9, (8, 64)), rng.integers(-9, 9, (64, 16))
    found, seen = interpreted(module, a, b)
    assert seen == steps
    np.testing.assert_array_equal(found, (a * a) @ (b * b))


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
