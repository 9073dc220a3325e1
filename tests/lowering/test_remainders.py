"""Vectors at remainders where the dividend is not negative, and scalars elsewhere: division truncates, so that the
remainders of a block of negative numbers do not all count up."""

import pytest

from tests.lowering.harness import compile_body, disassemble

ARGUMENTS = (
    "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 "
    "{tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 16 : i32}"
)

#: Loads at ``(start + arange) % divisor``, with four elements in a lane.
BODY = """
    %line = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #vec4>
    %block = arith.constant 512 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %pid = tt.get_program_id x : i32
    START
    %begin = tt.splat %start : i32 -> tensor<512xi32, #vec4>
    %at = arith.addi %begin, %line : tensor<512xi32, #vec4>
    DIVISOR
    %r = arith.OPERATION %at, %d : tensor<512xi32, #vec4>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vec4>
    %a = tt.addptr %ps, %r : tensor<512x!tt.ptr<f32>, #vec4>, tensor<512xi32, #vec4>
    %v = tt.load %a : tensor<512x!tt.ptr<f32>, #vec4>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #vec4>
    %b = tt.addptr %qs, %line : tensor<512x!tt.ptr<f32>, #vec4>, tensor<512xi32, #vec4>
    tt.store %b, %v : tensor<512x!tt.ptr<f32>, #vec4>
"""

STARTS = {
    "program id": "%start = arith.muli %pid, %block : i32",
    "program of a group": """
    %grid = tt.get_num_programs y : i32
    %group = arith.divsi %pid, %n : i32
    %left = arith.subi %n, %group : i32
    %size = arith.minsi %left, %block : i32
    %own = arith.remsi %pid, %size : i32
    %both = arith.addi %group, %own : i32
    %start = arith.muli %both, %block : i32
""",
    "promised": """
    %natural = arith.cmpi sge, %n, %zero : i32
    llvm.intr.assume %natural : i1
    %start = arith.addi %n, %zero : i32
""",
    "larger one": "%start = arith.maxsi %n, %zero : i32",
    "masked bits": "%start = arith.andi %n, %block : i32",
    "counter": """
    %sum = scf.for %start = %zero to %n step %block iter_args(%was = %zero) -> (i32) : i32 {
""",
    "carried": """
    %sum = scf.for %i = %zero to %n step %one iter_args(%start = %zero) -> (i32) : i32 {
""",
}
SIGNED = {
    "argument": "%start = arith.addi %n, %zero : i32",
    "difference": "%start = arith.subi %zero, %block : i32",
    "smaller one": "%start = arith.minsi %n, %block : i32",
    "promised of another": """
    %natural = arith.cmpi sge, %m, %zero : i32
    llvm.intr.assume %natural : i1
    %start = arith.addi %n, %zero : i32
""",
    "promised in a branch": """
    %natural = arith.cmpi sge, %n, %zero : i32
    %odd = arith.cmpi eq, %m, %one : i32
    scf.if %odd {
      llvm.intr.assume %natural : i1
    }
    %start = arith.addi %n, %zero : i32
""",
    "unsigned counter": """
    %sum = scf.for unsigned %start = %zero to %n step %block iter_args(%was = %zero) -> (i32) : i32 {
""",
    "carried, downwards": """
    %sum = scf.for %i = %zero to %n step %one iter_args(%start = %zero) -> (i32) : i32 {
""",
}
ENDS = {
    "counter": "scf.yield %was : i32\n    }",
    "unsigned counter": "scf.yield %was : i32\n    }",
    "carried": "%next = arith.addi %start, %block : i32\n    scf.yield %next : i32\n    }",
    "carried, downwards": "%next = arith.subi %start, %block : i32\n    scf.yield %next : i32\n    }",
}
CONSTANT = "%d = arith.constant dense<32> : tensor<512xi32, #vec4>"
ARGUMENT = "%d = tt.splat %m : i32 -> tensor<512xi32, #vec4>"

VECTORS = "CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} Aligned 16\n"
SCALARS = "CHECK-COUNT-4: OpLoad %{{[0-9]+}} %{{[0-9]+}} Aligned 4\n"


def text(name: str, operation: str, divisor: str) -> str:
    body = BODY.replace("START", (STARTS | SIGNED)[name]).replace("DIVISOR", divisor).replace("OPERATION", operation)
    return disassemble(compile_body(body + ENDS.get(name, ""), ARGUMENTS))


@pytest.mark.parametrize("divisor", [CONSTANT, ARGUMENT], ids=["constant", "argument"])
@pytest.mark.parametrize("name", sorted(STARTS))
def test_remainders_of_numbers_that_are_not_negative(name: str, divisor: str, filecheck) -> None:
    filecheck(text(name, "remsi", divisor), VECTORS)


def test_a_divisor_that_is_no_constant_is_taken_for_a_positive_number(filecheck) -> None:
    """The number of programs in a group comes of arguments, in each product of matrices that goes by groups."""
    filecheck(text("program of a group", "remsi", ARGUMENT), VECTORS)


def test_what_assume_says_is_believed(filecheck) -> None:
    filecheck(text("promised", "remsi", CONSTANT), VECTORS)
    filecheck(text("argument", "remsi", CONSTANT), SCALARS)


def test_hints_are_believed(filecheck) -> None:
    """Of a remainder that may be negative."""
    body = BODY.replace("START", SIGNED["argument"]).replace("DIVISOR", CONSTANT).replace("OPERATION", "remsi")
    hint = "{tt.contiguity = dense<4> : tensor<1xi32>, tt.divisibility = dense<4> : tensor<1xi32>}"
    hinted = body.replace("%d :", f"%d {hint} :", 1)
    assert hinted != body
    filecheck(disassemble(compile_body(hinted, ARGUMENTS)), VECTORS)


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_remainders_of_numbers_that_may_be_negative(name: str, filecheck) -> None:
    filecheck(text(name, "remsi", CONSTANT), SCALARS)


def test_unsigned_remainders(filecheck) -> None:
    filecheck(text("argument", "remui", ARGUMENT), VECTORS)
