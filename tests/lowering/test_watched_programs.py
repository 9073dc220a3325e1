"""Races between programs: the module says where a launch has what the CPU device needs to know, and nothing else."""

from triton.backends.spirv.abi.watch_note import WatchNote, read_note
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.runtime.modules.module_info import read_module
from triton.backends.spirv.transforms.schedule import Options

from tests.lowering.harness import compile_body, disassemble

STORE = """
    %x = tt.load %p : !tt.ptr<f32>
    tt.store %q, %x : !tt.ptr<f32>"""
ARGUMENTS = "%p: !tt.ptr<f32>, %n: i32, %q: !tt.ptr<f32>"


def _compiled(**options: object) -> bytes:
    return compile_body(STORE, ARGUMENTS, options=Options(SPIRVOptions(**options)))  # type: ignore[arg-type]


def test_the_module_notes_where_the_launch_has_what_is_needed(filecheck) -> None:  # type: ignore[no-untyped-def]
    spirv = _compiled(check_program_races=True)
    filecheck(disassemble(spirv), 'CHECK: OpModuleProcessed "program_races=24,16,112,0,0,0,16"')
    assert read_module(spirv).watch == WatchNote(24, 16, 112, False, 0, (0, 16))
    equal = read_module(_compiled(check_program_races="equal")).watch
    assert equal is not None and equal.equal and read_note(equal.text()) == equal


def test_without_the_option_there_is_no_note(filecheck) -> None:  # type: ignore[no-untyped-def]
    spirv = _compiled()
    filecheck(disassemble(spirv), "CHECK-NOT: OpModuleProcessed")
    assert read_module(spirv).watch is None and read_note("subgroup_size=8") is None


def test_a_part_of_a_grid_says_its_first_program() -> None:
    note = read_module(_compiled(check_program_races=True, split_grid=True)).watch
    assert note is not None and note.first_program == 32
