"""A loop's first round takes the constant that its accumulator begins with (transforms/cpu/first_rounds.py)."""

from __future__ import annotations

import pytest
from triton.backends.spirv.ttgir.ir import Module, Operation
from triton.backends.spirv.ttgir.parser import parse_module

from ..test_meaning import drawn
from .test_tile_meaning import HEAD, PAIR, in_tiles, outcomes


def kernel(body: str, begin: str = "%none", compare: str = "") -> str:
    """A loop that carries %s, which begins with ``begin``; ``body`` makes %next of it and of %x."""
    return f"""{HEAD}
    %r = scf.for {compare}%i = %zero to %n step %one iter_args(%s = {begin}) -> (tensor<32x32xf32, #t>) : i32 {{
      {body}
      scf.yield %next : tensor<32x32xf32, #t>
    }}
    tt.return %r, %y : {PAIR}
  }}
}}
"""


SUM = "%next = arith.addf %s, %x : tensor<32x32xf32, #t>"


def rewritten(text: str) -> Module:
    module = parse_module(text)
    in_tiles(module)
    return module


def around(module: Module, name: str) -> list[list[str]]:
    """The names of the operations that hold each ``name``, from the inside."""

    def holders(operation: Operation) -> list[str]:
        return [holder.name for holder in operation.holders()]

    return [holders(operation) for operation in module.functions["k"].walk() if operation.name == name]


@pytest.mark.parametrize("compare", ["", "unsigned "], ids=["signed", "unsigned"])
@pytest.mark.parametrize("rounds", range(4))
def test_a_loop_begins_with_its_constant(rounds: int, compare: str) -> None:
    tiles = [drawn(seed, 1024).reshape(32, 32) for seed in (1, 2)]
    before, after = outcomes(kernel(SUM, compare=compare), in_tiles, rounds, True, *tiles)
    before.same(after)


def test_nothing_is_filled_before_a_loop_with_rounds() -> None:
    module = rewritten(kernel(SUM))
    assert around(module, "spirv.assign") == [["scf.if"]]
    assert around(module, "arith.select") == [["scf.for", "scf.for"]]


def test_what_is_no_constant_is_filled_in() -> None:
    module = rewritten(kernel(SUM, "%x"))
    assert "arith.select" not in {operation.name for operation in module.functions["k"].walk()}


def test_a_tensor_that_is_read_as_a_whole_first_is_filled() -> None:
    """As the operand of a product is."""
    product = """
      %sa = ttg.convert_layout %s : tensor<32x32xf32, #t> -> tensor<32x32xf32, #a>
      %xb = ttg.convert_layout %x : tensor<32x32xf32, #t> -> tensor<32x32xf32, #b>
      %d = tt.dot %sa, %xb, %none : tensor<32x32xf32, #a> * tensor<32x32xf32, #b> -> tensor<32x32xf32, #t>
      %next = arith.addf %s, %d : tensor<32x32xf32, #t>"""
    module = rewritten(kernel(product))
    assert "arith.select" not in {operation.name for operation in module.functions["k"].walk()}
