"""Pointers into less than 2 GiB are 32-bit byte offsets until they are accessed."""

from __future__ import annotations

from tests.lowering.harness import compile_body, disassemble

SMALL = "{tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}"
POINTER = f"%p: !tt.ptr<f32> {SMALL}"

CHAIN = """
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #vec4>
    %row = tt.addptr %p, %i : !tt.ptr<f32>, i32
    %s = tt.splat %row : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %t = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    %o = tt.splat %j : INDEX -> tensor<128xINDEX, #vec4>
    %ptr = tt.addptr %t, %o : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xINDEX, #vec4>
    %v = tt.load %ptr : tensor<128x!tt.ptr<f32>, #vec4>
    tt.store %ptr, %v : tensor<128x!tt.ptr<f32>, #vec4>"""

HINT = "{tt.divisibility = 16 : i32}"


def test_offsets_are_summed_in_32_bits_and_added_once(filecheck):
    body = CHAIN.replace("INDEX", "i32")
    filecheck(
        disassemble(compile_body(body, f"{POINTER}, %i: i32 {HINT}, %j: i32 {HINT}")),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK: %[[BASE:[0-9]+]] = OpBitcast %[[U64]]
CHECK-NOT: OpIAdd %[[U64]]
CHECK: OpIAdd %[[U32]]
CHECK-NOT: OpIAdd %[[U64]]
CHECK: %[[WIDE:[0-9]+]] = OpSConvert %[[U64]]
CHECK: %[[ADDRESS:[0-9]+]] = OpIAdd %[[U64]] {{%[0-9]+ %[0-9]+}}
CHECK: OpConvertUToPtr %{{[0-9]+}} %[[ADDRESS]]
CHECK: OpLoad %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK-NOT: OpIAdd
CHECK: OpStore %{{[0-9]+}} %{{[0-9]+}} Aligned 16
CHECK: OpReturn
""",
    )


def test_index_of_64_bits_is_cut_off(filecheck):
    body = CHAIN.replace("INDEX", "i64")
    filecheck(
        disassemble(compile_body(body, f"{POINTER}, %i: i32 {HINT}, %j: i64 {HINT}")),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK: OpSConvert %[[U32]]
CHECK: OpIAdd %[[U32]]
CHECK: OpSConvert %[[U64]]
CHECK-NEXT: OpIAdd %[[U64]]
CHECK-NOT: OpIAdd %[[U64]]
CHECK: OpReturn
""",
    )


def test_without_the_property_addresses_have_64_bits(filecheck):
    body = CHAIN.replace("INDEX", "i32")
    filecheck(
        disassemble(compile_body(body, f"%p: !tt.ptr<f32> {HINT}, %i: i32 {HINT}, %j: i32 {HINT}")),
        """
CHECK: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK-COUNT-3: OpIAdd %[[U64]]
CHECK: OpReturn
""",
    )


def test_loop_carries_offsets(filecheck):
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %step = arith.constant dense<128> : tensor<128xi32, #vec4>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #vec4>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #vec4>
    %t = tt.addptr %s, %r : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
    %end = scf.for %k = %zero to %i step %one iter_args(%a = %t) -> (tensor<128x!tt.ptr<f32>, #vec4>) : i32 {
      %v = tt.load %a : tensor<128x!tt.ptr<f32>, #vec4>
      tt.store %a, %v : tensor<128x!tt.ptr<f32>, #vec4>
      %n = tt.addptr %a, %step : tensor<128x!tt.ptr<f32>, #vec4>, tensor<128xi32, #vec4>
      scf.yield %n : tensor<128x!tt.ptr<f32>, #vec4>
    }"""
    filecheck(
        disassemble(compile_body(body, f"{POINTER}, %i: i32")),
        """
CHECK-DAG: %[[U32:[0-9]+]] = OpTypeInt 32 0
CHECK-DAG: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK-NOT: OpPhi %[[U64]]
CHECK-COUNT-2: OpPhi %[[U32]]
CHECK-NOT: OpPhi %[[U64]]
CHECK: OpSConvert %[[U64]]
CHECK-NEXT: OpIAdd %[[U64]]
CHECK: OpReturn
""",
    )


def test_atomic_operation(filecheck):
    body = """
    %ptr = tt.addptr %p, %i : !tt.ptr<i32>, i32
    %true = arith.constant true
    %old = tt.atomic_rmw add, relaxed, gpu, %ptr, %i, %true : (!tt.ptr<i32>, i32, i1) -> i32"""
    filecheck(
        disassemble(compile_body(body, f"%p: !tt.ptr<i32> {SMALL}, %i: i32")),
        """
CHECK: %[[U64:[0-9]+]] = OpTypeInt 64 0
CHECK: %[[WIDE:[0-9]+]] = OpSConvert %[[U64]]
CHECK: %[[ADDRESS:[0-9]+]] = OpIAdd %[[U64]]
CHECK: %[[POINTER:[0-9]+]] = OpConvertUToPtr %{{[0-9]+}} %[[ADDRESS]]
CHECK: OpAtomicIAdd %{{[0-9]+}} %[[POINTER]]
""",
    )
