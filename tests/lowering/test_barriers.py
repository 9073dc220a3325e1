"""Which barriers stand in the module: none, of a subgroup, or of the workgroup."""

from __future__ import annotations

import pytest

from tests.lowering.harness import compile_body, disassemble

ARGUMENTS = "%p: !tt.ptr<f32>, %x: f32"
MEMDESC = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"

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
