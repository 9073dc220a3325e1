"""Inline PTX in TTGIR: what is emitted for it, and nothing more."""

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


def test_equal_packs_are_computed_once():
    """Registers of one element for every lane of a subgroup that holds it twice."""
    text = assembly("popc.b32 $0, $1;", "=r,r", "i32", layout="vec8")  # 128 elements, 32 invocations of 8 registers
    assert disassemble(compile_body(text, "%p: !tt.ptr<i32>")).count("OpBitCount") <= 8
