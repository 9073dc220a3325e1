"""The report buffer: which kernels have one, and that loops are watched where a driver may end them."""

import pytest
from triton.backends.spirv.analysis.loop_count import most_iterations
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import compile_body, disassemble

LOOP = """    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c70000 = arith.constant 70000 : i32
    scf.for %i = %c0 to END step %c1 : i32 {
      %v = tt.load %p : !tt.ptr<i32>
      tt.store %p, %i : !tt.ptr<i32>
    }"""
WATCH = "OpGroupNonUniformShuffleXor"


def text(end: str, profile: str) -> str:
    body = LOOP.replace("END", end).replace("70000", "100" if end == "%c100" else "70000")
    capabilities = PROFILES[profile]
    return disassemble(compile_body(body, "%p: !tt.ptr<i32>, %n: i32", capabilities=capabilities))


@pytest.mark.parametrize(
    ("end", "profile", "watched"),
    [
        ("%n", "lavapipe", True),
        ("%c70000", "lavapipe", True),
        ("%c100", "lavapipe", False),
        ("%n", "nvidia-hopper", False),
    ],
)
def test_loops_are_watched_where_the_driver_may_end_them(end, profile, watched):
    assert (WATCH in text(end, profile)) is watched


def test_a_dot_is_watched_because_its_loops_are_not_counted():
    text = """
#acc = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
module {
  tt.func public @k(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #acc}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #acc}>>, %c: tensor<16x16xf32, #acc>) {
    %d = tt.dot %a, %b, %c : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #acc}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #acc}>> -> tensor<16x16xf32, #acc>
    tt.return
  }
}"""  # noqa: E501
    assert most_iterations(parse_module(text).functions["k"]) is None


def test_loop_count_multiplies_nests_and_adds_neighbours():
    module = parse_module("""
module {
  tt.func public @k(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c10 = arith.constant 10 : i32
    scf.for %i = %c0 to %c10 step %c3 : i32 {
      scf.for %j = %c0 to %c10 step %c1 : i32 {
      }
    }
    scf.for %i = %c10 to %c0 step %c1 : i32 {
    }
    tt.return
  }
}""")
    # Outer: 4 trips of (1 + the inner loop's 10 trips and last check), and its own last check; then one check.
    assert most_iterations(module.functions["k"]) == 4 * (1 + 11) + 1 + 1
