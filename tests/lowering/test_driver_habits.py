"""Habits of drivers that change what is planned or emitted: the same kernel with and without each."""

import re
from dataclasses import replace

import pytest
from triton.backends.spirv.analysis.code_size import length
from triton.backends.spirv.driver_quirks import DRIVERS
from triton.backends.spirv.runtime.vulkan.compute_units import combine
from triton.backends.spirv.runtime.vulkan.devices import lanes_for
from triton.backends.spirv.transforms import table
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, PLAIN, compile_body, disassemble, driven, module_text
from tests.lowering.test_matrix_dot import HOPPER, LOOP, compiled
from tests.lowering.test_rolled import ARGUMENTS, LOOPED, SCALED, body, plan

ONE_RESULT = "%y = arith.divf %x, %x : tensor<{elements}xf32, #one>"


def test_quotients_of_large_divisors_are_scaled_where_the_driver_gets_them_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quotients = "%w = tt.splat %v : f32 -> tensor<{elements}xf32, #one>\n    " + ONE_RESULT.replace("%x, %x", "%x, %w")
    kernel = body(1, quotients)
    assert "OpFOrdGreaterThanEqual" not in disassemble(compile_body(kernel, ARGUMENTS))
    poor = driven(monkeypatch, LAVAPIPE, large_divisors=False)
    assert "OpFOrdGreaterThanEqual" in disassemble(compile_body(kernel, ARGUMENTS, capabilities=poor))


def test_loops_with_matrices_are_left_to_the_driver_where_it_unrolls_them_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.search(r"OpLoopMerge %\d+ %\d+ DontUnroll", compiled(16, 8, 16, products=LOOP))
    monkeypatch.setitem(DRIVERS, HOPPER.driver, replace(HOPPER.traits, rolls_matrix_loops=False))
    assert re.search(r"OpLoopMerge %\d+ %\d+ None", compiled(16, 8, 16, products=LOOP))


@pytest.mark.parametrize(("each", "expected"), [(32, True), (1, False)])
def test_masked_accesses_are_as_long_as_the_driver_makes_them(
    monkeypatch: pytest.MonkeyPatch, each: int, expected: bool
) -> None:
    device = driven(monkeypatch, LAVAPIPE, each_lane=each, unrolled_instructions=64, unrolled_elementwise=0)
    masked = (
        "%m = arith.cmpf ogt, %x, %x : tensor<{elements}xf32, #one>\n    "
        "%y = tt.load %a, %m, %x : tensor<{elements}x!tt.ptr<f32>, #one>"
    )
    module = parse_module(module_text(body(8, masked), ARGUMENTS))
    (load,) = (one for one in kernel_of(module).walk() if one.name == "tt.load" and len(one.operands) > 1)
    assert (length(load, device.traits) > 1) == expected


def test_numbers_are_unpacked_without_a_loop_where_the_driver_takes_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = body(256, SCALED.replace("mulf %w, %m", "addf %w, %m"))
    assert "tt.fp_to_fp  a loop over up to 256 registers" in plan(scaled, PLAIN)
    assert "tt.fp_to_fp  a loop" not in plan(scaled, driven(monkeypatch, PLAIN, unrolled_unpacking=None))


def test_code_in_loops_has_a_budget_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    looped = body(64, LOOPED)
    assert "math.sin  a loop over up to 64 registers, 16 a round" in plan(looped)
    assert "math.sin  a loop over up to 64 registers, 8 a round" in plan(
        looped, driven(monkeypatch, LAVAPIPE, unrolled_in_loop=800)
    )


def test_operands_are_laid_out_for_banks_where_memory_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for banked in (True, False):
        device = driven(monkeypatch, LAVAPIPE, shared_banks=banked)
        (row,) = (one for one in table.TRANSFORMS if one.name == "lay out buffers of dot operands")
        assert bool(row.when(device, Options())) == banked


def test_matrix_units_have_subgroups_of_their_own_size() -> None:
    radv = replace(LAVAPIPE, driver="mesa_radv").traits
    assert (lanes_for(radv, matrices=True), lanes_for(radv, matrices=False)) == (32, None)
    turnip = replace(LAVAPIPE, driver="mesa_turnip").traits
    assert lanes_for(turnip, matrices=True) == lanes_for(turnip, matrices=False) == 64


def test_doubles_are_rounded_by_sums_where_the_driver_rounds_them_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    double = (
        '%y = tt.extern_elementwise %x {{libname = "", libpath = "", pure = true, symbol = "__nv_rint"}} : '
        "(tensor<{elements}xf64, #one>) -> tensor<{elements}xf64, #one>"
    )
    kernel = body(1, double).replace("!tt.ptr<f32>", "!tt.ptr<f64>")
    for right in (True, False):
        device = driven(monkeypatch, LAVAPIPE, rounds_doubles=right)
        text = disassemble(compile_body(kernel, ARGUMENTS.replace("!tt.ptr<f32>", "!tt.ptr<f64>"), capabilities=device))
        assert ("RoundEven" in text) == right


def test_registers_of_a_compute_unit_are_the_tables_where_the_driver_does_not_tell_them() -> None:
    assert combine({}, "mesa_nvk", 32).registers == DRIVERS["mesa_nvk"].unit_registers == 65536
    assert combine({}, "mesa_turnip", 64).registers is None
