"""Source lines and names of variables in modules, and that they change nothing else."""

import array
import linecache
import re
from pathlib import Path

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.entry_point import emit
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.planning.kernel_plan import Planned
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.debug_reading import InlinedCalls
from triton.backends.spirv.spirv.decode import decode
from triton.backends.spirv.stages import plan_module
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import compile_body, disassemble, lower_module

FIXTURES = Path(__file__).parents[1] / "unit" / "ttgir" / "fixtures"

#: What has places and names in the module.
LINES = Options(SPIRVOptions(debug_info=True))

TWO_LINES = """
    %a = arith.addi %x, %y : i32 loc("sum"("kernel.py":7:9))
    %b = arith.muli %a, %y : i32 loc("kernel.py":8:9)
    tt.store %p, %b : !tt.ptr<i32> loc("kernel.py":9:5)"""


CALLED = """
    %a = arith.addi %x, %y : i32 loc(callsite("lib.py":3:5 at callsite("lib.py":12:7 at "kernel.py":8:9)))
    %b = arith.muli %a, %y : i32 loc("kernel.py":9:9)
    tt.store %p, %b : !tt.ptr<i32> loc("kernel.py":10:5)"""


def test_an_inlined_function_tells_its_line_and_that_of_each_call(filecheck, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib.py").write_text("\ndef inner(x, y):\n    return x + y\n\n\n\n\n\n\n\ndef outer():\n    inner()\n")
    linecache.clearcache()
    module = compile_body(CALLED, "%x: i32, %y: i32, %p: !tt.ptr<i32>", options=LINES)
    filecheck(
        disassemble(module),
        """
CHECK: %[[SET:[0-9]+]] = OpExtInstImport "NonSemantic.Shader.DebugInfo.100"
CHECK-DAG: %[[LIB:[0-9]+]] = OpString "lib.py"
CHECK-DAG: %[[INNER:[0-9]+]] = OpString "inner"
CHECK-DAG: %[[OUTER:[0-9]+]] = OpString "outer"
CHECK-DAG: %[[THREE:[0-9]+]] = OpConstant %{{[0-9]+}} 3
CHECK-DAG: %[[EIGHT:[0-9]+]] = OpConstant %{{[0-9]+}} 8
CHECK-DAG: %[[TWELVE:[0-9]+]] = OpConstant %{{[0-9]+}} 12
CHECK: %[[SOURCE:[0-9]+]] = OpExtInst %{{[0-9]+}} %[[SET]] DebugSource %[[LIB]] %{{[0-9]+}}
CHECK: DebugCompilationUnit
CHECK: %[[IN:[0-9]+]] = OpExtInst %{{[0-9]+}} %[[SET]] DebugFunction %[[INNER]] %{{[0-9]+}} %[[SOURCE]]
CHECK: %[[OUT:[0-9]+]] = OpExtInst %{{[0-9]+}} %[[SET]] DebugFunction %[[OUTER]] %{{[0-9]+}} %[[SOURCE]]
CHECK: %[[CALLED:[0-9]+]] = OpExtInst %{{[0-9]+}} %[[SET]] DebugInlinedAt %[[EIGHT]] %{{[0-9]+}}
CHECK: %[[AT:[0-9]+]] = OpExtInst %{{[0-9]+}} %[[SET]] DebugInlinedAt %[[TWELVE]] %[[OUT]] %[[CALLED]]
CHECK: OpFunction
CHECK: DebugScope %[[IN]] %[[AT]]
CHECK-NEXT: DebugLine %[[SOURCE]] %[[THREE]] %[[THREE]]
CHECK-NEXT: OpLine %[[LIB]] 3 5
CHECK-NEXT: OpIAdd
CHECK: DebugScope %{{[0-9]+}}{{$}}
CHECK: OpIMul
""",
    )
    calls, found = InlinedCalls(decode(module)), []
    for entry in decode(module):
        if calls.describes(entry) and (callers := calls.callers(entry)) is not None:
            found.append(callers)
    assert found[0] == [("lib.py", 12), ("kernel.py", 8)] and found[1] == []


def test_the_text_of_a_long_source_goes_into_pieces(tmp_path, monkeypatch):
    """An instruction has at most 65,535 words."""
    monkeypatch.chdir(tmp_path)
    text = "# é\n" * 15_000 * 5
    (tmp_path / "kernel.py").write_text(text, encoding="utf-8")
    linecache.clearcache()
    module = compile_body(TWO_LINES, "%x: i32, %y: i32, %p: !tt.ptr<i32>", options=LINES)
    strings = {entry.result: str(entry.operands[0].value) for entry in decode(module) if entry.opcode == op.String}
    pieces = [strings[int(ids.rsplit("%", 1)[1])] for ids in re.findall("DebugSource.* .*", disassemble(module))]
    assert len(pieces) == 5 and "".join(pieces) == text


#: What a debug build alone has; the numbers of lines are constants.
DEBUG = {op.String, op.Line, op.NoLine, op.Name, op.ExtInst, op.ExtInstImport, op.Extension, op.Constant}


@pytest.mark.parametrize(
    "name", ["argmax", "atomics", "dot", "hints", "loops", "map", "matmul", "scan_sort", "softmax"]
)
def test_the_code_is_the_same(name: str) -> None:
    """The debug build has the words of the plain build, with some between them that mean nothing."""
    path = FIXTURES / f"{name}.ttgir"
    plain, debug = (_instructions(path, debug_info) for debug_info in (False, True))
    assert any(words[0] & 0xFFFF == op.Line for words in debug)
    left = iter(plain)
    wanted = next(left, None)
    for words in debug:
        if words == wanted:
            wanted = next(left, None)
        else:
            assert words[0] & 0xFFFF in DEBUG, words
    assert wanted is None, wanted


def test_both_modules_of_one_emission() -> None:
    """A processor's kernel is emitted once: its module, and that with the lines which its code gets."""
    path = FIXTURES / "softmax.ttgir"

    def planned(debug_info: bool) -> Planned:
        source = parse_module(path.read_text(), path.name)
        lanes = int(source.attributes["ttg.threads-per-warp"])
        capabilities = next(profile for profile in PROFILES.values() if profile.subgroup_size == lanes)
        return plan_module(source, capabilities, Options(SPIRVOptions(debug_info=debug_info)))

    both, plain, debug = emit(planned(False), lines=True), emit(planned(False)), emit(planned(True))
    assert plain.with_lines is None and both.spirv == plain.spirv != debug.spirv
    assert both.with_lines == debug.spirv == debug.with_lines


def _instructions(path: Path, debug_info: bool) -> list[tuple[int, ...]]:
    """The words of each instruction."""
    source = parse_module(path.read_text(), path.name)
    lanes = int(source.attributes["ttg.threads-per-warp"])
    capabilities = next(profile for profile in PROFILES.values() if profile.subgroup_size == lanes)
    words = array.array("I", lower_module(source, capabilities, Options(SPIRVOptions(debug_info=debug_info))).spirv)
    place, found = 5, []
    while place < len(words):
        end = place + (words[place] >> 16)
        found.append(tuple(words[place:end]))
        place = end
    return found
