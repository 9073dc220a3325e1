"""Source lines and names of variables in modules, and that they change nothing else."""

from __future__ import annotations

import array
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.module import lower_module
from triton.backends.spirv.planning.options import Options
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import compile_body, disassemble

FIXTURES = Path(__file__).parents[1] / "unit" / "ttgir" / "fixtures"

TWO_LINES = """
    %a = arith.addi %x, %y : i32 loc("sum"("kernel.py":7:9))
    %b = arith.muli %a, %y : i32 loc("kernel.py":8:9)
    tt.store %p, %b : !tt.ptr<i32> loc("kernel.py":9:5)"""


def test_lines_and_names(filecheck):
    module = compile_body(TWO_LINES, "%x: i32, %y: i32, %p: !tt.ptr<i32>", options=Options(debug_info=True))
    filecheck(
        disassemble(module),
        """
CHECK: %[[FILE:[0-9]+]] = OpString "kernel.py"
CHECK: OpName %[[SUM:[0-9]+]] "sum"
CHECK: OpLine %[[FILE]] 7 9
CHECK-NEXT: %[[SUM]] = OpIAdd
CHECK-NEXT: OpLine %[[FILE]] 8 9
CHECK-NEXT: OpIMul
CHECK: OpLine %[[FILE]] 9 5
CHECK: OpStore
""",
    )


def test_a_value_that_two_lines_share_belongs_to_neither(filecheck):
    body = """
    %a = arith.addi %x, %y : i32 loc("kernel.py":7:9)
    %b = arith.addi %x, %y : i32 loc("kernel.py":8:9)
    %c = arith.muli %a, %b : i32 loc("kernel.py":9:9)
    tt.store %p, %c : !tt.ptr<i32> loc("kernel.py":10:5)"""
    module = compile_body(body, "%x: i32, %y: i32, %p: !tt.ptr<i32>", options=Options(debug_info=True))
    filecheck(
        disassemble(module),
        """
CHECK-NOT: OpLine %{{[0-9]+}} 7 9
CHECK-NOT: OpLine %{{[0-9]+}} 8 9
CHECK: OpIAdd
CHECK-NEXT: OpLine %{{[0-9]+}} 9 9
CHECK-NEXT: OpIMul
""",
    )


def test_a_loop_goes_back_to_its_own_line(filecheck):
    body = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = scf.for %i = %c0 to %x step %c1 iter_args(%s = %c0) -> (i32)  : i32 {
      %t = arith.muli %s, %y : i32 loc("kernel.py":8:9)
      scf.yield %t : i32 loc("kernel.py":8:9)
    } loc("kernel.py":7:5)
    tt.store %p, %n : !tt.ptr<i32> loc("kernel.py":9:5)"""
    module = compile_body(body, "%x: i32, %y: i32, %p: !tt.ptr<i32>", options=Options(debug_info=True))
    filecheck(
        disassemble(module),
        """
CHECK: OpLine %[[FILE:[0-9]+]] 7 5
CHECK-NEXT: OpSLessThan
CHECK: OpLine %[[FILE]] 8 9
CHECK-NEXT: OpIMul
CHECK: OpLine %[[FILE]] 7 5
CHECK-NEXT: OpINotEqual
CHECK: OpLine %[[FILE]] 9 5
""",
    )


DEBUG = {op.String, op.Line, op.NoLine, op.Name}


@pytest.mark.parametrize(
    "name", ["argmax", "atomics", "dot", "hints", "loops", "map", "matmul", "scan_sort", "softmax"]
)
def test_the_code_is_the_same(name: str) -> None:
    path = FIXTURES / f"{name}.ttgir"
    plain, debug = (_instructions(path, debug_info) for debug_info in (False, True))
    assert any(words[0] & 0xFFFF == op.Line for words in debug)
    assert [words for words in plain if words[0] & 0xFFFF not in DEBUG] == [
        words for words in debug if words[0] & 0xFFFF not in DEBUG
    ]


def _instructions(path: Path, debug_info: bool) -> list[tuple[int, ...]]:
    """The words of each instruction."""
    source = parse_module(path.read_text(), path.name)
    lanes = int(source.attributes["ttg.threads-per-warp"])
    capabilities = next(profile for profile in PROFILES.values() if profile.subgroup_size == lanes)
    words = array.array("I", lower_module(source, capabilities, Options(debug_info=debug_info)).spirv)
    place, found = 5, []
    while place < len(words):
        end = place + (words[place] >> 16)
        found.append(tuple(words[place:end]))
        place = end
    return found
