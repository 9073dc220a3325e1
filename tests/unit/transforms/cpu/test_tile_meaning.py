"""Kernels whose tiles are arrays compute what they computed before, on drawn inputs (tests/meaning.py)."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.driver_quirks import Driver
from triton.backends.spirv.transforms.cpu.alike_lanes import mark_alike
from triton.backends.spirv.transforms.cpu.carried_arrays import carry_arrays
from triton.backends.spirv.transforms.cpu.carried_pointers import carry_offsets
from triton.backends.spirv.transforms.cpu.merged_arrays import merge_arrays
from triton.backends.spirv.transforms.cpu.neighbouring_lanes import neighbouring_lanes
from triton.backends.spirv.transforms.cpu.tile_dots import multiply_tiles
from triton.backends.spirv.transforms.strips import cut_in_strips
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import Outcome, run

from ..test_meaning import APART, CONVERTED, PRODUCT, ROWS, both, changes, drawn

ELEMENTS = frozenset({"f32", "f64", "i32"})


def in_tiles(module: Module, budget: int = 20, merged: bool = True) -> None:
    """All rewrites of a device of tiles, in the order of transforms/table.py."""
    kernel = module.functions["k"]
    neighbouring_lanes(module)
    verify(module)
    carry_offsets(kernel)
    verify(module)
    multiply_tiles(kernel, ELEMENTS, int(module.attributes["ttg.threads-per-warp"]))
    verify(module)
    carry_arrays(kernel)
    verify(module)
    cut_in_strips(kernel, Driver(unrolled_elementwise=budget), True)
    verify(module)
    if merged:
        merge_arrays(kernel)
        verify(module)
    mark_alike(kernel)


def alone(text: str) -> str:
    """The kernel with one subgroup a workgroup."""
    text = text.replace('"ttg.num-warps" = 4', '"ttg.num-warps" = 1')
    return re.sub(r"warpsPerCTA = \[[^]]*\]", lambda found: re.sub(r"\d+", "1", found[0]), text)


@pytest.mark.parametrize("text", [PRODUCT, CONVERTED, APART, ROWS], ids=["buffers", "conversions", "apart", "rows"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), rounds=st.integers(0, 4), merged=st.booleans())
def test_products_stay_the_same(text: str, seed: int, rounds: int, merged: bool) -> None:
    def rewrite(module: Module) -> None:
        in_tiles(module, merged=merged)

    text = alone(text)
    assert changes(text, rewrite)
    before, after = both(text, rewrite, drawn(seed, 512 * max(rounds, 1)), rounds)
    before.same(after)


HEAD = """
#t = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #t}>
#b = #ttg.dot_op<{opIdx = 1, parent = #t}>
#rows = #ttg.slice<{dim = 1, parent = #t}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%n: i32, %flag: i1, %x: tensor<32x32xf32, #t>, %y: tensor<32x32xf32, #t>)
      -> (tensor<32x32xf32, #t>, tensor<32x32xf32, #t>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<32x32xf32, #t>
    %scale = arith.constant dense<0.03125> : tensor<32x32xf32, #t>
"""

#: What a kernel does with its two tensors %P and %Q; it gives two others, %P' and %Q'. "none" has zeros for %P.
STEPS = {
    "add": "%P' = arith.addf %P, %Q : tensor<32x32xf32, #t>",
    "swap": "",
    "none": "",
    "both": "%P' = arith.maximumf %P, %Q : tensor<32x32xf32, #t>\n%Q' = arith.subf %Q, %P : tensor<32x32xf32, #t>",
    "multiply": """
        %aN = ttg.convert_layout %P : tensor<32x32xf32, #t> -> tensor<32x32xf32, #a>
        %bN = ttg.convert_layout %Q : tensor<32x32xf32, #t> -> tensor<32x32xf32, #b>
        %dN = tt.dot %aN, %bN, %Q : tensor<32x32xf32, #a> * tensor<32x32xf32, #b> -> tensor<32x32xf32, #t>
        %fN = math.floor %dN : tensor<32x32xf32, #t>
        %gN = arith.mulf %fN, %scale : tensor<32x32xf32, #t>
        %P' = math.floor %gN : tensor<32x32xf32, #t>""",
    "add a product": """
        %aN = ttg.convert_layout %Q : tensor<32x32xf32, #t> -> tensor<32x32xf32, #a>
        %bN = ttg.convert_layout %x : tensor<32x32xf32, #t> -> tensor<32x32xf32, #b>
        %P' = tt.dot %aN, %bN, %P : tensor<32x32xf32, #a> * tensor<32x32xf32, #b> -> tensor<32x32xf32, #t>""",
    "the square": """
        %aN = ttg.convert_layout %y : tensor<32x32xf32, #t> -> tensor<32x32xf32, #a>
        %bN = ttg.convert_layout %y : tensor<32x32xf32, #t> -> tensor<32x32xf32, #b>
        %Q' = tt.dot %aN, %bN, %none : tensor<32x32xf32, #a> * tensor<32x32xf32, #b> -> tensor<32x32xf32, #t>""",
    "less the greatest": """
        %mN = "tt.reduce"(%P) <{axis = 1 : i32}> ({
        ^bb0(%lN: f32, %rN: f32):
          %sN = arith.maximumf %lN, %rN : f32
          tt.reduce.return %sN : f32
        }) : (tensor<32x32xf32, #t>) -> tensor<32xf32, #rows>
        %eN = tt.expand_dims %mN {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #t>
        %wN = tt.broadcast %eN : tensor<32x1xf32, #t> -> tensor<32x32xf32, #t>
        %P' = arith.subf %Q, %wN : tensor<32x32xf32, #t>""",
}
PAIR = "tensor<32x32xf32, #t>, tensor<32x32xf32, #t>"


