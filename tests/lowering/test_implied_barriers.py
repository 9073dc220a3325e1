"""Upstream's membar takes an operation with scratch memory for a barrier between accesses to other buffers: one is
emitted even where the operation needs no scratch memory."""

from __future__ import annotations

import pytest
from triton._C.libtriton import ir
from triton.backends.spirv import passes
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.entry_point import lower_module
from triton.backends.spirv.planning.barriers import plan_barriers
from triton.backends.spirv.planning.footprints import Footprints
from triton.backends.spirv.planning.options import Options
from triton.backends.spirv.planning.plans import Plan
from triton.backends.spirv.planning.shared_memory import SharedAccess
from triton.backends.spirv.ttgir.ir import Operation
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import IntegerType

from tests.lowering.harness import LAYOUTS, disassemble

ROWS_0 = "#ttg.slice<{dim = 0, parent = #rows}>"
ROWS_1 = "#ttg.slice<{dim = 1, parent = #rows}>"

#: %m is written by some invocations and read by others, with a conversion between.
STORE_CONVERT_LOAD = """
    %v = tt.splat %x : f32 -> tensor<16x16xf32, #rows>
    %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, {source}>
    %m = ttg.local_alloc %v : (tensor<16x16xf32, #rows>) -> !ttg.memdesc<16x16xf32, #shared, #smem>
    %d = ttg.convert_layout %r : tensor<16xi32, {source}> -> tensor<16xi32, {target}>
    %l = ttg.local_load %m : !ttg.memdesc<16x16xf32, #shared, #smem> -> tensor<16x16xf32, #columns>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #columns>
    tt.store %s, %l : tensor<16x16x!tt.ptr<f32>, #columns>
    %t = tt.splat %q : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, {target}>
    tt.store %t, %d : tensor<16x!tt.ptr<i32>, {target}>"""

CONVERT_ONLY = """
    %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, {source}>
    %d = ttg.convert_layout %r : tensor<16xi32, {source}> -> tensor<16xi32, {target}>
    %t = tt.splat %q : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, {target}>
    tt.store %t, %d : tensor<16x!tt.ptr<i32>, {target}>"""


def compile_with_membar(body: str, folder) -> tuple[str, str]:
    """(TTGIR after upstream's allocation and membar, disassembly)."""
    path = folder / "k.ttgir"
    path.write_text(
        f'{LAYOUTS}\nmodule attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, '
        f'ttg.target = "spirv:vulkan1.3", "ttg.threads-per-warp" = 8 : i32}} {{\n'
        f"  tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %x: f32) {{\n{body}\n    tt.return\n"
        "  }\n}\n"
    )
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    passes.run(module, passes.ALLOCATE, "allocate", passes.operation_names(module))
    passes.insert_barriers(module)
    text = str(module)
    return text, disassemble(lower_module(parse_module(text), PROFILES["lavapipe"], Options()).spirv)


@pytest.mark.parametrize(("source", "target"), [(ROWS_0, "#one"), (ROWS_0, ROWS_1), (ROWS_1, "#one")])
def test_one_barrier_between_the_store_and_the_load(source, target, tmp_path, filecheck):
    ttgir, assembly = compile_with_membar(STORE_CONVERT_LOAD.format(source=source, target=target), tmp_path)
    assert "ttg.barrier" not in ttgir and "allocation.size" in ttgir, "membar counts on the conversion"
    filecheck(
        assembly,
        """
CHECK: %[[TYPE:[0-9]+]] = OpTypePointer Workgroup
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpControlBarrier
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} NonPrivatePointer
CHECK: OpReturn
""",
    )
    assert assembly.count("OpControlBarrier") == 1


def test_no_barrier_without_shared_memory(tmp_path):
    ttgir, assembly = compile_with_membar(CONVERT_ONLY.format(source=ROWS_0, target="#one"), tmp_path)
    assert "allocation.size" in ttgir
    assert "OpControlBarrier" not in assembly and "Workgroup " not in assembly


def test_barrier_of_membar_before_the_operation_is_enough(tmp_path):
    body = STORE_CONVERT_LOAD.replace("    %d =", "    ttg.barrier local\n    %d =")
    assembly = compile_with_membar(body.format(source=ROWS_0, target="#one"), tmp_path)[1]
    assert assembly.count("OpControlBarrier") == 1


LOOP = """
    %r = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, {source}>
    %c = arith.constant 4 : i32
    scf.for %i = %c to %c step %c : i32 {{
      %d = ttg.convert_layout %r {{allocation.offset = 0 : i32, allocation.size = 64 : i32}} : tensor<16xi32, {source}> -> tensor<16xi32, {target}>
    }}"""  # noqa: E501


def test_operation_of_a_loop_is_taken_to_follow_every_access(tmp_path):
    text = (
        f"{LAYOUTS}\nmodule {{\n  tt.func public @k() {{\n{LOOP.format(source=ROWS_0, target='#one')}\n"
        "    tt.return\n  }\n}\n"
    )
    kernel = parse_module(text).functions["k"]
    assert kernel.body is not None
    operations = [inner for operation in kernel.body.entry.operations for inner in operation.walk()]
    loop = next(operation for operation in operations if operation.name == "scf.for")
    conversion = loop.regions[0].entry.operations[0]

    def implied(plans: dict[Operation, Plan]) -> bool:
        return conversion in plan_barriers(kernel, operations, plans, Footprints(plans, frozenset(), {})).implied

    assert implied({})
    loop.name = "scf.if"
    assert not implied({})
    assert implied({operations[0]: Plan((SharedAccess(IntegerType(32), 0, 64, 1),))})
