"""Which registers are read: of vectors the first, through arithmetic, loops and branches; everything where in doubt."""

import pytest
from triton.backends.spirv.capabilities import Capabilities
from triton.backends.spirv.errors import LoweringError
from triton.backends.spirv.lowering.entry_point import emit
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.planning.kernel_plan import Planned
from triton.backends.spirv.planning.live_registers import ALL
from triton.backends.spirv.spirv.encode import live
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.stages import plan_module
from triton.backends.spirv.transforms.kernel_function import kernel_of
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, PLAIN, module_text
from tests.spirv_val import validated

POINTER = "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}"
#: Pointers %at to consecutive elements, made of %n; two vectors of 4 a lane.
POINTERS = """
    %n = tt.make_range {{end = 256 : i32, start = 0 : i32}} : tensor<256xi32, #vec4>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #vec4>
    %at = tt.addptr %b, %n : tensor<256x!tt.ptr<f32>, #vec4>, tensor<256xi32, #vec4>
    {rest}"""
FIRSTS = 0b00010001


def planned(
    rest: str, arguments: str = POINTER, options: Options | None = None, capabilities: Capabilities = LAVAPIPE
) -> Planned:
    text = module_text(POINTERS.format(rest=rest), arguments)
    return plan_module(parse_module(text), capabilities, options or Options())


def read(kernel: Planned) -> dict[str, int]:
    """Name of a tensor → the registers that are read of it, where they are not all."""
    return {value.name.lstrip("%"): registers for value, registers in kernel.plan.live.partial.items()}


STORE = "tt.store %at, %x : tensor<256x!tt.ptr<f32>, #vec4>"
LOAD = "%x = tt.load %at : tensor<256x!tt.ptr<f32>, #vec4>"


def test_a_vector_takes_its_first_pointer() -> None:
    kernel = planned(f"{LOAD}\n{STORE}")
    assert read(kernel) == dict.fromkeys(("n", "b", "at"), FIRSTS)
    validated(emit(kernel).spirv)


def test_what_is_stored_is_read_in_every_register() -> None:
    kernel = planned("%x = arith.sitofp %n : tensor<256xi32, #vec4> to tensor<256xf32, #vec4>\n" + STORE)
    assert read(kernel) == dict.fromkeys(("b", "at"), FIRSTS)
    validated(emit(kernel).spirv)


def test_masks_of_vectors_are_read_once() -> None:
    kernel = planned(
        """%limit = tt.splat %m : i32 -> tensor<256xi32, #vec4>
    %less = arith.cmpi slt, %n, %limit : tensor<256xi32, #vec4>
    %x = tt.load %at, %less : tensor<256x!tt.ptr<f32>, #vec4>
    tt.store %at, %x, %less : tensor<256x!tt.ptr<f32>, #vec4>""",
        f"{POINTER}, %m: i32 {{tt.divisibility = 16 : i32}}",
    )
    assert read(kernel)["less"] == read(kernel)["limit"] == FIRSTS
    validated(emit(kernel).spirv)


def test_an_access_of_single_elements_reads_everything() -> None:
    assert read(planned(f"{LOAD}\n{STORE}", "%p: !tt.ptr<f32>")) == {}
    assert read(planned(f"{LOAD}\n{STORE}", options=Options(SPIRVOptions(check_bounds=True)))) == {}


def test_pointers_that_a_loop_moves_are_carried_in_the_registers_that_are_read() -> None:
    kernel = planned(
        """%zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %step = arith.constant dense<256> : tensor<256xi32, #vec4>
    %sum = arith.constant dense<0.0> : tensor<256xf32, #vec4>
    %r:2 = scf.for %i = %zero to %m step %one iter_args(%here = %at, %s = %sum)
        -> (tensor<256x!tt.ptr<f32>, #vec4>, tensor<256xf32, #vec4>)  : i32 {
      %x = tt.load %here : tensor<256x!tt.ptr<f32>, #vec4>
      %more = arith.addf %s, %x : tensor<256xf32, #vec4>
      %next = tt.addptr %here, %step : tensor<256x!tt.ptr<f32>, #vec4>, tensor<256xi32, #vec4>
      scf.yield %next, %more : tensor<256x!tt.ptr<f32>, #vec4>, tensor<256xf32, #vec4>
    }
    tt.store %at, %r#1 : tensor<256x!tt.ptr<f32>, #vec4>""",
        f"{POINTER}, %m: i32",
    )
    found = read(kernel)
    assert found["here"] == found["next"] == found["at"] == FIRSTS
    assert "s" not in found and "more" not in found
    validated(emit(kernel).spirv)


def test_what_only_a_loop_itself_reads_is_not_carried() -> None:
    kernel = planned(
        """%zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:2 = scf.for %i = %zero to %m step %one iter_args(%k = %n, %other = %n)
        -> (tensor<256xi32, #vec4>, tensor<256xi32, #vec4>)  : i32 {
      %double = arith.addi %k, %k : tensor<256xi32, #vec4>
      %both = arith.addi %other, %k : tensor<256xi32, #vec4>
      scf.yield %double, %both : tensor<256xi32, #vec4>, tensor<256xi32, #vec4>
    }
    %x = arith.sitofp %r#0 : tensor<256xi32, #vec4> to tensor<256xf32, #vec4>
    tt.store %at, %x : tensor<256x!tt.ptr<f32>, #vec4>""",
        f"{POINTER}, %m: i32",
    )
    assert read(kernel)["other"] == read(kernel)["both"] == 0
    validated(emit(kernel).spirv)


def test_branches_give_the_registers_that_are_read_behind_them() -> None:
    kernel = planned(
        """%chosen = scf.if %c -> (tensor<256x!tt.ptr<f32>, #vec4>) {
      scf.yield %at : tensor<256x!tt.ptr<f32>, #vec4>
    } else {
      %far = arith.constant dense<1024> : tensor<256xi32, #vec4>
      %there = tt.addptr %at, %far : tensor<256x!tt.ptr<f32>, #vec4>, tensor<256xi32, #vec4>
      scf.yield %there : tensor<256x!tt.ptr<f32>, #vec4>
    }
    %x = tt.load %chosen : tensor<256x!tt.ptr<f32>, #vec4>
    tt.store %at, %x : tensor<256x!tt.ptr<f32>, #vec4>""",
        f"{POINTER}, %c: i1",
    )
    found = read(kernel)
    assert found["at"] == FIRSTS and found.get("there", FIRSTS) == FIRSTS
    validated(emit(kernel).spirv)


def test_no_instruction_of_addresses_is_emitted_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = []
    finish = FunctionBuilder.finish
    monkeypatch.setattr(FunctionBuilder, "finish", lambda f: bodies.append(list(f._body)) or finish(f))
    emit(planned(f"{LOAD}\n{STORE}", capabilities=PLAIN))
    assert bodies and all(len(live(body)) == len(body) for body in bodies)


def test_what_is_read_although_it_was_not_planned_ends_the_compilation() -> None:
    kernel = planned("%x = arith.sitofp %n : tensor<256xi32, #vec4> to tensor<256xf32, #vec4>\n" + STORE)
    value = next(one for one in kernel_of(kernel.source).body.entry.operations if one.name == "tt.make_range").result
    assert kernel.plan.live.of(value) == ALL
    kernel.plan.live.partial[value] = FIRSTS  # type: ignore[index]
    with pytest.raises((LoweringError, OverflowError, KeyError)):
        emit(kernel)
