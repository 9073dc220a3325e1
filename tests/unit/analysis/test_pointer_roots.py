"""Which arguments a pointer may have come from."""

import pytest
from triton.backends.spirv.analysis.pointer_roots import accesses, pointer_roots
from triton.backends.spirv.ttgir.parser import parse_module

ARGUMENTS = "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %t: !tt.ptr<!tt.ptr<f32>>, %i: i32, %j: i64, %c: i1"
LAYOUT = "#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>\n"


def roots(body: str) -> dict[str, str]:
    """Name of each pointer of a kernel with that body → the letters of its arguments; "" of one that no argument
    reaches. Pointers of unknown origin are left out."""
    text = (
        LAYOUT + 'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, '
        f'"ttg.threads-per-warp" = 8 : i32}} {{\ntt.func public @k({ARGUMENTS}) {{\n{body}\ntt.return\n}}\n}}\n'
    )
    found = pointer_roots(parse_module(text).functions["k"])
    return {
        value.name.lstrip("%"): "".join("pqt"[number] for number in numbers)
        for value, numbers in found.items()
        if value.name.lstrip("%") not in "pqt"
    }


def test_chain() -> None:
    assert roots("""
%a = tt.addptr %p, %i : !tt.ptr<f32>, i32
%s = tt.splat %a : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #l>
%o = tt.splat %j : i64 -> tensor<8xi64, #l>
%x = tt.addptr %s, %o : tensor<8x!tt.ptr<f32>, #l>, tensor<8xi64, #l>
%y = tt.bitcast %x : tensor<8x!tt.ptr<f32>, #l> -> tensor<8x!tt.ptr<i32>, #l>""") == dict.fromkeys("asxy", "p")


def test_select_is_either_and_its_operands_stay_what_they_are() -> None:
    assert roots("""
%a = tt.addptr %p, %i : !tt.ptr<f32>, i32
%b = tt.addptr %q, %i : !tt.ptr<f32>, i32
%e = arith.select %c, %a, %b : !tt.ptr<f32>
%f = tt.addptr %e, %i : !tt.ptr<f32>, i32""") == {"a": "p", "b": "q", "e": "pq", "f": "pq"}


def test_loops_and_branches() -> None:
    assert (
        roots("""
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%r:2 = scf.for %k = %zero to %i step %one iter_args(%a = %p, %b = %q) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
  %n = tt.addptr %a, %k : !tt.ptr<f32>, i32
  %m = scf.if %c -> (!tt.ptr<f32>) {
    scf.yield %n : !tt.ptr<f32>
  } else {
    scf.yield %b : !tt.ptr<f32>
  }
  scf.yield %m, %b : !tt.ptr<f32>, !tt.ptr<f32>
}
%e = scf.while (%h = %r#1) : (!tt.ptr<f32>) -> !tt.ptr<f32> {
  scf.condition(%c) %h : !tt.ptr<f32>
} do {
^bb0(%d: !tt.ptr<f32>):
  %u = tt.addptr %d, %i : !tt.ptr<f32>, i32
  scf.yield %u : !tt.ptr<f32>
}
%z = tt.addptr %r#0, %i : !tt.ptr<f32>, i32""").items()
        >= {"a": "pq", "n": "pq", "m": "pq", "b": "q", "h": "q", "d": "q", "u": "q", "e": "q", "z": "pq"}.items()
    )


def test_values_that_swap_places() -> None:
    found = roots("""
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%r:2 = scf.for %k = %zero to %i step %one iter_args(%a = %p, %b = %q) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
  scf.yield %b, %a : !tt.ptr<f32>, !tt.ptr<f32>
}""")
    assert found["a"] == found["b"] == "pq"


@pytest.mark.parametrize(
    "origin", ("%u = tt.load %t : !tt.ptr<!tt.ptr<f32>>", "%u = tt.int_to_ptr %j : i64 -> !tt.ptr<f32>")
)
def test_unknown_origin_spoils_what_it_flows_into(origin: str) -> None:
    assert roots(f"""
{origin}
%v = tt.addptr %u, %i : !tt.ptr<f32>, i32
%e = arith.select %c, %p, %v : !tt.ptr<f32>
%a = tt.addptr %p, %i : !tt.ptr<f32>, i32""") == {"a": "p"}


def test_poison_adds_nothing() -> None:
    assert (
        roots("""
%u = ub.poison : !tt.ptr<f32>
%e = arith.select %c, %p, %u : !tt.ptr<f32>""")["e"]
        == "p"
    )


def test_accesses_are_found_in_regions() -> None:
    text = f"""module {{ tt.func public @k({ARGUMENTS}) {{
%v = tt.load %p : !tt.ptr<f32>
scf.if %c {{
  tt.store %q, %v : !tt.ptr<f32>
}}
tt.return }} }}"""
    assert [operation.name for operation in accesses(parse_module(text).functions["k"])] == ["tt.load", "tt.store"]
