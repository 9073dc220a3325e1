"""Integer and float arithmetic: which instructions, and what keeps them defined."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES

from tests.lowering.harness import compile_body, disassemble


def scalar(operation: str, type_: str, second: str = "%b") -> str:
    """A kernel body that stores ``operation`` of two scalars it loads."""
    return (
        f"    %a = tt.load %p : !tt.ptr<{type_}>\n    %b = tt.load %q : !tt.ptr<{type_}>\n"
        f"    %c = {operation} %a, {second} : {type_}\n    tt.store %p, %c : !tt.ptr<{type_}>"
    )


def arguments(type_: str) -> str:
    return f"%p: !tt.ptr<{type_}>, %q: !tt.ptr<{type_}>"


@pytest.mark.parametrize(
    ("operation", "instruction"),
    [
        ("arith.addi", "OpIAdd"),
        ("arith.subi", "OpISub"),
        ("arith.muli", "OpIMul"),
        ("arith.andi", "OpBitwiseAnd"),
        ("arith.ori", "OpBitwiseOr"),
        ("arith.xori", "OpBitwiseXor"),
        ("arith.divui", "OpUDiv"),
        ("arith.remui", "OpUMod"),
    ],
)
def test_integer_instruction(filecheck, operation, instruction):
    for width in (8, 16, 32, 64):
        filecheck(
            disassemble(compile_body(scalar(operation, f"i{width}"), arguments(f"i{width}"))),
            f"""
CHECK: %[[INT:[0-9]+]] = OpTypeInt {width} 0
CHECK: {instruction} %[[INT]]
""",
        )


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("operation", ["arith.addi", "arith.subi", "arith.muli"])
def test_narrow_results_have_another_addend_each_that_nvidias_driver_does_not_know(operation, width):
    """It finds negations in them, which it computes in 32 bits."""
    body, types = scalar(operation, f"i{width}"), arguments(f"i{width}")
    own = disassemble(compile_body(body, types, capabilities=PROFILES["generic"])).count("OpIAdd %")
    found = disassemble(compile_body(body, types, capabilities=PROFILES["nvidia-hopper"])).count("OpIAdd %")
    assert found - own == (width < 32)


@pytest.mark.parametrize(("profile", "added"), [("nvidia-hopper", 1), ("generic", 0)])
@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    "chosen",
    [
        "arith.maxui %a, %b",
        "arith.minui %a, %b",
        "arith.maxsi %a, %b",
        "arith.select %g, %a, %b",
        "arith.select %l, %a, %b",
    ],
)
def test_what_unsigned_comparisons_of_64_bits_choose_may_be_any_number(chosen, width, profile, added):
    """For a driver that would compute with its low bits alone."""
    body = f"""    %a = tt.load %p : !tt.ptr<i{width}>
    %b = tt.load %q : !tt.ptr<i{width}>
    %g = arith.cmpi ugt, %a, %b : i{width}
    %l = arith.cmpi slt, %a, %b : i{width}
    %m = {chosen} : i{width}
    %c = arith.subi %m, %b : i{width}
    tt.store %p, %c : !tt.ptr<i{width}>"""
    text = disassemble(compile_body(body, arguments(f"i{width}"), capabilities=PROFILES[profile]))
    unsigned = "maxsi" not in chosen and "%l" not in chosen
    assert text.count("OpIAdd %") == (added if unsigned and width == 64 else 0)


@pytest.mark.parametrize(
    ("condition", "added"),
    [
        ("arith.andi %g, %l", 1),
        ("arith.ori %l, %g", 1),
        ("arith.xori %g, %true", 1),
        ("arith.xori %l, %true", 0),
        ("arith.andi %l, %s", 0),
    ],
)
def test_a_comparison_of_64_bits_counts_within_a_condition(condition, added):
    body = f"""    %true = arith.constant true
    %a = tt.load %p : !tt.ptr<i64>
    %b = tt.load %q : !tt.ptr<i64>
    %g = arith.cmpi uge, %a, %b : i64
    %l = arith.cmpi slt, %a, %b : i64
    %s = arith.cmpi eq, %a, %b : i64
    %c = {condition} : i1
    %m = arith.select %c, %a, %b : i64
    tt.store %p, %m : !tt.ptr<i64>"""
    text = disassemble(compile_body(body, arguments("i64"), capabilities=PROFILES["nvidia-hopper"]))
    assert text.count("OpIAdd %") == added


@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
def test_nvidias_driver_does_not_take_unsigned_numbers_that_become_floats_for_small_ones(type_):
    """Their highest bit is combined with one that it does not know; a bf16 is made of other bits, too."""
    body = """    %a = tt.load %p : !tt.ptr<i8>
    %x = arith.extsi %a : i8 to i32
    %y = arith.uitofp %x : i32 to {0}
    %o = tt.bitcast %q : !tt.ptr<i8> -> !tt.ptr<{0}>
    tt.store %o, %y : !tt.ptr<{0}>"""
    hopper = PROFILES["nvidia-hopper"]
    for narrow, count in (("i8", 1), ("i16", 1)):
        text = disassemble(
            compile_body(body.format(type_).replace("i8", narrow), arguments(narrow), capabilities=hopper)
        )
        assert text.count("OpBitwiseXor") == count
    plain = replace(hopper, driver="generic")
    assert "OpBitwiseXor" not in disassemble(compile_body(body.format(type_), arguments("i8"), capabilities=plain))
