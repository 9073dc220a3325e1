"""Dots of a device of tiles: calls of functions that it has, on arrays in the order of rows."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from triton.backends.spirv.abi.tile_products import TileProduct
from triton.backends.spirv.capabilities import PROFILES

from tests.lowering.harness import compile_body, disassemble

FileCheck = Callable[[str, str], None]
CPU = PROFILES["cpu-x86-64-v4"]
TILE = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>"
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


def test_a_device_without_such_functions_multiplies_and_adds(filecheck: FileCheck) -> None:
    body = dot(16, 16, 16)
    arguments = "%p: !tt.ptr<f32>, %a: f32, %b: f32"
    spirv = compile_body(body, arguments, capabilities=replace(CPU, tile_products=frozenset()), warps=1)
    filecheck(disassemble(spirv), "CHECK-NOT: OpFunctionCall\nCHECK: Fma")
