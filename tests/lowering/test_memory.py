"""Loads and stores: access width, alignment, masks."""

from __future__ import annotations

import re

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

from tests.lowering.harness import PLAIN, compile_body, disassemble

POINTER = "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}"


def offsets(layout: str, size: int, element: str = "f32") -> str:
    """TTGIR that makes ``%ptr``: ``%p`` plus 0, 1, 2, …"""
    tensor = f"tensor<{size}x!tt.ptr<{element}>, {layout}>"
    return (
        f"    %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32, {layout}>\n"
        f"    %s = tt.splat %p : !tt.ptr<{element}> -> {tensor}\n"
        f"    %ptr = tt.addptr %s, %r : {tensor}, tensor<{size}xi32, {layout}>\n"
    )


def test_aligned_copy_is_one_128_bit_access(filecheck):
    body = (
        offsets("#vec4", 128)
        + """
    %v = tt.load %ptr : tensor<128x!tt.ptr<f32>, #vec4>
    tt.store %ptr, %v : tensor<128x!tt.ptr<f32>, #vec4>"""
    )
    filecheck(
        disassemble(compile_body(body, POINTER)),
        """
CHECK: %[[PART:[0-9]+]] = OpTypeFloat 32
CHECK: %[[VEC:[0-9]+]] = OpTypeVector %[[PART]] 4
CHECK: OpLoad %[[VEC]] %{{[0-9]+}} Aligned 16
CHECK-NOT: OpLoad %[[PART]]
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: OpStore
CHECK: OpReturn
""",
    )


def test_unaligned_pointer_is_read_by_elements(filecheck):
    body = (
        offsets("#vec4", 128)
        + """
    %v = tt.load %ptr : tensor<128x!tt.ptr<f32>, #vec4>
    tt.store %ptr, %v : tensor<128x!tt.ptr<f32>, #vec4>"""
    )
    filecheck(
        disassemble(compile_body(body, "%p: !tt.ptr<f32>")),
        """
CHECK: %[[F32:[0-9]+]] = OpTypeFloat 32
CHECK-COUNT-4: OpLoad %[[F32]] %{{[0-9]+}} Aligned 4
CHECK-COUNT-4: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 4
CHECK-NOT: OpStore
CHECK: OpReturn
""",
    )


def test_halves_travel_in_words(filecheck):
    body = (
        offsets("#vec8", 256, "f16")
        + """
    %v = tt.load %ptr : tensor<256x!tt.ptr<f16>, #vec8>
    tt.store %ptr, %v : tensor<256x!tt.ptr<f16>, #vec8>"""
    )
    argument = "%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}"
    filecheck(
        disassemble(compile_body(body, argument)),
        """
CHECK-NOT: StorageBuffer16BitAccess
CHECK: %[[WORD:[0-9]+]] = OpTypeInt 32 0
CHECK: %[[VEC:[0-9]+]] = OpTypeVector %[[WORD]] 4
CHECK: OpLoad %[[VEC]] %{{[0-9]+}} Aligned 16
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: OpStore
CHECK: OpReturn
""",
    )


def test_mask_that_is_uniform_over_a_vector_keeps_it(filecheck):
    body = (
        offsets("#vec4", 128)
        + """
    %n4 = tt.splat %n : i32 -> tensor<128xi32, #vec4>
    %m = arith.cmpi slt, %r, %n4 : tensor<128xi32, #vec4>
    %v = tt.load %ptr, %m : tensor<128x!tt.ptr<f32>, #vec4>
    tt.store %ptr, %v, %m : tensor<128x!tt.ptr<f32>, #vec4>"""
    )
    arguments = f"{POINTER}, %n: i32 {{tt.divisibility = 16 : i32}}"
    filecheck(
        disassemble(compile_body(body, arguments, capabilities=PLAIN)),
        """
CHECK: %[[F32:[0-9]+]] = OpTypeFloat 32
CHECK: %[[VEC:[0-9]+]] = OpTypeVector %[[F32]] 4
CHECK: OpSelectionMerge
CHECK: OpLoad %[[VEC]] %{{[0-9]+}} Aligned 16
CHECK: OpSelectionMerge
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: OpStore
CHECK: OpReturn
""",
    )


