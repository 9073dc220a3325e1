"""Branches to structured regions: the same results, every operation once, nothing used where it is not visible.

What a return, a loop and a call become is in text/structure.ttgir.
"""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
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
