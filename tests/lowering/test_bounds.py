"""Accesses that are checked: what is emitted for them, and that nothing is without the option."""

from __future__ import annotations

from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.entry_point import LoweredKernel
from triton.backends.spirv.options import SPIRVOptions
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module

from tests.lowering.harness import LAYOUTS, disassemble, lower_module

HINT = "{tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}"
COPY = """
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #vec4>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %x = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    %v = tt.load %x : tensor<128x!tt.ptr<f32>, #vec4>
    %t = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %y = tt.addptr %t, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    tt.store %y, %v : tensor<128x!tt.ptr<f32>, #vec4>"""
POINTERS = f"%p: !tt.ptr<f32> {HINT}, %n: i32, %q: !tt.ptr<f32> {HINT}"


def compiled(body: str, arguments: str, *checks: str) -> LoweredKernel:
    """The kernel of that body for Mesa's CPU driver."""
    text = (
        f'{LAYOUTS}\nmodule attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, '
        'ttg.shared = 0 : i32, ttg.target = "spirv:vulkan1.3", "ttg.threads-per-warp" = 8 : i32} {\n'
        f"  tt.func public @k({arguments}) attributes {{noinline = false}} {{\n{body}\n    tt.return\n  }}\n}}\n"
    )
    return lower_module(
        parse_module(text), PROFILES["lavapipe"], Options(SPIRVOptions(**{f"check_{name}": True for name in checks}))
    )


def test_elements_are_compared_and_diverted(filecheck):
    kernel = compiled(COPY, POINTERS, "bounds")
    filecheck(
        disassemble(kernel.spirv),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK-DAG: %[[ZERO:[0-9]+]] = OpConstant %[[U64]] 32
CHECK-DAG: %[[SPARE:[0-9]+]] = OpConstant %[[U64]] 40
Rows are read once.
CHECK-COUNT-4: OpLoad %[[U64]] %{{[0-9]+}} Aligned 8
CHECK: %[[FIRST:[0-9]+]] = OpULessThan
CHECK-COUNT-3: OpULessThan
CHECK: OpBranchConditional
CHECK: OpAtomicIAdd %[[U32]]
CHECK: OpBranchConditional
CHECK: %[[ELSEWHERE:[0-9]+]] = OpIAdd %[[U64]] %{{[0-9]+}} %[[ZERO]]
CHECK: %[[PLACE:[0-9]+]] = OpSelect %[[U64]] %[[FIRST]] %{{[0-9]+}} %[[ELSEWHERE]]
CHECK: %[[POINTER:[0-9]+]] = OpConvertUToPtr %{{[0-9]+}} %[[PLACE]]
CHECK: OpLoad %{{[0-9]+}} %[[POINTER]] Aligned 4
CHECK-COUNT-4: OpULessThan
CHECK: OpAtomicIAdd %[[U32]]
CHECK: OpIAdd %[[U64]] %{{[0-9]+}} %[[SPARE]]
CHECK-COUNT-4: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 4
""",
    )


def test_first_access_leaves_one_more_than_its_message(filecheck):
    kernel = compiled(COPY, POINTERS, "bounds")
    assert [place["kind"] for place in kernel.reports] == ["bounds", "access", "access"]
    filecheck(
        disassemble(kernel.spirv),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[LOAD:[0-9]+]] = OpConstant %[[U32]] 2
CHECK-DAG: %[[STORE:[0-9]+]] = OpConstant %[[U32]] 3
CHECK: OpAtomicIAdd %[[U32]]
CHECK: OpStore %{{[0-9]+}} %[[LOAD]] Aligned|NonPrivatePointer 4
CHECK: OpAtomicIAdd %[[U32]]
CHECK: OpStore %{{[0-9]+}} %[[STORE]] Aligned|NonPrivatePointer 4
""",
    )


def test_report_buffer_has_a_row_for_each_argument_that_is_accessed():
    kernel = compiled(COPY, POINTERS, "bounds")
    table, *places = kernel.reports
    assert table == {"kind": "bounds", "file": "", "line": 0, "arguments": [0, 2], "unchecked": 0}
    assert [(place["kind"], place["access"], place["bytes"], place["rows"]) for place in places] == [
        ("access", "load", 4, [0]),
        ("access", "store", 4, [1]),
    ]
    assert kernel.argument_bytes == compiled(COPY, POINTERS).argument_bytes + 8
    body = (
        "    %u = tt.int_to_ptr %j : i64 -> !tt.ptr<f32>\n    %v = tt.load %u : !tt.ptr<f32>\n"
        "    tt.store %p, %v : !tt.ptr<f32>"
    )
    assert compiled(body, "%p: !tt.ptr<f32>, %j: i64", "bounds").reports[0]["unchecked"] == 1


def test_nothing_is_emitted_without_the_option(filecheck):
    kernel = compiled(COPY, POINTERS)
    assert kernel.reports == []
    filecheck(
        disassemble(kernel.spirv),
        """
CHECK-NOT: {{OpULessThan|OpAtomic|OpSelect}}
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: {{OpULessThan|OpAtomic|OpSelect}}
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: {{OpULessThan|OpAtomic|OpSelect}}
CHECK: OpReturn
""",
    )


def test_atomic_operation_is_masked(filecheck):
    body = """
    %ptr = tt.addptr %p, %i : !tt.ptr<i32>, i32
    %true = arith.constant true
    %old = tt.atomic_rmw add, relaxed, gpu, %ptr, %i, %true : (!tt.ptr<i32>, i32, i1) -> i32"""
    filecheck(
        disassemble(compiled(body, "%p: !tt.ptr<i32>, %i: i32", "bounds").spirv),
        """
CHECK: %[[INSIDE:[0-9]+]] = OpULessThan
CHECK: OpAtomicIAdd
CHECK: %[[MASK:[0-9]+]] = OpLogicalAnd %{{[0-9]+}} {{.*}}%[[INSIDE]]
CHECK: OpBranchConditional %[[MASK]]
CHECK: OpAtomicIAdd
CHECK: OpReturn
""",
    )


def test_pointers_of_two_arguments_are_inside_of_either(filecheck):
    body = """
    %e = arith.select %c, %p, %q : !tt.ptr<f32>
    %v = tt.load %e : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>"""
    kernel = compiled(body, "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %c: i1", "bounds")
    assert [place["rows"] for place in kernel.reports[1:]] == [[0, 1], [0]]
    filecheck(
        disassemble(kernel.spirv),
        """
CHECK: %[[FIRST:[0-9]+]] = OpULessThan
CHECK: %[[SECOND:[0-9]+]] = OpULessThan
CHECK: OpLogicalOr %{{[0-9]+}} %[[FIRST]] %[[SECOND]]
""",
    )
