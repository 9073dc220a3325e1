"""Which pointers are held as 32-bit offsets."""

import pytest
from triton.backends.spirv.analysis.pointer_range import pointer_bases
from triton.backends.spirv.ttgir.ir import Value
from triton.backends.spirv.ttgir.parser import parse_module

SMALL = "{tt.pointer_range = 32 : i32}"
ARGUMENTS = f"%p: !tt.ptr<f32> {SMALL}, %q: !tt.ptr<f32> {SMALL}, %w: !tt.ptr<f32>, %i: i32, %j: i64, %c: i1"


def bases(body: str) -> dict[str, str]:
    """Name of each pointer of a kernel with that body that is held as an offset → name of its argument; arguments that
    the body does not mention are left out."""
    text = (
        "#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>\n"
        'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, '
        f'"ttg.threads-per-warp" = 8 : i32}} {{\ntt.func public @k({ARGUMENTS}) {{\n{body}\ntt.return\n}}\n}}\n'
    )
    function = parse_module(text).functions["k"]

    def name(value: Value) -> str:
        return value.name.lstrip("%")

    return {
        name(value): name(base)
        for value, base in pointer_bases(function).items()
        if f"%{name(value)} " in f"{body} ".replace(",", " ").replace(")", " ")
    }


def test_chain_of_a_small_argument() -> None:
    found = bases("""
%a = tt.addptr %p, %i : !tt.ptr<f32>, i32
%s = tt.splat %a : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #l>
%o = tt.splat %j : i64 -> tensor<8xi64, #l>
%t = tt.addptr %s, %o : tensor<8x!tt.ptr<f32>, #l>, tensor<8xi64, #l>
%v = tt.load %t : tensor<8x!tt.ptr<f32>, #l>
tt.store %t, %v : tensor<8x!tt.ptr<f32>, #l>
%b = tt.addptr %w, %i : !tt.ptr<f32>, i32
%x = tt.load %b : !tt.ptr<f32>""")
    assert found == {"p": "p", "a": "p", "s": "p", "t": "p"}


def test_through_control_flow() -> None:
    found = bases("""
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%r = scf.for %k = %zero to %i step %one iter_args(%a = %p) -> (!tt.ptr<f32>) : i32 {
  %n = tt.addptr %a, %k : !tt.ptr<f32>, i32
  %m = scf.if %c -> (!tt.ptr<f32>) {
    scf.yield %n : !tt.ptr<f32>
  } else {
    scf.yield %a : !tt.ptr<f32>
  }
  scf.yield %m : !tt.ptr<f32>
}
%e = scf.while (%h = %r) : (!tt.ptr<f32>) -> !tt.ptr<f32> {
  scf.condition(%c) %h : !tt.ptr<f32>
} do {
^bb0(%d: !tt.ptr<f32>):
  scf.yield %d : !tt.ptr<f32>
}
%g = arith.select %c, %e, %p : !tt.ptr<f32>
%v = tt.load %g : !tt.ptr<f32>""")
    assert set(found) == {"p", "r", "a", "n", "m", "e", "h", "d", "g"}
    assert set(found.values()) == {"p"}


@pytest.mark.parametrize(
    ("why", "body"),
    [
        ("two arguments", "%a = arith.select %c, %p, %q : !tt.ptr<f32>\n%v = tt.load %a : !tt.ptr<f32>"),
        ("a large argument", "%a = arith.select %c, %p, %w : !tt.ptr<f32>\n%v = tt.load %a : !tt.ptr<f32>"),
        (
            "an address from elsewhere",
            "%n = tt.int_to_ptr %j : i64 -> !tt.ptr<f32>\n"
            "%a = arith.select %c, %p, %n : !tt.ptr<f32>\n%v = tt.load %a : !tt.ptr<f32>",
        ),
        (
            "its number is asked for",
            "%a = tt.addptr %p, %i : !tt.ptr<f32>, i32\n"
            "%n = tt.ptr_to_int %a : !tt.ptr<f32> -> i64\n%v = tt.load %a : !tt.ptr<f32>",
        ),
    ],
)
def test_kept_wide(why: str, body: str) -> None:
    found = bases(body)
    assert "p" not in found and "a" not in found, why


def test_pointer_that_is_stored_widens_its_own_argument_only() -> None:
    found = bases("""
%t = tt.bitcast %w : !tt.ptr<f32> -> !tt.ptr<!tt.ptr<f32>>
%a = tt.addptr %p, %i : !tt.ptr<f32>, i32
tt.store %t, %a : !tt.ptr<!tt.ptr<f32>>
%b = tt.addptr %q, %i : !tt.ptr<f32>, i32
%v = tt.load %b : !tt.ptr<f32>""")
    assert found == {"q": "q", "b": "q"}


def test_loaded_pointer_is_wide() -> None:
    found = bases("""
%t = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<!tt.ptr<f32>>
%a = tt.load %t : !tt.ptr<!tt.ptr<f32>>
%b = tt.addptr %a, %i : !tt.ptr<f32>, i32
%v = tt.load %b : !tt.ptr<f32>""")
    assert found == {"p": "p", "t": "p"}
