"""Rewrites leave what a kernel computes the same, on drawn inputs (tests/meaning.py)."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.driver_quirks import Driver
from triton.backends.spirv.transforms.buffer_operands import buffer_operands
from triton.backends.spirv.transforms.gathers import gather_without_conversions
from triton.backends.spirv.transforms.gpu.fill_together import fill_together
from triton.backends.spirv.transforms.gpu.prefetch import prefetch_dot_operands
from triton.backends.spirv.transforms.gpu.row_buffers import buffer_rows
from triton.backends.spirv.transforms.refill_buffers import refill_buffers
from triton.backends.spirv.transforms.reload_operands import reload_operands
from triton.backends.spirv.transforms.sink_buffers import sink_buffers
from triton.backends.spirv.transforms.sink_loads import sink_loads
from triton.backends.spirv.transforms.strips import cut_in_strips
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module

from tests.meaning import Outcome, run

HEAD = """
#acc = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#in = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#down = #ttg.slice<{dim = 1, parent = #in}>
#across = #ttg.slice<{dim = 0, parent = #in}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #acc}>
#right = #ttg.dot_op<{opIdx = 1, parent = #acc}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
"""

#: Pointers %NAMEs to a tile of 16×32 at a pointer %NAME, row by row; %i… are its places.
TILE = """
    %ri = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #down>
    %ci = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #across>
    %width = arith.constant dense<32> : tensor<16x1xi32, #in>
    %re = tt.expand_dims %ri {axis = 1 : i32} : tensor<16xi32, #down> -> tensor<16x1xi32, #in>
    %ce = tt.expand_dims %ci {axis = 0 : i32} : tensor<32xi32, #across> -> tensor<1x32xi32, #in>
    %rw = arith.muli %re, %width : tensor<16x1xi32, #in>
    %rb = tt.broadcast %rw : tensor<16x1xi32, #in> -> tensor<16x32xi32, #in>
    %cb = tt.broadcast %ce : tensor<1x32xi32, #in> -> tensor<16x32xi32, #in>
    %at = arith.addi %rb, %cb : tensor<16x32xi32, #in>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #in>
    %pt = tt.addptr %ps, %at : tensor<16x32x!tt.ptr<f32>, #in>, tensor<16x32xi32, #in>
