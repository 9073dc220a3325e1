"""Conversions: which instructions, and which conversions are done in software."""

from __future__ import annotations

import pytest

from tests.lowering.harness import compile_body, disassemble


def cast(operation: str, source: str, target: str) -> str:
    """The disassembly of a kernel that loads, casts and stores one scalar."""
    body = (
        f"    %a = tt.load %p : !tt.ptr<{source}>\n    %c = {operation} %a : {source} to {target}\n"
        f"    tt.store %q, %c : !tt.ptr<{target}>"
    )
    return disassemble(compile_body(body, f"%p: !tt.ptr<{source}>, %q: !tt.ptr<{target}>"))


@pytest.mark.parametrize(
    ("operation", "source", "target", "instruction"),
    [
        ("arith.extsi", "i8", "i64", "OpSConvert"),
        ("arith.extui", "i16", "i32", "OpUConvert"),
        ("arith.trunci", "i64", "i8", "OpUConvert"),
        ("arith.sitofp", "i32", "f32", "OpConvertSToF"),
        ("arith.uitofp", "i64", "f64", "OpConvertUToF"),
        ("arith.fptosi", "f32", "i32", "OpConvertFToS"),
        ("arith.fptoui", "f64", "i64", "OpConvertFToU"),
        ("arith.extf", "f16", "f32", "OpFConvert"),
        ("arith.truncf", "f64", "f32", "OpFConvert"),
    ],
)
def test_one_instruction(filecheck, operation, source, target, instruction):
    filecheck(cast(operation, source, target), f"CHECK: {instruction} \nCHECK-NOT: Convert{{{{ }}}}\nCHECK: OpReturn\n")


@pytest.mark.parametrize(("source", "target"), [("f64", "f32"), ("f32", "f16")])
def test_narrower_floats_are_rounded_whatever_follows(filecheck, source, target):
    """Mesa 26.2's CPU driver leaves out a conversion and the one back, unless the first is NoContraction. The one back
    keeps every value: it may be part of what follows."""
    decorated = "CHECK: OpDecorate %[[NARROW:[0-9]+]] NoContraction\n"
    filecheck(cast("arith.truncf", source, target), f"{decorated}CHECK: %[[NARROW]] = OpFConvert\n")
    filecheck(cast("arith.extf", target, source), "CHECK-NOT: NoContraction\nCHECK: OpFConvert\n")


def test_single_to_bfloat16_rounds_to_nearest_even(filecheck):
    filecheck(
        cast("arith.truncf", "f32", "bf16"),
        """
CHECK-DAG: %[[HALF:[0-9]+]] = OpConstant %{{[0-9]+}} 32767
CHECK-DAG: %[[SIXTEEN:[0-9]+]] = OpConstant %{{[0-9]+}} 16
CHECK: OpShiftRightLogical %{{[0-9]+}} %{{[0-9]+}} %[[SIXTEEN]]
CHECK-COUNT-2: OpIAdd
CHECK-NOT: OpIAdd
CHECK: OpIsNan
CHECK: OpUConvert
""",
    )


def test_bfloat16_to_single_is_a_shift(filecheck):
    filecheck(
        cast("arith.extf", "bf16", "f32"),
        "CHECK: OpUConvert\nCHECK: OpShiftLeftLogical\nCHECK: OpBitcast\nCHECK-NOT: OpFConvert\n",
    )


def test_double_to_half_is_rounded_once(filecheck):
    filecheck(cast("arith.truncf", "f64", "f16"), "CHECK: OpFOrdNotEqual\nCHECK: OpSelect\nCHECK: OpFConvert\n")


def test_wide_integer_to_bfloat16_is_rounded_once(filecheck):
    filecheck(cast("arith.sitofp", "i64", "bf16"), "CHECK: OpUGreaterThanEqual\nCHECK: OpConvertUToF\nCHECK: OpFMul\n")
    filecheck(cast("arith.sitofp", "i16", "bf16"), "CHECK-NOT: OpFMul\nCHECK: OpConvertSToF\n")


def test_boolean_is_selected_not_converted(filecheck):
    body = (
        "    %a = tt.load %p : !tt.ptr<i32>\n    %z = arith.constant 0 : i32\n"
        "    %b = arith.cmpi eq, %a, %z : i32\n"
        "    %c = arith.extsi %b : i1 to i32\n    tt.store %p, %c : !tt.ptr<i32>"
    )
    filecheck(
        disassemble(compile_body(body, "%p: !tt.ptr<i32>")),
        """
CHECK: %[[ONES:[0-9]+]] = OpConstant %{{[0-9]+}} 4294967295
CHECK: OpSelect %{{[0-9]+}} %{{[0-9]+}} %[[ONES]]
""",
    )
