"""Inline PTX in TTGIR: what is emitted for it, and nothing more."""

from __future__ import annotations

from tests.lowering.harness import compile_body, disassemble


def assembly(text: str, constraints: str, type_: str, pack: int = 1, layout: str = "one") -> str:
    """A kernel that stores what ``text`` gives for a tensor of 128 elements that it loads."""
    tensor, pointers = f"tensor<128x{type_}, #{layout}>", f"tensor<128x!tt.ptr<{type_}>, #{layout}>"
    return f"""
    %at = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32, #{layout}>
    %base = tt.splat %p : !tt.ptr<{type_}> -> {pointers}
    %q = tt.addptr %base, %at : {pointers}, tensor<128xi32, #{layout}>
    %x = tt.load %q : {pointers}
    %y = tt.elementwise_inline_asm "{text}" {{constraints = "{constraints}", packed_element = {pack} : i32,
      pure = true}} %x : {tensor} -> {tensor}
    tt.store %q, %y : {pointers}"""


def test_a_piece_of_one_instruction_is_one_instruction(filecheck):
    text = assembly("shl.b32 $0, $1, 3;", "=r,r", "i32")
    filecheck(
        disassemble(compile_body(text, "%p: !tt.ptr<i32>")),
        """
CHECK: %[[THREE:[0-9]+]] = OpConstant %{{[0-9]+}} 3
CHECK: %[[X:[0-9]+]] = OpLoad {{.*}}Aligned
CHECK: %[[Y:[0-9]+]] = OpShiftLeftLogical %{{[0-9]+}} %[[X]] %[[THREE]]
CHECK: OpStore %{{[0-9]+}} %[[Y]]
""",
    )


def test_products_and_sums_are_not_contracted(filecheck):
    text = assembly("{ mul.f32 $0, $1, $1; add.f32 $0, $0, $1; }", "=f,f", "f32")
    filecheck(
        disassemble(compile_body(text, "%p: !tt.ptr<f32>")),
        """
CHECK-DAG: OpDecorate %[[A:[0-9]+]] NoContraction
CHECK-DAG: OpDecorate %[[B:[0-9]+]] NoContraction
CHECK: %[[A]] = OpFMul
CHECK: %[[B]] = OpFAdd {{.*}} %[[A]]
CHECK-NOT: Fma
""",
    )


def test_four_bytes_are_one_register(filecheck):
    text = assembly("and.b32 $0, $1, 0x0F0F0F0F;", "=r,r", "i8", pack=4, layout="vec4")
    filecheck(
        disassemble(compile_body(text, "%p: !tt.ptr<i8>")),
        """
CHECK: OpConstant %{{[0-9]+}} 252645135
CHECK: OpBitwiseAnd
CHECK-NOT: OpBitwiseAnd
CHECK: OpStore
""",
    )


def test_equal_packs_are_computed_once():
    """Registers of one element for every lane of a subgroup that holds it twice."""
    text = assembly("popc.b32 $0, $1;", "=r,r", "i32", layout="vec8")  # 128 elements, 32 invocations of 8 registers
    assert disassemble(compile_body(text, "%p: !tt.ptr<i32>")).count("OpBitCount") <= 8
