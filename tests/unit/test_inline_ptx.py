"""Reading PTX and constraints, and the table of instructions on the page."""

import re
from pathlib import Path

import pytest
from triton.backends.spirv.lowering.assembly.instructions import NAMES
from triton.backends.spirv.ptx.constraints import parse_constraints
from triton.backends.spirv.ptx.parser import parse
from triton.backends.spirv.ptx.program import Constant, PtxError, Register, Vector

PAGE = Path(__file__).parents[2] / "docs/internals/inline-ptx.md"


def test_the_page_names_every_instruction_that_is_translated() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    named = {name for line in table for name in re.findall(r"`([a-z0-9]+)`", line)}
    assert named == NAMES


def test_names_are_those_of_the_innermost_braces() -> None:
    program = parse(".reg .b32 a; { .reg .b16 a; mov.b16 a, 1; } mov.b32 a, 0x10;")
    inner, outer = (instruction.operands[0] for instruction in program.instructions)
    assert isinstance(inner, Register) and isinstance(outer, Register)
    assert (program.widths[inner.name], program.widths[outer.name]) == (16, 32)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("0f3F800000", Constant("f32", 0x3F800000)),
        ("0d3FF0000000000000", Constant("f64", 0x3FF0000000000000)),
        ("0x1fU", Constant("integer", 31)),
        ("0b101", Constant("integer", 5)),
        ("017", Constant("integer", 15)),
        ("-7", Constant("integer", -7)),
        ("20.", Constant("real", 20.0)),
        ("-1.5e-3", Constant("real", -1.5e-3)),
    ],
)
def test_constants(text: str, literal: Constant) -> None:
    assert parse(f"mov.b32 $0, {text};").instructions[0].operands[1] == literal


def test_parts_guards_comments_and_two_results() -> None:
    text = "// one\n.reg .pred p, q; /* two */ setp.lt.s32 p|q, $1, ${2}; @!p mov.b64 {_, $0}, $3;"
    compare, move = parse(text).instructions
    assert str(compare) == "setp.lt.s32" and compare.second == Register("q#1")
    assert compare.operands[2] == Register("$2")
    assert move.guard == Register("p#0", negated=True) and move.operands[0] == Vector((None, Register("$0")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mov.b32 $0, $1; }", "a '}' closes nothing"),
        (".reg .b32 a, a;", "'a' is declared twice"),
        (".reg .v4 a;", "does not declare registers of a scalar type"),
        ("mov.b32 $0, \x01;", "is not PTX"),
        ("bra done;", "'bra' leaves the sequence of instructions"),
        ("mov.b32 $0 $1;", "',' was expected, not '$1'"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(PtxError, match=re.escape(message)):
        parse(text)


def test_constraints() -> None:
    found = parse_constraints("=&r, =d,h,1,f,~{memory}")
    assert (found.results, found.arguments, found.names) == ((32, 64), (16, 64, 32), ("$2", "$1", "$4"))
    for text in ("r,=r", "=r,3", "=q"):
        with pytest.raises(PtxError):
            parse_constraints(text)
