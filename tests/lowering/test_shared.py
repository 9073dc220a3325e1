"""Shared memory: one block where the layout is explicit, an array an element type elsewhere."""

from __future__ import annotations

from dataclasses import replace

from tests.lowering.harness import LAVAPIPE, compile_body, disassemble

EXPLICIT = replace(LAVAPIPE, features=LAVAPIPE.features | {"explicit_workgroup_layout"})


def through_shared(element: str, capabilities=LAVAPIPE) -> str:
    """A kernel that writes a 16 × 16 tensor to shared memory and reads it in another layout."""
    tensor = f"tensor<16x16x{element}, "
    memory = f"!ttg.memdesc<16x16x{element}, #shared, #smem, mutable>"
    body = f"""    %v = tt.load %p : !tt.ptr<{element}>
    %t = tt.splat %v : {element} -> {tensor}#rows>
    %m = ttg.local_alloc : () -> {memory}
    ttg.local_store %t, %m : {tensor}#rows> -> {memory}
    ttg.barrier local
    %l = ttg.local_load %m : {memory} -> {tensor}#columns>
    %ptr = tt.splat %p : !tt.ptr<{element}> -> tensor<16x16x!tt.ptr<{element}>, #columns>
    tt.store %ptr, %l : tensor<16x16x!tt.ptr<{element}>, #columns>"""
    return disassemble(compile_body(body, f"%p: !tt.ptr<{element}>", 0, capabilities))


def test_explicit_layout_is_one_aliased_block(filecheck):
    filecheck(
        through_shared("f32", EXPLICIT),
        """
CHECK: OpCapability WorkgroupMemoryExplicitLayoutKHR
CHECK: OpExtension "SPV_KHR_workgroup_memory_explicit_layout"
CHECK-DAG: OpDecorate %[[SHARED:[0-9]+]] Aliased
CHECK-DAG: OpDecorate %{{[0-9]+}} ArrayStride
CHECK: %[[SHARED]] = OpVariable %{{[0-9]+}} Workgroup
""",
    )