def test_ragged_mask_splits_the_vector(filecheck):
    body = (
        offsets("#vec4", 128)
        + """
    %n4 = tt.splat %n : i32 -> tensor<128xi32, #vec4>
    %m = arith.cmpi slt, %r, %n4 : tensor<128xi32, #vec4>
    tt.store %ptr, %r32, %m : tensor<128x!tt.ptr<f32>, #vec4>"""
    )
    body = body.replace("%r32", "%c").replace(
        "    %n4", "    %c = arith.constant dense<1.0> : tensor<128xf32, #vec4>\n    %n4", 1
    )
    filecheck(
        disassemble(compile_body(body, f"{POINTER}, %n: i32")),
        """
CHECK-COUNT-4: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 4
CHECK-NOT: OpStore
CHECK: OpReturn
""",
    )


def test_element_that_several_invocations_hold_is_stored_once(filecheck):
    body = (
        offsets("#one", 8)
        + """
    %c = arith.constant dense<1.0> : tensor<8xf32, #one>
    tt.store %ptr, %c : tensor<8x!tt.ptr<f32>, #one>"""
    )
    filecheck(
        disassemble(compile_body(body, POINTER)),
        """
CHECK: OpDecorate %[[WARP_INPUT:[0-9]+]] BuiltIn SubgroupId
CHECK: %[[WARP:[0-9]+]] = OpLoad %{{[0-9]+}} %[[WARP_INPUT]]
CHECK: %[[BITS:[0-9]+]] = OpBitwiseAnd %{{[0-9]+}} %[[WARP]]
CHECK: %[[OWNER:[0-9]+]] = OpIEqual %{{[0-9]+}} %{{[0-9]+}} %[[BITS]]
CHECK: OpBranchConditional %[[OWNER]]
CHECK: OpStore
""",
    )


def test_volatile_load(filecheck):
    body = "    %v = tt.load %p {isVolatile = true} : !tt.ptr<f32>\n    tt.store %p, %v : !tt.ptr<f32>"
    filecheck(disassemble(compile_body(body, POINTER)), "CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} Volatile|Aligned 4\n")


def test_device_without_byte_access_refuses_bytes():
    capabilities = PROFILES["lavapipe"]
    from dataclasses import replace

    poor = replace(capabilities, features=capabilities.features - {"storage8"})
    body = "    %v = tt.load %p : !tt.ptr<i8>\n    tt.store %p, %v : !tt.ptr<i8>"
    with pytest.raises(UnsupportedOperation, match="'tt.load'.*8-bit elements in memory"):
        compile_body(body, "%p: !tt.ptr<i8>", capabilities=poor)


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


#: A number is loaded, replaced by its successor, and given to all elements of a tile.
COUNTED = """
    %one = arith.constant 1 : i32
    %old = tt.load %p : !tt.ptr<i32>
    %new = arith.addi %old, %one : i32
    tt.store %p, %new : !tt.ptr<i32>
    %all = tt.splat %old : i32 -> tensor<16x16xi32, #rows>
    %to = tt.splat %q : !tt.ptr<i32> -> tensor<16x16x!tt.ptr<i32>, #rows>
    tt.store %to, %all : tensor<16x16x!tt.ptr<i32>, #rows>"""


def test_all_have_read_before_one_writes(filecheck):
    """UniformMemory and WorkgroupMemory, AcquireRelease, MakeAvailable and MakeVisible: 0x6148."""
    filecheck(
        disassemble(compile_body(COUNTED, "%p: !tt.ptr<i32>, %q: !tt.ptr<i32>")),
        """
CHECK-DAG: %[[WORKGROUP:[0-9]+]] = OpConstant %{{[0-9]+}} 2{{ *$}}
CHECK-DAG: %[[SEMANTICS:[0-9]+]] = OpConstant %{{[0-9]+}} 24904
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} Aligned|NonPrivatePointer 4
CHECK: OpControlBarrier %[[WORKGROUP]] %[[WORKGROUP]] %[[SEMANTICS]]
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned|NonPrivatePointer 4
CHECK-NOT: OpControlBarrier""",
    )


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
