"""Dots of a device of tiles: calls of functions that it has, on arrays in the order of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from triton.backends.spirv.abi.tile_products import TileProduct
from triton.backends.spirv.capabilities import PROFILES

from tests.lowering.harness import compile_body, disassemble

FileCheck = Callable[[str, str], None]
CPU = PROFILES["cpu-x86-64-v4"]
TILE = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>"
TURNED = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 1], warpsPerCTA = [1, 1], order = [0, 1]}>"
CUBE = (
    "#ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 2, 8], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>"
)
A, B = (f"#ttg.dot_op<{{opIdx = {number}, parent = {TILE}}}>" for number in (0, 1))


def dot(m: int, n: int, k: int, element: str = "f32", result: str = "f32", c: str = "%c", right: str = TILE) -> str:
    """A dot of operands that are arguments, and the store of its result's first element."""
    zero = "0" if result == "i32" else "0.0"
    return f"""
    %c = arith.constant dense<{zero}> : tensor<{m}x{n}x{result}, {TILE}>
    %ones = arith.constant dense<{"1" if result == "i32" else "1.0"}> : tensor<{m}x{n}x{result}, {TILE}>
    %ax = tt.splat %a : {element} -> tensor<{m}x{k}x{element}, {TILE}>
    %bx = tt.splat %b : {element} -> tensor<{k}x{n}x{element}, {right}>
    %al = ttg.convert_layout %ax : tensor<{m}x{k}x{element}, {TILE}> -> tensor<{m}x{k}x{element}, {A}>
    %bl = ttg.convert_layout %bx : tensor<{k}x{n}x{element}, {right}> -> tensor<{k}x{n}x{element}, {B}>
    %d = tt.dot %al, %bl, {c} : tensor<{m}x{k}x{element}, {A}> * tensor<{k}x{n}x{element}, {B}>
      -> tensor<{m}x{n}x{result}, {TILE}>
    %ps = tt.splat %p : !tt.ptr<{result}> -> tensor<{m}x{n}x!tt.ptr<{result}>, {TILE}>
    tt.store %ps, %d : tensor<{m}x{n}x!tt.ptr<{result}>, {TILE}>
"""


def compiled(body: str, element: str = "f32", result: str = "f32") -> str:
    arguments = f"%p: !tt.ptr<{result}>, %a: {element}, %b: {element}"
    return disassemble(compile_body(body, arguments, capabilities=CPU, warps=1))


def test_a_product_is_a_call_of_an_imported_function(filecheck: FileCheck) -> None:
    """Rows of A are shorter than a vector, whose other lanes hold copies."""
    filecheck(
        compiled(dot(32, 16, 8)),
        """
        CHECK: OpCapability Linkage
        CHECK: [[F:%[0-9]+]] LinkageAttributes "tile_product_set_f32_1x32x16x8_c0_16_1_a0_16_1_b0_16_1" Import
        CHECK: [[F]] = OpFunction %{{[0-9]+}} None
        CHECK-NEXT: OpFunctionParameter
        CHECK-NEXT: OpFunctionParameter
        CHECK-NEXT: OpFunctionParameter
        CHECK-NEXT: OpFunctionEnd
        CHECK: [[X:%[0-9]+]] = OpVariable %{{[0-9]+}} Function
        CHECK: OpFunctionCall %{{[0-9]+}} [[F]]
        CHECK-NOT: OpControlBarrier
        CHECK-NOT: Workgroup
        """,
    )


@pytest.mark.parametrize(
    ("element", "result", "added"), [("f64", "f64", "f64"), ("f16", "f32", "f32"), ("bf16", "f32", "f32"),
                                     ("f8E4M3FN", "f32", "f32"), ("f16", "f16", "f32")]
)  # fmt: skip
def test_narrow_operands_are_widened(element: str, result: str, added: str, filecheck: FileCheck) -> None:
    given = "i8" if element == "f8E4M3FN" else element
    body = dot(16, 16, 16, element, result, "%ones")
    if given != element:
        body = body.replace("tt.splat %a : f8E4M3FN", "tt.splat %av : f8E4M3FN")
        body = body.replace("tt.splat %b : f8E4M3FN", "tt.splat %bv : f8E4M3FN")
        body = "\n".join(f"    %{one}v = tt.bitcast %{one} : i8 -> f8E4M3FN" for one in "ab") + body
    name = TileProduct(added, 1, 16, 16, 16, True, (0, 16, 1), (0, 16, 1), (0, 16, 1)).name
    filecheck(compiled(body, given, result), f'CHECK: LinkageAttributes "{name}" Import')


def test_bytes_stay_bytes(filecheck: FileCheck) -> None:
    name = TileProduct("i32", 1, 16, 16, 16, True, (0, 16, 1), (0, 16, 1), (0, 16, 1), factor="i8").name
    filecheck(compiled(dot(16, 16, 16, "i8", "i32", "%ones"), "i8", "i32"), f'CHECK: LinkageAttributes "{name}" Import')


def test_an_operand_of_columns_is_not_moved(filecheck: FileCheck) -> None:
    filecheck(
        compiled(dot(16, 32, 64, right=TURNED)),
        'CHECK: LinkageAttributes "tile_product_set_f32_1x16x32x64_c0_32_1_a0_64_1_b0_1_64" Import',
    )


