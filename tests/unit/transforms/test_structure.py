"""Branches to structured regions: the same results, every operation once, nothing used where it is not visible."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.transforms.inline import single_block_body
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module, Region
from triton.backends.spirv.ttgir.operations import OPERATIONS, End
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import run

from .graphs import branching_functions, function

SEEDS = [(seed * 2654435761 & 0xFFFFFFFF, seed % 9) for seed in range(24)]


def structured(text: str) -> Module:
    """The module with its function ``k`` rewritten."""
    module = parse_module(text)
    single_block_body(module.functions["k"], module)
    return module


def body(module: Module) -> Region:
    """The body of ``k``."""
    found = module.functions["k"].body
    assert found is not None
    return found


def names(region: Region) -> Counter[str]:
    """How often each operation occurs."""
    return Counter(operation.name for block in region.blocks for top in block.operations for operation in top.walk())


def interpret(module: Module, *arguments: int) -> list[int]:
    """The results of ``k``, as unsigned numbers."""
    return [int(result) & 0xFFFFFFFF for result in run(module, *arguments).results]


def check_links(module: Module) -> None:
    """The module is valid, and each region one block."""
    verify(module)
    for operation in module.functions["k"].walk():
        assert not operation.successors and all(len(region.blocks) < 2 for region in operation.regions)


def same_results(text: str) -> None:
    original, rewritten = parse_module(text), structured(text)
    check_links(rewritten)
    before, after = names(body(original)), names(body(rewritten))
    assert not any(OPERATIONS[name].end is End.BRANCH for name in after)
    for name in ("arith.muli", "arith.addi"):
        assert after[name] <= before[name]
    for seed in SEEDS:
        assert interpret(rewritten, *seed) == interpret(original, *seed), seed


@settings(max_examples=150, deadline=None)
@given(branching_functions())
def test_graphs_without_loops(text: str) -> None:
    same_results(text)


@settings(max_examples=150, deadline=None)
@given(branching_functions(loops=True))
def test_graphs_with_loops(text: str) -> None:
    same_results(text)


def test_a_return_leaves_the_rest_in_the_other_branch() -> None:
    module = structured(
        function("""
        %zero = arith.constant 0 : i32
        %stop = arith.cmpi eq, %seed, %zero : i32
        cf.cond_br %stop, ^bb1, ^bb2
      ^bb1:
        tt.return %zero : i32
      ^bb2:
        %twice = arith.addi %seed, %seed : i32
        tt.return %twice : i32""")
    )
    assert names(body(module)) == {
        "arith.constant": 1,
        "arith.cmpi": 1,
        "scf.if": 1,
        "arith.addi": 1,
        "scf.yield": 2,
        "tt.return": 1,
    }
    assert interpret(module, 0) == [0] and interpret(module, 4) == [8]


def test_a_value_of_the_dominator_passes_no_branch() -> None:
    """Both ways lead to the merge with the same value: the scf.if has no result."""
    module = structured(
        function("""
        %zero = arith.constant 0 : i32
        %stop = arith.cmpi eq, %seed, %zero : i32
        cf.cond_br %stop, ^bb1, ^bb2(%seed : i32)
      ^bb1:
        cf.br ^bb2(%seed : i32)
      ^bb2(%last: i32):
        tt.return %last : i32""")
    )
    selections = [operation for operation in body(module).entry.operations if operation.name == "scf.if"]
    assert [operation.results for operation in selections] == [[]]
    assert interpret(module, 4) == [4]


def test_a_loop_that_is_entered_in_two_places_is_refused() -> None:
    text = function("""
        %zero = arith.constant 0 : i32
        %c = arith.cmpi eq, %seed, %zero : i32
        cf.cond_br %c, ^bb1, ^bb2
      ^bb1:
        cf.cond_br %c, ^bb2, ^bb3
      ^bb2:
        cf.br ^bb1
      ^bb3:
        tt.return %zero : i32""")
    with pytest.raises(UnsupportedOperation, match="entered in two places; enter the loop at its head"):
        structured(text)


def test_a_loop_without_an_end_is_refused() -> None:
    text = function("""
        %zero = arith.constant 0 : i32
        %c = arith.cmpi eq, %seed, %zero : i32
        cf.cond_br %c, ^bb1, ^bb2
      ^bb1:
        cf.br ^bb1
      ^bb2:
        tt.return %zero : i32""")
    with pytest.raises(UnsupportedOperation, match="never left; give the loop an end"):
        structured(text)


# -- calls -------------------------------------------------------------------------------------------------------
CALLEE = """
  tt.func private @{name}(%a: i32, %b: i32) -> (i32, i32) attributes {{noinline = true}} {{
    {body}
  }}
