"""Parts and views of buffers in shared memory: where their elements are accessed, and with which barriers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from triton.backends.spirv.errors import UnsupportedOperation

from tests.lowering.harness import LAVAPIPE, PLAIN, compile_body, disassemble

EXPLICIT = replace(LAVAPIPE, features=LAVAPIPE.features | {"explicit_workgroup_layout"})
ROOM = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"
ROOMS = "!ttg.memdesc<4x16x16xf32, #shared, #smem, mutable>"
SLICE = "!ttg.memdesc<8x16xf32, #shared, #smem, mutable, 16x16>"


def through(views: str, view: str, shape: str = "16x16", element: str = "f32") -> str:
    """A kernel that stores to the view ``%view`` and reads it again in another layout."""
    tensor = f"tensor<{shape}x{element}, "
    return f"""{views}
    %v = tt.splat %x : {element} -> {tensor}#rows>
    ttg.local_store %v, %view : {tensor}#rows> -> {view}
    %l = ttg.local_load %view : {view} -> {tensor}#columns>
    %ptr = tt.splat %p : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>, #columns>
    tt.store %ptr, %l : tensor<{shape}x!tt.ptr<{element}>, #columns>{FREED if "%before" in views else ""}"""


#: Live at the same time and larger, so that others begin behind its 8,192 bytes.
FIRST = "    %before = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>\n"
FREED = "\n    ttg.local_dealloc %before : !ttg.memdesc<32x64xf32, #shared, #smem, mutable>"
ALLOC = f"{FIRST}    %room = ttg.local_alloc : () -> {ROOM}\n"
ALLOCS = f"{FIRST}    %rooms = ttg.local_alloc : () -> {ROOMS}\n"
INDEX = f"{ALLOCS}    %view = ttg.memdesc_index %rooms[%i] : {ROOMS} -> {ROOM}"
SLICED = f"{ALLOC}    %view = ttg.memdesc_subslice %room[8, 0] : {ROOM} -> {SLICE}"
ARGUMENTS = "%p: !tt.ptr<f32>, %x: f32, %i: i32"


@pytest.mark.parametrize("capabilities", [PLAIN, EXPLICIT])
def test_an_index_moves_by_whole_buffers(capabilities, filecheck):
    """256 elements of 16 × 16 from one to the next; byte 8,192 is vector 512 of four elements."""
    filecheck(
        disassemble(compile_body(through(INDEX, ROOM), ARGUMENTS, 512 + 4096, capabilities)),
        """
CHECK-DAG: %[[SHIFT:[0-9]+]] = OpConstant %{{[0-9]+}} 8{{$}}
CHECK-DAG: %[[FIRST:[0-9]+]] = OpConstant %{{[0-9]+}} 512{{$}}
CHECK-DAG: OpShiftLeftLogical %{{[0-9]+}} %{{[0-9]+}} %[[SHIFT]]
CHECK-DAG: OpIAdd %{{[0-9]+}} %{{[0-9]+}} %[[FIRST]]
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpControlBarrier
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
""",
    )


@pytest.mark.parametrize("capabilities", [PLAIN, LAVAPIPE, EXPLICIT])
def test_a_slice_starts_at_its_origin(capabilities, filecheck):
    """Row 8 of 16 elements each is element 128 of the buffer."""
    filecheck(
        disassemble(compile_body(through(SLICED, SLICE, "8x16"), ARGUMENTS, 512 + 1024, capabilities)),
        """
CHECK-DAG: %[[ORIGIN:[0-9]+]] = OpConstant %{{[0-9]+}} 128{{$}}
CHECK: OpBitwiseXor %{{[0-9]+}} %{{[0-9]+}} %[[ORIGIN]]
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpControlBarrier
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
""",
    )


HALVES = "!ttg.memdesc<32x16xf16, #shared, #smem, mutable>"
REINTERPRETED = f"""    %room = ttg.local_alloc : () -> {ROOM}
    %wide = tt.splat %y : f32 -> tensor<16x16xf32, #rows>
    ttg.local_store %wide, %room : tensor<16x16xf32, #rows> -> {ROOM}
    ttg.barrier local
    %view = ttg.memdesc_reinterpret %room : {ROOM} -> {HALVES}"""


def test_memory_of_two_types_is_aliased_where_the_layout_is_explicit(filecheck):
    body = through(REINTERPRETED, HALVES, "32x16", "f16")
    filecheck(
        disassemble(compile_body(body, "%p: !tt.ptr<f16>, %x: f16, %y: f32", 1024, EXPLICIT)),
        """
CHECK-DAG: OpDecorate %[[FIRST:[0-9]+]] Aliased
CHECK-DAG: %[[FIRST]] = OpVariable %{{[0-9]+}} Workgroup
CHECK: OpVariable %{{[0-9]+}} Workgroup
""",
    )


def test_a_slice_of_each_of_several_buffers_is_refused():
    rows = ROOMS.replace("4x16x16xf32", "4x8x16xf32").replace("mutable>", "mutable, 4x16x16>")
    body = f"""{ALLOCS}    %some = ttg.memdesc_subslice %rooms[0, 8, 0] : {ROOMS} -> {rows}
    %view = ttg.memdesc_index %some[%i] : {rows} -> {SLICE}"""
    with pytest.raises(UnsupportedOperation, match="a slice of each of several buffers; index each of them, and slice"):
        compile_body(through(body, SLICE, "8x16"), ARGUMENTS, 512 + 4096, PLAIN)


def test_elements_that_would_not_be_aligned_are_refused():
    body = """    %room = ttg.local_alloc :
        () -> !ttg.memdesc<2x16x16xi8, #padded, #smem, mutable>
    %one = ttg.memdesc_index %room[%i] :
        !ttg.memdesc<2x16x16xi8, #padded, #smem, mutable> -> !ttg.memdesc<16x16xi8, #padded, #smem, mutable>
    %view = ttg.memdesc_reinterpret %one :
        !ttg.memdesc<16x16xi8, #padded, #smem, mutable> -> !ttg.memdesc<4x16xf32, #shared, #smem, mutable>"""
    body = body.replace("#padded", "#ttg.padded_shared<[16:+1] {order = [1, 0], shape = [16, 16]}>")
    with pytest.raises(UnsupportedOperation, match="4 bytes would start at multiples of 1 byte"):
        compile_body(through(body, "!ttg.memdesc<4x16xf32, #shared, #smem, mutable>", "4x16"), ARGUMENTS, 1024, PLAIN)