def test_batches_are_of_one_product(filecheck: FileCheck) -> None:
    body = f"""
    %c = arith.constant dense<0.0> : tensor<4x16x16xf32, {CUBE}>
    %x = tt.splat %a : f32 -> tensor<4x16x16xf32, {CUBE}>
    %l = ttg.convert_layout %x : tensor<4x16x16xf32, {CUBE}> -> tensor<4x16x16xf32, {A.replace(TILE, CUBE)}>
    %r = ttg.convert_layout %x : tensor<4x16x16xf32, {CUBE}> -> tensor<4x16x16xf32, {B.replace(TILE, CUBE)}>
    %d = tt.dot %l, %r, %c : tensor<4x16x16xf32, {A.replace(TILE, CUBE)}> *
      tensor<4x16x16xf32, {B.replace(TILE, CUBE)}> -> tensor<4x16x16xf32, {CUBE}>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<4x16x16x!tt.ptr<f32>, {CUBE}>
    tt.store %ps, %d : tensor<4x16x16x!tt.ptr<f32>, {CUBE}>
    """
    filecheck(compiled(body), 'CHECK: "tile_product_set_f32_4x16x16x16_c256_16_1_a256_16_1_b256_16_1" Import')


def test_rows_of_the_next_round_are_told(filecheck: FileCheck) -> None:
    """Of A, which moves by 16 elements a round and is of halves; B stays where it is."""
    rows, columns = (f"#ttg.slice<{{dim = {dim}, parent = {TILE}}}>" for dim in (1, 0))
    body = f"""
    %i = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32, {rows}>
    %j = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32, {columns}>
    %ie = tt.expand_dims %i {{axis = 1 : i32}} : tensor<32xi32, {rows}> -> tensor<32x1xi32, {TILE}>
    %je = tt.expand_dims %j {{axis = 0 : i32}} : tensor<16xi32, {columns}> -> tensor<1x16xi32, {TILE}>
    %width = arith.constant dense<256> : tensor<32x1xi32, {TILE}>
    %iw = arith.muli %ie, %width : tensor<32x1xi32, {TILE}>
    %ib = tt.broadcast %iw : tensor<32x1xi32, {TILE}> -> tensor<32x16xi32, {TILE}>
    %jb = tt.broadcast %je : tensor<1x16xi32, {TILE}> -> tensor<32x16xi32, {TILE}>
    %at = arith.addi %ib, %jb : tensor<32x16xi32, {TILE}>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>, {TILE}>
    %first = tt.addptr %qs, %at : tensor<32x16x!tt.ptr<f16>, {TILE}>, tensor<32x16xi32, {TILE}>
    %step = arith.constant dense<16> : tensor<32x16xi32, {TILE}>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c = arith.constant dense<0.0> : tensor<32x16xf32, {TILE}>
    %ones = arith.constant dense<1.0> : tensor<16x16xf16, {TILE}>
    %bl = ttg.convert_layout %ones : tensor<16x16xf16, {TILE}> -> tensor<16x16xf16, {B}>
    %r:2 = scf.for %k = %zero to %n step %one iter_args(%t = %c, %m = %first)
      -> (tensor<32x16xf32, {TILE}>, tensor<32x16x!tt.ptr<f16>, {TILE}>) : i32 {{
      %x = tt.load %m : tensor<32x16x!tt.ptr<f16>, {TILE}>
      %al = ttg.convert_layout %x : tensor<32x16xf16, {TILE}> -> tensor<32x16xf16, {A}>
      %d = tt.dot %al, %bl, %t : tensor<32x16xf16, {A}> * tensor<16x16xf16, {B}> -> tensor<32x16xf32, {TILE}>
      %next = tt.addptr %m, %step : tensor<32x16x!tt.ptr<f16>, {TILE}>, tensor<32x16xi32, {TILE}>
      scf.yield %d, %next : tensor<32x16xf32, {TILE}>, tensor<32x16x!tt.ptr<f16>, {TILE}>
    }}
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x16x!tt.ptr<f32>, {TILE}>
    tt.store %ps, %r#0 : tensor<32x16x!tt.ptr<f32>, {TILE}>
    """
    arguments = "%p: !tt.ptr<f32>, %q: !tt.ptr<f16>, %n: i32"
    filecheck(
        disassemble(compile_body(body, arguments, capabilities=CPU, warps=1)),
        """
        CHECK: LinkageAttributes "tile_product_add_f32_1x32x16x16_c0_16_1_a0_16_1_b0_16_1_next32x32" Import
        CHECK: OpFunctionCall %{{[0-9]+}} %{{[0-9]+}} %{{[0-9]+}} %{{[0-9]+}} %{{[0-9]+}} %{{[0-9]+}} %{{[0-9]+}}
        """,
    )


def test_a_result_of_less_than_a_vector_is_multiplied_and_added(filecheck: FileCheck) -> None:
    filecheck(compiled(dot(2, 4, 16)), "CHECK-NOT: OpFunctionCall\nCHECK: Fma")


def test_a_device_without_such_functions_multiplies_and_adds(filecheck: FileCheck) -> None:
    body = dot(16, 16, 16)
    arguments = "%p: !tt.ptr<f32>, %a: f32, %b: f32"
    spirv = compile_body(body, arguments, capabilities=replace(CPU, tile_products=frozenset()), warps=1)
    filecheck(disassemble(spirv), "CHECK-NOT: OpFunctionCall\nCHECK: Fma")