"""


def with_functions(text: str, **bodies: str) -> str:
    """``text`` with private functions of two i32 and two results."""
    return text.rstrip()[:-1] + "".join(CALLEE.format(name=name, body=body) for name, body in bodies.items()) + "}\n"


EARLY = """
    %c = arith.cmpi eq, %a, %b : i32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.return %b, %a : i32, i32
  ^bb2:
    %s = arith.addi %a, %b : i32
    tt.return %s, %a : i32, i32"""

TWICE = """
    %x:2 = tt.call @early(%a, %b) {ttg.global_scratch_memory_offset = 64 : i32} : (i32, i32) -> (i32, i32)
    %y:2 = tt.call @early(%x#0, %x#1) : (i32, i32) -> (i32, i32)
    tt.return %y#1, %y#0 : i32, i32"""


def test_calls_are_replaced_by_the_bodies() -> None:
    text = with_functions(
        function("""
        %one = arith.constant 1 : i32
        %x:2 = tt.call @twice(%seed, %one) : (i32, i32) -> (i32, i32)
        %d = arith.subi %x#0, %x#1 : i32
        tt.return %d : i32"""),
        early=EARLY,
        twice=TWICE,
    )
    module = structured(text)
    check_links(module)
    assert names(body(module))["tt.call"] == 0
    # (a, 1) → early → early → swapped
    assert interpret(module, 5) == [(6 - 11) & 0xFFFFFFFF]
    assert interpret(module, 1) == [0]


def test_global_scratch_memory_of_a_callee_starts_at_the_offset_of_the_call() -> None:
    layout = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>"
    other = "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>"
    types = f"tensor<64xi32, {layout}> -> tensor<64xi32, {other}>"
    convert = f"""
    %t = tt.splat %a : i32 -> tensor<64xi32, {layout}>
    %u = ttg.convert_layout %t {{ttg.global_scratch_memory_offset = 16 : i32}} : {types}
    tt.return %a, %b : i32, i32"""
    text = with_functions(
        function("""
        %x:2 = tt.call @outer(%seed, %seed) {ttg.global_scratch_memory_offset = 1024 : i32} : (i32, i32) -> (i32, i32)
        %y:2 = tt.call @inner(%seed, %seed) {ttg.global_scratch_memory_offset = 256 : i32} : (i32, i32) -> (i32, i32)
        tt.return %x#0 : i32"""),
        inner=convert,
        outer="""
    %x:2 = tt.call @inner(%a, %b) {ttg.global_scratch_memory_offset = 128 : i32} : (i32, i32) -> (i32, i32)
    tt.return %x#0, %x#1 : i32, i32""",
    )
    offsets = [
        operation.attributes["ttg.global_scratch_memory_offset"]
        for operation in body(structured(text)).entry.operations
        if operation.name == "ttg.convert_layout"
    ]
    assert offsets == [1024 + 128 + 16, 256 + 16]


def test_recursion_is_refused_with_its_path() -> None:
    call = "%x:2 = tt.call @{}(%a, %b) : (i32, i32) -> (i32, i32)\n tt.return %x#0, %x#1 : i32, i32"
    text = with_functions(
        function("""
        %x:2 = tt.call @even(%seed, %seed) : (i32, i32) -> (i32, i32)
        tt.return %x#0 : i32"""),
        even=call.format("odd"),
        odd=call.format("even"),
    )
    with pytest.raises(UnsupportedOperation, match="recursive .'even' calls 'odd' calls 'even'.; use a loop"):
        structured(text)


def test_an_operation_of_a_callee_knows_its_caller() -> None:
    text = with_functions(
        function("""
        %x:2 = tt.call @early(%seed, %seed) : (i32, i32) -> (i32, i32) loc("k.py":7:3)
        tt.return %x#0 : i32"""),
        early="""
    %s = arith.addi %a, %b : i32 loc("k.py":2:5)
    tt.return %s, %a : i32, i32""",
    )
    (add,) = [operation for operation in body(structured(text)).entry.operations if operation.name == "arith.addi"]
    assert str(add.location) == "k.py:2:5 (called from k.py:7:3)"


@given(st.integers(0, 3))
@settings(max_examples=4, deadline=None)
def test_regions_inside_operations_are_structured(seed: int) -> None:
    text = function("""
        %zero = arith.constant 0 : i32
        %two = arith.constant 2 : i32
        %c = arith.cmpi sgt, %seed, %zero : i32
        %d = arith.cmpi sgt, %seed, %two : i32
        %r = scf.if %c -> (i32) {
          cf.cond_br %d, ^bb1, ^bb2(%two : i32)
        ^bb1:
          %three = arith.addi %two, %seed : i32
          cf.br ^bb2(%three : i32)
        ^bb2(%v: i32):
          scf.yield %v : i32
        } else {
          scf.yield %zero : i32
        }
        tt.return %r : i32""")
    module = structured(text)
    check_links(module)
    assert interpret(module, seed) == [0 if seed == 0 else 5 if seed == 3 else 2]
