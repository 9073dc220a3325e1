"""What is used transposed alone is computed transposed, and comes to the same."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from triton._C.libtriton import ir
from triton.backends.spirv.transforms.gpu.turn_dots import turn_dots
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.ir import Module
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

from tests.meaning import run

#: Gradients of keys and values: 16 queries, 32 keys, heads of 8. BIAS makes a tile of 16×32 from scores, END uses one.
TEXT = """
module {
  tt.func public @k(%q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %g: tensor<16x8xf32>, %v: tensor<32x8xf32>,
      %top: tensor<16xf32>, %keys: tensor<32xf32>, %p: !tt.ptr<f32>, %n: i32)
      -> (tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %none = arith.constant dense<0.0> : tensor<32x8xf32>
    %half = arith.constant 0.5 : f32
    %halves = tt.splat %half : f32 -> tensor<16x32xf32>
    %kt = tt.trans %k {order = array<i32: 1, 0>} : tensor<32x8xf32> -> tensor<8x32xf32>
    %vt = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x8xf32> -> tensor<8x32xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %none, %dv = %none)
        -> (tensor<32x8xf32>, tensor<32x8xf32>) : i32 {
      %scores = tt.dot %q, %kt, %zero : tensor<16x8xf32> * tensor<8x32xf32> -> tensor<16x32xf32>
      %t1 = tt.expand_dims %top {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
      %tops = tt.broadcast %t1 : tensor<16x1xf32> -> tensor<16x32xf32>
      %k1 = tt.expand_dims %keys {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
      %columns = tt.broadcast %k1 : tensor<1x32xf32> -> tensor<16x32xf32>
      BIAS
      %less = arith.subf %biased, %tops : tensor<16x32xf32>
      %seen = arith.cmpf olt, %less, %columns : tensor<16x32xf32>
      %w = arith.select %seen, %less, %halves : tensor<16x32xi1>, tensor<16x32xf32>
      %wt = tt.trans %w {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
      %dv1 = tt.dot %wt, %g, %dv : tensor<32x16xf32> * tensor<16x8xf32> -> tensor<32x8xf32>
      %dw = tt.dot %g, %vt, %zero : tensor<16x8xf32> * tensor<8x32xf32> -> tensor<16x32xf32>
      %ds = arith.mulf %w, %dw : tensor<16x32xf32>
      %dst = tt.trans %ds {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
      %dk1 = tt.dot %dst, %q, %dk : tensor<32x16xf32> * tensor<16x8xf32> -> tensor<32x8xf32>
      scf.yield %dk1, %dv1 : tensor<32x8xf32>, tensor<32x8xf32>
    }
    %last = tt.dot %q, %kt, %zero : tensor<16x8xf32> * tensor<8x32xf32> -> tensor<16x32xf32>
    tt.return %r#0, %r#1, %last : tensor<32x8xf32>, tensor<32x8xf32>, tensor<16x32xf32>
  }
}
"""

PLAIN = "%biased = arith.addf %scores, %columns : tensor<16x32xf32>"

#: A tile of biases from memory.
LOADED = """%m = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %width = arith.constant dense<32> : tensor<16x1xi32>
      %m2 = arith.muli %m1, %width : tensor<16x1xi32>
      %rows = tt.broadcast %m2 : tensor<16x1xi32> -> tensor<16x32xi32>
      %c = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
      %cc = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
      %across = tt.broadcast %cc : tensor<1x32xi32> -> tensor<16x32xi32>
      %at = arith.addi %rows, %across : tensor<16x32xi32>
      %base = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>>
      %ptrs = tt.addptr %base, %at : tensor<16x32x!tt.ptr<f32>>, tensor<16x32xi32>
      %bias = tt.load %ptrs : tensor<16x32x!tt.ptr<f32>>
      %biased = arith.addf %scores, %bias : tensor<16x32xf32>"""

#: The same with what the user may promise of a place, an address and a bias.
HINTED = (
    LOADED.replace(
        "%rows, %across",
        "%rows, %across {tt.contiguity = dense<[1, 32]> : tensor<2xi32>, "
        "tt.divisibility = dense<[1, 32]> : tensor<2xi32>}",
    )
    .replace("%base, %at", "%base, %at {tt.contiguity = dense<[1, 16]> : tensor<2xi32>}")
    .replace("tt.broadcast %m2", "tt.broadcast %m2 {tt.constancy = dense<[1, 32]> : tensor<2xi32>}")
)

#: Values that are needed as they are, too.
STORED = LOADED + "\n      tt.store %ptrs, WHAT : tensor<16x32x!tt.ptr<f32>>"


def module(bias: str) -> Module:
    return parse_module(TEXT.replace("BIAS", bias))


def arguments() -> list[object]:
    rng = np.random.default_rng(3)
    shapes = ((16, 8), (32, 8), (16, 8), (32, 8), (16,), (32,), (16, 32))
    return [*(rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes), 3]


def names(found: Module) -> Counter[str]:
    return Counter(operation.name for operation in found.walk())


@pytest.mark.parametrize("bias", [PLAIN, LOADED, HINTED], ids=["rows and columns", "a tile that is loaded", "hints"])
def test_dots_and_what_is_made_of_them_are_turned(bias: str) -> None:
    before, found = module(bias), module(bias)
    assert turn_dots(found)
    verify(found)
    run(before, *arguments()).same(run(found, *arguments()))
    assert names(found)["tt.dot"] == names(before)["tt.dot"] and names(found)["tt.load"] == names(before)["tt.load"]
    # Of q and g alone, and of k for the dot that stays as it is.
    turned = [operation.operands[0].tensor.shape for operation in found.walk() if operation.name == "tt.trans"]
    assert sorted(set(turned)) == [(16, 8), (32, 8)]


@pytest.mark.parametrize("what", ["%scores", "%biased", "%bias"])
def test_what_is_needed_as_it_is_stays(what: str) -> None:
    found = module(STORED.replace("WHAT", what))
    before = print_module(found)
    assert not turn_dots(found)
    assert print_module(found) == before


def test_a_long_way_from_the_dot() -> None:
    chain = [f"%s{step} = arith.addf %s{step - 1}, %columns : tensor<16x32xf32>" for step in range(1, 1001)]
    chain[0] = chain[0].replace("%s0", "%scores")
    found = module("\n".join([*chain, "%biased = arith.addf %s1000, %columns : tensor<16x32xf32>"]))
    assert turn_dots(found)
    verify(found)


def test_what_a_loop_carries_stays() -> None:
    """Its transpose would have to be carried."""
    text = TEXT.replace("BIAS", PLAIN).replace("arith.subf %biased, %tops", "arith.subf %carried, %tops")
    text = text.replace("%dv = %none)", "%dv = %none, %carried = %zero)").replace("%r:2", "%r:3")
    types = "tensor<32x8xf32>, tensor<32x8xf32>"
    text = text.replace(f"-> ({types}) : i32", f"-> ({types}, tensor<16x32xf32>) : i32")
    text = text.replace(f"%dk1, %dv1 : {types}", f"%dk1, %dv1, %biased : {types}, tensor<16x32xf32>")
    found = parse_module(text)
    before = print_module(found)
    assert not turn_dots(found)
    assert print_module(found) == before


def test_upstream_takes_the_result(tmp_path: Path) -> None:
    found = module(LOADED)
    assert turn_dots(found)
    path = tmp_path / "turned.ttir"
    path.write_text(print_module(found))
    context = ir.context()
    ir.load_dialects(context)
    assert str(ir.parse_mlir_module(str(path), context)).count("tt.dot ") == 5
