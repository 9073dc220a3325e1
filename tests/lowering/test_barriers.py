"""Which barriers stand in the module: none, of a subgroup, or of the workgroup."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAVAPIPE, LAYOUTS, compile_body, disassemble, lower_module

ARGUMENTS = "%p: !tt.ptr<f32>, %x: f32"
PAIRS = "#ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MEMDESC = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"

#: A store and a load of the same buffer, with a barrier between.
BODY = """
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %m = ttg.local_alloc : () -> {memdesc}
    ttg.local_store %v, %m : tensor<16x16xf32, #rows> -> {memdesc}
    {barrier}
    %l = ttg.local_load %m : {memdesc} -> tensor<16x16xf32, {layout}>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, {layout}>
    tt.store %s, %l : tensor<16x16x!tt.ptr<f32>, {layout}>"""


def compiled(layout: str, barrier: str = "", capabilities=LAVAPIPE) -> str:
    body = BODY.format(layout=layout, barrier=barrier, memdesc=MEMDESC)
    return disassemble(compile_body(body, ARGUMENTS, 1024, capabilities))


def one_subgroup(barrier: str) -> str:
    body = BODY.format(layout="#columns", barrier=barrier, memdesc=MEMDESC)
    text = (
        (
            f'{LAYOUTS}\nmodule attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, '
            f'ttg.shared = 1024 : i32, "ttg.threads-per-warp" = 8 : i32}} {{\n  tt.func public @k({ARGUMENTS}) '
            f"{{\n{body}\n    tt.return\n  }}\n}}\n"
        )
        .replace("[4, 1], order", "[1, 1], order")
        .replace("[1, 4], order", "[1, 1], order")
        .replace("warpsPerCTA = [4]", "warpsPerCTA = [1]")
    )
    return disassemble(lower_module(parse_module(text), LAVAPIPE, Options()).spirv)


def test_a_workgroup_of_one_subgroup_waits_as_a_subgroup(filecheck):
    for barrier in ("", "ttg.barrier local"):
        filecheck(
            one_subgroup(barrier),
            """
CHECK-DAG: %[[UINT:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[SUBGROUP:[0-9]+]] = OpConstant %[[UINT]] 3{{$}}
CHECK: OpControlBarrier %[[SUBGROUP]] %[[SUBGROUP]]
CHECK-NOT: OpControlBarrier
""",
        )


def test_device_memory_is_ordered_for_the_workgroup_all_the_same(filecheck):
    filecheck(
        one_subgroup("ttg.barrier all"),
        """
CHECK-DAG: %[[UINT:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[WORKGROUP:[0-9]+]] = OpConstant %[[UINT]] 2{{$}}
CHECK: OpControlBarrier %[[WORKGROUP]] %[[WORKGROUP]]
CHECK-NOT: OpControlBarrier
""",
    )


#: A conversion that needs no memory, between accesses to a buffer.
SILENT = """
    %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 0, parent = #rows}}>>
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %m = ttg.local_alloc : () -> {memdesc}
    {before}
    %d = ttg.convert_layout %r : tensor<16xi32, #ttg.slice<{{dim = 0, parent = #rows}}>> -> tensor<16xi32, #one>
    %l = ttg.local_load %m : {memdesc} -> tensor<16x16xf32, #columns>
    {after}
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #columns>
    tt.store %s, %l : tensor<16x16x!tt.ptr<f32>, #columns>"""
STORE = f"ttg.local_store %v, %m : tensor<16x16xf32, #rows> -> {MEMDESC}"


@pytest.mark.parametrize(("before", "after", "count"), [("", "", 0), (STORE, "", 1), ("", STORE, 1), (STORE, STORE, 2)])
def test_an_operation_without_memory_stands_for_no_barrier(before, after, count):
    body = SILENT.format(memdesc=MEMDESC, before=before, after=after)
    assert disassemble(compile_body(body, ARGUMENTS)).count("OpControlBarrier") == count


def test_an_operation_that_waits_does():
    """Its own barrier parts the store from the load, and one behind it what it reads from the next store."""
    tensor = "tensor<16x16xf32, {}>"
    convert = f"%d = ttg.convert_layout %v : {tensor.format('#rows')} -> {tensor.format('#columns')}"
    body = f"""
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %m = ttg.local_alloc : () -> {MEMDESC}
    {STORE}
    {convert}
    %l = ttg.local_load %m : {MEMDESC} -> tensor<16x16xf32, #columns>
    %both = arith.addf %d, %l : tensor<16x16xf32, #columns>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #columns>
    tt.store %s, %both : tensor<16x16x!tt.ptr<f32>, #columns>"""
    assert disassemble(compile_body(body, ARGUMENTS)).count("OpControlBarrier") == 1