"""

#: Σ x·xᵀ over tiles that a pointer runs through, with another dot of the same operands.
PRODUCT = (
    HEAD
    + "  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) -> (tensor<16x16xf32, #acc>, tensor<16x16xf32, #acc>) {"
    + TILE
    + """
    %fixed = tt.load %pt : tensor<16x32x!tt.ptr<f32>, #in>
    %mf = ttg.local_alloc %fixed : (tensor<16x32xf32, #in>) -> !ttg.memdesc<16x32xf32, #shared, #smem>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<512> : tensor<16x32xi32, #in>
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %pt, %t = %zero, %s = %zero) -> (tensor<16x32x!tt.ptr<f32>, #in>, tensor<16x16xf32, #acc>, tensor<16x16xf32, #acc>) : i32 {
      %x = tt.load %a : tensor<16x32x!tt.ptr<f32>, #in>
      %y = arith.addf %x, %x : tensor<16x32xf32, #in>
      %m = ttg.local_alloc %y : (tensor<16x32xf32, #in>) -> !ttg.memdesc<16x32xf32, #shared, #smem>
      %l = ttg.local_load %m : !ttg.memdesc<16x32xf32, #shared, #smem> -> tensor<16x32xf32, #left>
      %v = ttg.memdesc_trans %mf {order = array<i32: 1, 0>} : !ttg.memdesc<16x32xf32, #shared, #smem> -> !ttg.memdesc<32x16xf32, #shared, #smem>
      %k = ttg.local_load %v : !ttg.memdesc<32x16xf32, #shared, #smem> -> tensor<32x16xf32, #right>
      %ts = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<16x32xf32, #shared, #smem> -> !ttg.memdesc<32x16xf32, #shared, #smem>
      %q = ttg.local_load %ts : !ttg.memdesc<32x16xf32, #shared, #smem> -> tensor<32x16xf32, #right>
      %d = tt.dot %l, %k, %t : tensor<16x32xf32, #left> * tensor<32x16xf32, #right> -> tensor<16x16xf32, #acc>
      %e = tt.dot %l, %q, %s : tensor<16x32xf32, #left> * tensor<32x16xf32, #right> -> tensor<16x16xf32, #acc>
      %next = tt.addptr %a, %step : tensor<16x32x!tt.ptr<f32>, #in>, tensor<16x32xi32, #in>
      scf.yield %next, %d, %e : tensor<16x32x!tt.ptr<f32>, #in>, tensor<16x16xf32, #acc>, tensor<16x16xf32, #acc>
    }
    tt.return %r#1, %r#2 : tensor<16x16xf32, #acc>, tensor<16x16xf32, #acc>
  }
}
"""  # noqa: E501
)

#: The same operands by conversions of their layout.
CONVERTED = re.sub(
    r"%(\w+) = ttg.local_load %(m|ts) : .* -> (tensor.*)",
    lambda found: (
        f"%{found[1]} = ttg.convert_layout %{'y' if found[2] == 'm' else 'yt'} : "
        f"tensor<{'16x32' if found[2] == 'm' else '32x16'}xf32, #in> -> {found[3]}"
    ),
    PRODUCT,
).replace(
    "      %q = ",
    "      %yi = arith.constant dense<3.0> : tensor<32x16xf32, #in>\n"
    "      %yt = arith.addf %yi, %yi : tensor<32x16xf32, #in>\n      %q = ",
)

#: The second dot's operand is loaded and stored behind the first dot.
APART = re.sub(r"( +%ts = .*\n +%q = .*\n)( +%d = .*\n)", r"""\2      %x2 = tt.load %a : tensor<16x32x!tt.ptr<f32>, #in>
      %m2 = ttg.local_alloc %x2 : (tensor<16x32xf32, #in>) -> !ttg.memdesc<16x32xf32, #shared, #smem>
\1""", PRODUCT).replace("%ts = ttg.memdesc_trans %m ", "%ts = ttg.memdesc_trans %m2 ")  # fmt: skip

#: A row of 16 numbers is added to each row of the first dot's result. Each lane has all of them.
ROWS = (
    PRODUCT.replace(
        "#smem =",
        """
#wide = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [8, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.slice<{dim = 0, parent = #wide}>
#smem =""",
    )
    .replace(
        "      %next =",
        """      %rp = tt.addptr %p, %i : !tt.ptr<f32>, i32
      %rs = tt.splat %rp : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #columns>
      %rr = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #columns>
      %limit = arith.constant dense<13> : tensor<16xi32, #columns>
      %known = arith.cmpi slt, %rr, %limit : tensor<16xi32, #columns>
      %seven = arith.constant dense<7.0> : tensor<16xf32, #columns>
      %ra = tt.addptr %rs, %rr : tensor<16x!tt.ptr<f32>, #columns>, tensor<16xi32, #columns>
      %row = tt.load %ra, %known, %seven : tensor<16x!tt.ptr<f32>, #columns>
      %r1 = tt.expand_dims %row {axis = 0 : i32} : tensor<16xf32, #columns> -> tensor<1x16xf32, #wide>
      %r16 = tt.broadcast %r1 : tensor<1x16xf32, #wide> -> tensor<16x16xf32, #wide>
      %rc = ttg.convert_layout %r16 : tensor<16x16xf32, #wide> -> tensor<16x16xf32, #acc>
      %dr = arith.addf %d, %rc : tensor<16x16xf32, #acc>
      %next =""",
    )
    .replace("scf.yield %next, %d,", "scf.yield %next, %dr,")
)


def both(text: str, rewrite: Callable[[Module], Any], *arguments: Any) -> tuple[Outcome, Outcome]:
    """What ``text`` computes before and after a rewrite, which leaves it valid."""
    before, module = parse_module(text), parse_module(text)
    verify(before)
    rewrite(module)
    verify(module)
    return run(before, *arguments), run(module, *arguments)


