"""float16 on devices that do not compute with it: its bits are held as integers, and computed with in f32."""

from dataclasses import replace

import pytest

from tests.lowering.harness import LAVAPIPE, compile_body, disassemble

WITHOUT = replace(LAVAPIPE, features=LAVAPIPE.features - {"float16"})


def lowered(operation: str, result: str, capabilities=WITHOUT) -> str:
    """The disassembly of a kernel that does ``operation`` to two halves, ``%a`` and ``%b``."""
    body = (
        "    %a = tt.load %p : !tt.ptr<f16>\n    %b = tt.load %q : !tt.ptr<f16>\n"
        f"    %c = {operation}\n    tt.store %r, %c : !tt.ptr<{result}>"
    )
    arguments = f"%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %r: !tt.ptr<{result}>"
    return disassemble(compile_body(body, arguments, 0, capabilities))


@pytest.mark.parametrize(
    ("operation", "result", "instruction"),
    [
        ("arith.addf %a, %b : f16", "f16", "OpFAdd"),
        ("arith.mulf %a, %b : f16", "f16", "OpFMul"),
        ("arith.negf %a : f16", "f16", "OpFNegate"),
        ("arith.maxnumf %a, %b : f16", "f16", "OpExtInst"),
        ("arith.cmpf olt, %a, %b : f16", "i1", "OpFOrdLessThan"),
        ("arith.extf %a : f16 to f32", "f32", "OpConvertUToPtr"),
        ("arith.extf %a : f16 to f64", "f64", "OpFConvert"),
        ("arith.fptosi %a : f16 to i32", "i32", "OpConvertFToS"),
        ("math.sqrt %a : f16", "f16", "OpExtInst"),
        ("math.exp %a : f16", "f16", "OpFMul"),
    ],
)
def test_no_module_asks_for_it(filecheck, operation: str, result: str, instruction: str) -> None:
    text = lowered(operation, result)
    assert "OpCapability Float16" not in text and "OpTypeFloat 16" not in text
    filecheck(text, f"CHECK: OpTypeInt 16 0\nCHECK: OpTypeFloat 32\nCHECK: {instruction}\n")


def test_constants_are_their_bits(filecheck) -> None:
    text = lowered("arith.constant 1.5 : f16", "f16")
    filecheck(text, "CHECK: %[[BITS:[0-9]+]] = OpConstant %{{[0-9]+}} 15872\nCHECK: OpStore %{{[0-9]+}} %[[BITS]]\n")
