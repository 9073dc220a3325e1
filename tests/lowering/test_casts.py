"""Conversions: which instructions, and which conversions are done in software."""

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
