"""Accesses to shared memory that are checked for races: what is emitted, and that nothing is without the option."""

from __future__ import annotations

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.entry_point import LoweredKernel, lower_module
from triton.backends.spirv.planning.options import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import disassemble, module_text

ARGUMENTS = "%p: !tt.ptr<f32>, %x: f32"
MEMDESC = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"

#: A tile is stored in a buffer and loaded in a layout in which invocations of other subgroups have its elements.
BODY = f"""
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %m = ttg.local_alloc %v : (tensor<16x16xf32, #rows>) -> {MEMDESC}
    %l = ttg.local_load %m : {MEMDESC} -> tensor<16x16xf32, #columns>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #columns>
    tt.store %s, %l : tensor<16x16x!tt.ptr<f32>, #columns>"""
NO_BUFFER = """
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #rows>
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    tt.store %s, %v : tensor<16x16x!tt.ptr<f32>, #rows>"""


def compiled(body: str, profile: str = "lavapipe", **options: bool) -> LoweredKernel:
    text = module_text(body, ARGUMENTS, 1024)
    capabilities = PROFILES[profile]
    text = text.replace('"ttg.threads-per-warp" = 8', f'"ttg.threads-per-warp" = {capabilities.subgroup_size}')
    return lower_module(parse_module(text), capabilities, Options(**options))


def test_accesses_are_noted_before_the_barrier_and_after_it(filecheck):
    filecheck(
        disassemble(compiled(BODY, check_races=True).spirv),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[ONE:[0-9]+]] = OpConstant %[[U32]] 1{{ *$}}
The checks of the stores are a loop that is not unrolled.
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpLoopMerge %{{[0-9]+}} %{{[0-9]+}} DontUnroll
CHECK: OpAtomicUMax %[[U32]]
CHECK: OpAtomicUMax %[[U32]]
Those of reads are looked at.
CHECK: OpAtomicLoad %[[U32]]
CHECK: OpAtomicLoad %[[U32]]
CHECK: OpControlBarrier
The barrier is counted.
CHECK: %[[NEXT:[0-9]+]] = OpIAdd %[[U32]] %[[ONE]] %{{[0-9]+}}
CHECK-NEXT: OpStore %{{[0-9]+}} %[[NEXT]]
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpAtomicUMax %[[U32]]
CHECK: OpAtomicUMax %[[U32]]
CHECK: OpAtomicLoad %[[U32]]
CHECK: OpAtomicLoad %[[U32]]
CHECK-NOT: OpControlBarrier
At the end the invocation reports.
CHECK: OpAtomicIAdd %[[U32]]
CHECK: OpReturn
""",
    )


@pytest.mark.parametrize("profile", ["lavapipe", "generic", "nvidia-hopper", "amd-rdna3", "intel-xe"])
def test_nothing_is_emitted_without_the_option_or_without_shared_memory(profile):
    plain = [compiled(body, profile) for body in (BODY, NO_BUFFER)]
    checked = [compiled(body, profile, check_races=True) for body in (BODY, NO_BUFFER)]
    assert plain[1].spirv == checked[1].spirv and checked[1].reports == []
    assert plain[0].spirv != checked[0].spirv and plain[0].shared_bytes == checked[0].shared_bytes == 1024
    assert [message["kind"] for message in checked[0].reports if message["kind"] != "loop"] == [
        "races",
        "shared_access",
        "shared_access",
    ]
