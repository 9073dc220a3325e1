"""Long element-by-element operations: a loop over registers where many of them differ, as the plan says."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.planning.show import plan_text
from triton.backends.spirv.stages import plan_module
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, PLAIN, compile_body, disassemble, module_text

#: %y = {operation} of a tensor of which each lane holds {registers} elements.
BODY = """
    %r = tt.make_range {{end = {elements} : i32, start = 0 : i32}} : tensor<{elements}xi32, #one>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<{elements}x!tt.ptr<f32>, #one>
    %a = tt.addptr %s, %r : tensor<{elements}x!tt.ptr<f32>, #one>, tensor<{elements}xi32, #one>
    {load} : tensor<{elements}x!tt.ptr<f32>, #one>
    {operation}
    tt.store %a, %y : tensor<{elements}x!tt.ptr<f32>, #one>"""
SIN = "%y = math.sin %x : tensor<{elements}xf32, #one>"
LOOPED = """%b = arith.constant 0 : i32
    %e = arith.constant 8 : i32
    %i = arith.constant 1 : i32
    %y = scf.for %k = %b to %e step %i iter_args(%c = %x) -> (tensor<{elements}xf32, #one>) : i32 {{
      %z = math.sin %c : tensor<{elements}xf32, #one>
      scf.yield %z : tensor<{elements}xf32, #one>
    }}"""
EXTERN = (
    '%y = tt.extern_elementwise %x {{libname = "", libpath = "", pure = true, symbol = "{symbol}"}} : '
    "(tensor<{elements}xf32, #one>) -> tensor<{elements}xf32, #one>"
)
ARGUMENTS = "%p: !tt.ptr<f32>, %v: f32"


def body(registers: int, operation: str = SIN, load: str = "%x = tt.load %a") -> str:
    elements = registers * 32
    return BODY.format(elements=elements, operation=operation.format(elements=elements), load=load)


def plan(text: str, capabilities: Capabilities = LAVAPIPE) -> str:
    planned = plan_module(parse_module(module_text(text, ARGUMENTS)), capabilities, Options())
    return plan_text(kernel_of(planned.source), planned.plan)


def loops(text: str, capabilities: Capabilities = LAVAPIPE) -> int:
    return disassemble(compile_body(text, ARGUMENTS, capabilities=capabilities)).count("OpLoopMerge")


@pytest.mark.parametrize(
    ("operation", "registers", "expected"),
    [
        (SIN, 4, "math.sin  4 registers unrolled"),
        (SIN, 8, "math.sin  a loop over up to 8 registers, 1 a round, because code of 100 "),
        (LOOPED, 32, "math.sin  32 registers unrolled"),
        (LOOPED, 64, "math.sin  a loop over up to 64 registers, 16 a round, because code of 100 "),
        (EXTERN.replace("{symbol}", "__nv_sinf"), 4, "tt.extern_elementwise  4 registers unrolled"),
        (
            EXTERN.replace("{symbol}", "__spirv_lgamma_f32"),
            2,
            "tt.extern_elementwise  a loop over up to 2 registers, 1 a round, ",
        ),
    ],
    ids=["few", "many", "few in a loop", "many in a loop", "few of a function", "many of a long function"],
)
def test_the_plan_is_what_is_emitted(operation: str, registers: int, expected: str) -> None:
    text = body(registers, operation)
    assert expected in plan(text)
    assert loops(text) == (operation is LOOPED) + ("a loop over" in expected)


def test_a_driver_of_which_nothing_is_known_unrolls_more() -> None:
    assert "8 registers unrolled" in plan(body(8), PLAIN) and not loops(body(8), PLAIN)


#: %y = what {registers} numbers of e4m3 are, times %s.
SCALED = """%u = arith.fptosi %x : tensor<{elements}xf32, #one> to tensor<{elements}xi8, #one>
    %n = tt.bitcast %u : tensor<{elements}xi8, #one> -> tensor<{elements}xf8E4M3FN, #one>
    %w = tt.fp_to_fp %n : tensor<{elements}xf8E4M3FN, #one> -> tensor<{elements}xbf16, #one>
    %m = arith.truncf %x : tensor<{elements}xf32, #one> to tensor<{elements}xbf16, #one>
    %h = arith.mulf %w, %m : tensor<{elements}xbf16, #one>
    %y = arith.extf %h : tensor<{elements}xbf16, #one> to tensor<{elements}xf32, #one>"""


@pytest.mark.parametrize(
    ("operation", "registers", "unpacked", "expected"),
    [
        (SCALED, 64, "64 registers unrolled", 0),
        (SCALED, 128, "left to its use, because its numbers are unpacked where they are scaled", 1),
        (SCALED.replace("mulf %w, %m", "addf %w, %m"), 128, "128 registers unrolled", 0),
        (SCALED.replace("mulf %w, %m", "addf %w, %m"), 256, "a loop over up to 256 registers, 4 a round", 1),
        (SCALED.replace("mulf %w, %m", "mulf %w, %w"), 256, "a loop over up to 256 registers, 4 a round", 1),
    ],
)
def test_numbers_are_unpacked_and_scaled_in_one_loop(
    operation: str, registers: int, unpacked: str, expected: int
) -> None:
    text = body(registers, operation)
    assert f"tt.fp_to_fp  {unpacked}" in plan(text, PLAIN)
    assert loops(text, PLAIN) == expected