class _Names:
    """New names for values."""

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"{self.count}"


@st.composite
def bodies(draw: st.DrawFn, names: _Names, pair: tuple[str, str], depth: int) -> tuple[str, tuple[str, str]]:
    """Some steps from one pair of tensors to another, loops and branches of such steps among them."""
    text, (p, q) = "", pair
    for kind in draw(st.lists(st.sampled_from([*STEPS, "for", "if", "while"][: None if depth else -3]), max_size=4)):
        number = names.new()
        if kind in STEPS:
            step = STEPS[kind].replace("%P'", f"%p{number}").replace("%Q'", f"%q{number}")
            text += re.sub(r"%P\b", p, re.sub(r"%Q\b", q, re.sub(r"(%[a-z])N\b", rf"\g<1>{number}", step))) + "\n"
            p, q = (
                (q, p)
                if kind == "swap"
                else ("%none", q)
                if kind == "none"
                else (f"%p{number}" if f"%p{number} =" in text else p, f"%q{number}" if f"%q{number} =" in text else q)
            )
            continue
        inside = (f"%x{number}", f"%y{number}") if kind != "if" else (p, q)
        body, given = draw(bodies(names, inside, depth - 1))
        yielded = f"scf.yield {given[0]}, {given[1]} : {PAIR}"
        if kind == "for":
            text += f"""%r{number}:2 = scf.for %i{number} = %zero to %n step %one
                iter_args({inside[0]} = {p}, {inside[1]} = {q}) -> ({PAIR}) : i32 {{
                {body}{yielded}\n}}\n"""
        elif kind == "if":
            other, otherwise = draw(bodies(names, (p, q), 0))
            text += f"""%r{number}:2 = scf.if %flag -> ({PAIR}) {{
                {body}{yielded}\n}} else {{
                {other}scf.yield {otherwise[0]}, {otherwise[1]} : {PAIR}\n}}\n"""
        else:
            text += f"""%r{number}:3 = scf.while (%c{number} = %zero, %u{number} = {p}, %v{number} = {q})
                : (i32, {PAIR}) -> (i32, {PAIR}) {{
                %t{number} = arith.cmpi slt, %c{number}, %n : i32
                scf.condition(%t{number}) %c{number}, %v{number}, %u{number} : i32, {PAIR}
                }} do {{
                ^bb0(%d{number}: i32, {inside[0]}: tensor<32x32xf32, #t>, {inside[1]}: tensor<32x32xf32, #t>):
                {body}%k{number} = arith.addi %d{number}, %one : i32
                scf.yield %k{number}, {given[0]}, {given[1]} : i32, {PAIR}\n}}\n"""
            p, q = f"%r{number}#1", f"%r{number}#2"
            continue
        p, q = f"%r{number}#0", f"%r{number}#1"
    return text, (p, q)