def changes(text: str, rewrite: Callable[[Module], Any]) -> bool:
    module = parse_module(text)
    names = [operation.name for operation in module.walk()]
    rewrite(module)
    return names != [operation.name for operation in module.walk()]


def drawn(seed: int, size: int) -> Any:
    """Small whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 9, size).astype(np.float32)


REWRITES: dict[str, tuple[str, Callable[[Module], Any]]] = {
    "prefetch": (PRODUCT, lambda module: prefetch_dot_operands(module.functions["k"])),
    "prefetch behind": (PRODUCT, lambda module: prefetch_dot_operands(module.functions["k"], behind=True)),
    "reload": (PRODUCT, reload_operands),
    "reload, then sink": (PRODUCT, lambda module: (reload_operands(module), sink_loads(module))),
    "refill": (PRODUCT, refill_buffers),
    "sink buffers": (PRODUCT, sink_buffers),
    "fill together": (APART, lambda module: fill_together(module.functions["k"], 2, 6144)),
    "fill together, then prefetch": (
        APART,
        lambda module: (
            fill_together(module.functions["k"], 2, 6144),
            prefetch_dot_operands(module.functions["k"], behind=True),
        ),
    ),
    "rows": (ROWS, lambda module: buffer_rows(module.functions["k"], 2, 8, 4, 1 << 14)),
    "rows, then prefetch": (
        ROWS,
        lambda module: (
            buffer_rows(module.functions["k"], 2, 8, 4, 1 << 14),
            prefetch_dot_operands(module.functions["k"], behind=True),
        ),
    ),
    "buffers": (CONVERTED, lambda module: buffer_operands(module, 0)),
    "all at once": (
        PRODUCT,
        lambda module: (
            reload_operands(module),
            refill_buffers(module),
            sink_loads(module),
            prefetch_dot_operands(module.functions["k"]),
        ),
    ),
}


@pytest.mark.parametrize(("text", "rewrite"), REWRITES.values(), ids=REWRITES)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 1000), rounds=st.integers(0, 4))
def test_products_stay_the_same(text: str, rewrite: Callable[[Module], Any], seed: int, rounds: int) -> None:
    assert changes(text, rewrite)
    before, after = both(text, rewrite, drawn(seed, 512 * max(rounds, 1)), rounds)
    before.same(after)


GATHER = """
#rows = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#lines = #ttg.blocked<{sizePerThread = [128, 1], threadsPerWarp = [8, 1], warpsPerCTA = [2, 2], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
  tt.func public @k(%x: tensor<1024x2xf32, #rows>, %i: tensor<1024x2xi32, #rows>)
      -> (tensor<1024x2xf32, #rows>, tensor<1024x2xf32, #lines>) {
    %a = ttg.convert_layout %x : tensor<1024x2xf32, #rows> -> tensor<1024x2xf32, #lines>
    %b = ttg.convert_layout %i : tensor<1024x2xi32, #rows> -> tensor<1024x2xi32, #lines>
    %g = tt.gather %a[%b] {axis = 0 : i32, efficient_layout} : (tensor<1024x2xf32, #lines>, tensor<1024x2xi32, #lines>)
      -> tensor<1024x2xf32, #lines>
    %c = ttg.convert_layout %g : tensor<1024x2xf32, #lines> -> tensor<1024x2xf32, #rows>
    %n = arith.negf %g : tensor<1024x2xf32, #lines>
    tt.return %c, %n : tensor<1024x2xf32, #rows>, tensor<1024x2xf32, #lines>
  }
}
"""


def test_gathers_stay_the_same() -> None:
    x = drawn(1, 2048).reshape(1024, 2)
    indices = np.random.default_rng(2).integers(0, 1024, (1024, 2)).astype(np.int32)
    before, after = both(GATHER, lambda module: gather_without_conversions(module.functions["k"]), x, indices)
    before.same(after)


#: Steps of element-by-element kernels; %v is the value so far, %m a mask of its first %n elements.
STEPS = {
    "add": "    %NEXT = arith.addf %v, %other : tensor<1024xf32, #row>",
    "places with hints": """
    %pNEXT = arith.addi %i, %nothing {tt.contiguity = dense<1024> : tensor<1xi32>, tt.divisibility = dense<1024> : tensor<1xi32>} : tensor<1024xi32, #row>
    %qNEXT = tt.addptr %qs, %pNEXT {tt.divisibility = dense<4096> : tensor<1xi32>} : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %NEXT = tt.load %qNEXT : tensor<1024x!tt.ptr<f32>, #row>""",  # noqa: E501
    "select": "    %NEXT = arith.select %m, %v, %other : tensor<1024xi1, #row>, tensor<1024xf32, #row>",
    "store": "    tt.store %b, %v, %m : tensor<1024x!tt.ptr<f32>, #row>",
    "load again": "    %NEXT = tt.load %b, %m, %other : tensor<1024x!tt.ptr<f32>, #row>",
    "store in place": "    tt.store %a, %v : tensor<1024x!tt.ptr<f32>, #row>",
    "store reversed": "    tt.store %z, %v : tensor<1024x!tt.ptr<f32>, #row>",
    "barrier": "    ttg.barrier local",
    "subtract the greatest": """
    %oNEXT = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%lNEXT: f32, %rNEXT: f32):
      %sNEXT = arith.maximumf %lNEXT, %rNEXT : f32
      tt.reduce.return %sNEXT : f32
    }) : (tensor<1024xf32, #row>) -> f32
    %wNEXT = tt.splat %oNEXT : f32 -> tensor<1024xf32, #row>
    %NEXT = arith.subf %v, %wNEXT : tensor<1024xf32, #row>""",
    "scan": """
    %NEXT = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%lNEXT: f32, %rNEXT: f32):
      %sNEXT = arith.maximumf %lNEXT, %rNEXT : f32
      tt.scan.return %sNEXT : f32
    }) : (tensor<1024xf32, #row>) -> tensor<1024xf32, #row>""",
}
LINE = """
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #row>
    %last = arith.constant dense<1023> : tensor<1024xi32, #row>
    %back = arith.subi %last, %i : tensor<1024xi32, #row>
    %ns = tt.splat %n : i32 -> tensor<1024xi32, #row>
    %m = arith.cmpi slt, %i, %ns : tensor<1024xi32, #row>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %a = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %z = tt.addptr %ps, %back : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #row>
    %b = tt.addptr %qs, %i : tensor<1024x!tt.ptr<f32>, #row>, tensor<1024xi32, #row>
    %nothing = arith.constant dense<0> : tensor<1024xi32, #row>
    %other = arith.constant dense<1.5> : tensor<1024xf32, #row>
    %v0 = tt.load %a : tensor<1024x!tt.ptr<f32>, #row>
"""


@st.composite
def kernels(draw: st.DrawFn) -> str:
    """A kernel of some of STEPS, the last of which is a store."""
    value, lines = "%v0", []
    for number, name in enumerate([*draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=6)), "store in place"], 1):
        step = re.sub(r"%v\b", value, STEPS[name])
        lines.append(step.replace("NEXT", f"v{number}"))
        value = f"%v{number}" if "NEXT" in step else value
    body = LINE + "\n".join(lines)
    return f"{HEAD}  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {{{body}\n    tt.return\n  }}\n}}\n"


@settings(max_examples=60, deadline=None)
@given(kernels(), st.integers(0, 1024), st.sampled_from([10, 100, 400]))
def test_strips_make_the_whole(text: str, count: int, budget: int) -> None:
    driver = Driver(unrolled_elementwise=budget)
    before, after = both(
        text, lambda module: cut_in_strips(module.functions["k"], driver), drawn(1, 1024), drawn(2, 1024), count
    )
    before.same(after)
