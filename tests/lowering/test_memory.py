"""Loads and stores: access width, alignment, masks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import compile_body, disassemble


def test_device_without_byte_access_refuses_bytes():
    capabilities = PROFILES["lavapipe"]
    poor = replace(capabilities, features=capabilities.features - {"storage8"})
    body = "    %v = tt.load %p : !tt.ptr<i8>\n    tt.store %p, %v : !tt.ptr<i8>"
    with pytest.raises(UnsupportedOperation, match="'tt.load'.*8-bit elements in memory"):
        compile_body(body, "%p: !tt.ptr<i8>", capabilities=poor)


#: A number is loaded, replaced by its successor, and given to all elements of a tile.
COUNTED = """
    %one = arith.constant 1 : i32
    %old = tt.load %p : !tt.ptr<i32>
    %new = arith.addi %old, %one : i32
    tt.store %p, %new : !tt.ptr<i32>
    %all = tt.splat %old : i32 -> tensor<16x16xi32, #rows>
    %to = tt.splat %q : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>, #rows>
    tt.store %to, %all : tensor<16x16x!tt.ptr<i32>, #rows>"""


def test_arguments_are_taken_for_memory_apart():
    """A store through another argument than a load's waits for nobody (docs/assumptions.md)."""
    body = COUNTED.replace("tt.store %p,", "tt.store %q,")
    arguments = "%p: !tt.ptr<i32>, %q: !tt.ptr<i32>"
    assert "OpControlBarrier" in disassemble(compile_body(COUNTED, arguments))
    assert "OpControlBarrier" not in disassemble(compile_body(body, arguments))


def test_what_only_the_writer_uses_is_not_waited_for():
    body = COUNTED.replace("tt.splat %old", "tt.splat %one")
    assert "OpControlBarrier" not in disassemble(compile_body(body, "%p: !tt.ptr<i32>, %q: !tt.ptr<i32>"))


@pytest.mark.parametrize(("written", "semantics"), [("p", 0x6148), ("q", 0x6108)])
def test_a_barrier_of_shared_memory_orders_reads_where_they_count_on_it(written, semantics):
    """A tile is loaded from p, another one is converted and stored: where it goes to p, the conversion's barrier is one
    of device memory, too."""
    tile, pointers = "tensor<16x16xi32, {}>", "tensor<16x16x!tt.ptr<i32>, {}>"
    body = f"""
    %a = tt.splat %p : !tt.ptr<i32> -> {pointers.format("#rows")}
    %b = tt.splat %r : !tt.ptr<i32> -> {pointers.format("#rows")}
    %c = tt.splat %s : !tt.ptr<i32> -> {pointers.format("#rows")}
    %d = tt.splat %{written} : !tt.ptr<i32> -> {pointers.format("#columns")}
    %first = tt.load %a : {pointers.format("#rows")}
    %other = tt.load %b : {pointers.format("#rows")}
    %turned = ttg.convert_layout %other : {tile.format("#rows")} -> {tile.format("#columns")}
    tt.store %d, %turned : {pointers.format("#columns")}
    tt.store %c, %first : {pointers.format("#rows")}"""
    text = disassemble(compile_body(body, ", ".join(f"%{name}: !tt.ptr<i32>" for name in "pqrs")))
    constants = dict(re.findall(r"(%\d+) = OpConstant %\d+ (\d+)", text))
    assert [int(constants[one]) for one in re.findall(r"OpControlBarrier %\d+ %\d+ (%\d+)", text)] == [semantics]
    assert bool(re.search(r"OpStore .* Aligned\|NonPrivatePointer 4", text)) == (written == "p")


@pytest.mark.parametrize("loop", [False, True])
def test_a_load_inside_control_flow_has_an_address_of_its_own_in_each_lane(filecheck, loop):
    """For a driver that does loads of one address for lanes that are inactive, too."""
    load = "%v = tt.load %p : !tt.ptr<f32>\n    tt.store %p, %v : !tt.ptr<f32>"
    around = (
        f"    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
        f"    scf.for %i = %c0 to %n step %c1 : i32 {{\n    {load}\n    }}"
    )
    text = disassemble(compile_body(around if loop else f"    {load}", "%p: !tt.ptr<f32>, %n: i32"))
    within = """
CHECK: %[[BITS:[0-9]+]] = OpConstant %{{[0-9]+}} 16
CHECK: %[[HIGH:[0-9]+]] = OpShiftRightLogical %{{[0-9]+}} %{{[0-9]+}} %[[BITS]]
CHECK: %[[ZERO:[0-9]+]] = OpUConvert %{{[0-9]+}} %[[HIGH]]
CHECK: OpLoopMerge
CHECK: %[[ADDRESS:[0-9]+]] = OpIAdd {{.*}}%[[ZERO]]
CHECK: OpConvertUToPtr %{{[0-9]+}} %[[ADDRESS]]
"""
    filecheck(text, within if loop else "CHECK-NOT: OpShiftRightLogical\nCHECK: OpReturn")