@st.composite
def kernels(draw: st.DrawFn) -> str:
    body, (p, q) = draw(bodies(_Names(), ("%x", "%y"), 2))
    return f"{HEAD}{body}\n    tt.return {p}, {q} : {PAIR}\n  }}\n}}\n"


def outcomes(text: str, rewrite: Callable[[Module], None], *arguments: Any) -> tuple[Outcome, Outcome]:
    module = parse_module(text)
    verify(module)
    before = run(module, *arguments)
    rewrite(module)
    verify(module)
    return before, run(module, *arguments)


@settings(max_examples=150, deadline=None)
@given(kernels(), st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from([20, 100, 1000]))
def test_arrays_hold_what_registers_held(text: str, rounds: int, flag: bool, merged: bool, budget: int) -> None:
    tiles = [drawn(seed, 1024).reshape(32, 32) for seed in (1, 2)]
    before, after = outcomes(text, lambda module: in_tiles(module, budget, merged), rounds, flag, *tiles)
    before.same(after)


#: Of the largest element of each row so far, both before and after a tile are read when both are in arrays.
ROW_MAXIMA = (
    HEAD
    + """
    %first = arith.constant dense<-100.0> : tensor<32xf32, #rows>
    %r:3 = scf.for %i = %zero to %n step %one iter_args(%m = %first, %t = %x, %s = %y)
        -> (tensor<32xf32, #rows>, tensor<32x32xf32, #t>, tensor<32x32xf32, #t>) : i32 {
      %o = "tt.reduce"(%t) <{axis = 1 : i32}> ({
      ^bb0(%l: f32, %g: f32):
        %h = arith.maximumf %l, %g : f32
        tt.reduce.return %h : f32
      }) : (tensor<32x32xf32, #t>) -> tensor<32xf32, #rows>
      %u = arith.maximumf %m, %o : tensor<32xf32, #rows>
      %e = tt.expand_dims %u {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #t>
      %w = tt.broadcast %e : tensor<32x1xf32, #t> -> tensor<32x32xf32, #t>
      %p = arith.subf %t, %w : tensor<32x32xf32, #t>
      %c = arith.subf %m, %u : tensor<32xf32, #rows>
      %d = tt.expand_dims %c {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #t>
      %f = tt.broadcast %d : tensor<32x1xf32, #t> -> tensor<32x32xf32, #t>
      %v = arith.addf %s, %f : tensor<32x32xf32, #t>
      %pa = ttg.convert_layout %p : tensor<32x32xf32, #t> -> tensor<32x32xf32, #a>
      %xb = ttg.convert_layout %x : tensor<32x32xf32, #t> -> tensor<32x32xf32, #b>
      %k = tt.dot %pa, %xb, %v : tensor<32x32xf32, #a> * tensor<32x32xf32, #b> -> tensor<32x32xf32, #t>
      %z = arith.mulf %p, %scale : tensor<32x32xf32, #t>
      %fl = math.floor %z : tensor<32x32xf32, #t>
      scf.yield %u, %fl, %k : tensor<32xf32, #rows>, tensor<32x32xf32, #t>, tensor<32x32xf32, #t>
    }
    tt.return %r#1, %r#2 : tensor<32x32xf32, #t>, tensor<32x32xf32, #t>
  }
}
"""
)


@pytest.mark.parametrize("budget", [20, 60, 300])
def test_an_array_that_is_read_later_is_not_overwritten(budget: int) -> None:
    tiles = [drawn(seed, 1024).reshape(32, 32) for seed in (1, 2)]
    before, after = outcomes(ROW_MAXIMA, lambda module: in_tiles(module, budget), 3, True, *tiles)
    before.same(after)


SWAP = f"""{HEAD}
    %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %y) -> ({PAIR}) : i32 {{
      scf.yield %q, %p : {PAIR}
    }}
    tt.return %r#0, %r#1 : {PAIR}
  }}
}}
"""


@pytest.mark.parametrize("rounds", range(4))
def test_tensors_change_places(rounds: int) -> None:
    tiles = [drawn(seed, 1024).reshape(32, 32) for seed in (1, 2)]
    before, after = outcomes(SWAP, in_tiles, rounds, True, *tiles)
    before.same(after)