def test_equal_registers_are_computed_once() -> None:
    text = body(8, "%t = tt.splat %v : f32 -> tensor<{elements}xf32, #one>\n    " + SIN.replace("%x", "%t"))
    assert "a loop over up to 8 registers" in plan(text) and not loops(text)


def test_an_instruction_has_no_plan() -> None:
    fma = "%y = math.fma %x, %x, %x : tensor<{elements}xf32, #one>"
    assert "math.fma" in plan(body(64, fma)) and loops(body(64, fma))
    fused = replace(LAVAPIPE, driver="mesa_radv")
    assert "math.fma" not in plan(body(64, fma), fused) and not loops(body(64, fma), fused)


ASSEMBLY = (
    '%y, %w = tt.elementwise_inline_asm "{{ ex2.approx.f32 $0, $2; lg2.approx.f32 $1, $2; }}" '
    '{{constraints = "=f,=f,f", packed_element = 1 : i32, pure = true}} %x : tensor<{elements}xf32, #one> -> '
    "tensor<{elements}xf32, #one>, tensor<{elements}xf32, #one>\n    tt.store %a, %w : "
    "tensor<{elements}x!tt.ptr<f32>, #one>"
)


@pytest.mark.parametrize(("registers", "expected"), [(2, 0), (16, 1)])
def test_inline_assembly_with_several_results(registers: int, expected: int) -> None:
    text = body(registers, ASSEMBLY)
    assert loops(text) == expected
    said = "2 instructions of PTX" + ", in a loop over up to 16 registers, 1 a round" * expected
    assert said in plan(text)


UPDATE = (
    "%y = arith.addf %x, %x : tensor<{elements}xf32, #one>\n    "
    "%m = arith.cmpf ogt, %x, %y : tensor<{elements}xf32, #one>\n    "
    "%o = tt.atomic_rmw fadd, relaxed, gpu, %a, %x, %m : "
    "(tensor<{elements}x!tt.ptr<f32>, #one>, tensor<{elements}xf32, #one>, tensor<{elements}xi1, #one>) -> "
    "tensor<{elements}xf32, #one>"
)


@pytest.mark.parametrize(
    ("registers", "capabilities", "swaps"),
    [(4, LAVAPIPE, 4), (16, LAVAPIPE, 1), (32, PLAIN, 32), (128, PLAIN, 1)],
    ids=["few", "many", "few for a GPU", "many for a GPU"],
)
def test_atomic_operations_go_into_a_loop(registers: int, capabilities: Capabilities, swaps: int) -> None:
    text = body(registers, UPDATE)
    emitted = disassemble(compile_body(text, ARGUMENTS, capabilities=capabilities))
    assert emitted.count("OpAtomicFAddEXT") == swaps
    assert ("a loop over up to" in plan(text, capabilities)) == (swaps == 1)


#: Counts of tensors of 0 to 7 in a histogram that takes all counts of a lane.
COUNTED = (
    "%i = arith.fptosi %x : tensor<{elements}xf32, #one> to tensor<{elements}xi32, #one>\n    "
    "%m = arith.cmpi ne, %i, %r : tensor<{elements}xi32, #one>\n    "
    "%h = tt.histogram %i, %m : tensor<{elements}xi32, #one> -> tensor<{elements}xi32, #one>\n    "
    "%y = arith.sitofp %h : tensor<{elements}xi32, #one> to tensor<{elements}xf32, #one>"
)


@pytest.mark.parametrize(
    ("registers", "capabilities", "counts"),
    [(4, LAVAPIPE, 4), (16, LAVAPIPE, 1), (32, PLAIN, 32), (128, PLAIN, 1)],
    ids=["few", "many", "few for a GPU", "many for a GPU"],
)
def test_a_histogram_counts_in_a_loop(registers: int, capabilities: Capabilities, counts: int) -> None:
    text = body(registers, COUNTED)
    assert disassemble(compile_body(text, ARGUMENTS, capabilities=capabilities)).count("OpAtomicIAdd") == counts
    assert ("a loop over up to" in plan(text, capabilities)) == (counts == 1)


def test_equal_atomic_operations_are_all_done() -> None:
    """As of one place, for each element."""
    one = (
        "%y = arith.addf %x, %x : tensor<{elements}xf32, #one>\n    "
        "%t = tt.splat %v : f32 -> tensor<{elements}xf32, #one>\n    "
        "%o = tt.atomic_rmw fadd, relaxed, gpu, %s, %t : "
        "(tensor<{elements}x!tt.ptr<f32>, #one>, tensor<{elements}xf32, #one>) -> tensor<{elements}xf32, #one>"
    )
    emitted = disassemble(compile_body(body(4, one), ARGUMENTS))
    assert emitted.count("OpAtomicFAddEXT") == 4
