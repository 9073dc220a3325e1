"""Integer and float arithmetic: which instructions, and what keeps them defined."""

from __future__ import annotations

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.lowering.errors import UnsupportedOperation

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


def test_what_a_plan_refuses_is_refused_with_its_source_line():
    text = (
        '    %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a '
        ': i32 -> i32 loc("kernel.py":12:5)'
    )
    with pytest.raises(UnsupportedOperation, match=r"kernel\.py:12:5.*'tt\.elementwise_inline_asm'"):
        compile_body("    %a = tt.load %p : !tt.ptr<i32>\n" + text, "%p: !tt.ptr<i32>")


def test_a_quotient_is_of_numbers_that_the_driver_can_take_reciprocals_of(filecheck):
    text = disassemble(compile_body(scalar("arith.divf", "f32"), arguments("f32"), capabilities=PROFILES["generic"]))
    filecheck(
        text,
        """
CHECK: %[[LARGE:[0-9]+]] = OpFOrdGreaterThanEqual
CHECK: %[[SCALE:[0-9]+]] = OpSelect %{{[0-9]+}} %[[LARGE]]
CHECK: %[[A:[0-9]+]] = OpFMul %{{[0-9]+}} %{{[0-9]+}} %[[SCALE]]
CHECK: %[[B:[0-9]+]] = OpFMul %{{[0-9]+}} %{{[0-9]+}} %[[SCALE]]
CHECK: OpFDiv %{{[0-9]+}} %[[A]] %[[B]]
""",
    )
    exact = disassemble(
        compile_body(scalar("arith.divf", "f32"), arguments("f32"), capabilities=PROFILES["nvidia-hopper"])
    )
    assert "OpFDiv" in exact and "OpFMul" not in exact


def test_the_sum_of_narrow_numbers_has_an_addend_that_nvidias_driver_does_not_know(filecheck):
    body = """    %a = tt.load %p : !tt.ptr<i8>
    %b = tt.load %q : !tt.ptr<i8>
    %x = arith.extsi %a : i8 to i32
    %y = arith.extsi %b : i8 to i32
    %c = arith.addi %x, %y : i32
    %d = arith.trunci %c : i32 to i8
    tt.store %p, %d : !tt.ptr<i8>"""
    assert disassemble(compile_body(body, arguments("i8"), capabilities=PROFILES["generic"])).count("OpIAdd %") == 1
    filecheck(
        disassemble(compile_body(body, arguments("i8"), capabilities=PROFILES["nvidia-hopper"])),
        """
CHECK: %[[BITS:[0-9]+]] = OpConstant %{{[0-9]+}} 63
CHECK: %[[HIGH:[0-9]+]] = OpShiftRightLogical %{{[0-9]+}} %{{[0-9]+}} %[[BITS]]
CHECK: %[[ZERO:[0-9]+]] = OpUConvert %{{[0-9]+}} %[[HIGH]]
CHECK: OpIAdd
CHECK: OpIAdd {{.*}}%[[ZERO]]
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


def test_other_numbers_that_an_unsigned_comparison_chooses_stay_as_they_are():
    body = """    %a = tt.load %p : !tt.ptr<i64>
    %b = tt.load %q : !tt.ptr<i64>
    %g = arith.cmpi ugt, %a, %b : i64
    %x = arith.sitofp %a : i64 to f64
    %y = arith.sitofp %b : i64 to f64
    %m = arith.select %g, %x, %y : f64
    %c = arith.bitcast %m : f64 to i64
    tt.store %p, %c : !tt.ptr<i64>"""
    text = disassemble(compile_body(body, arguments("i64"), capabilities=PROFILES["nvidia-hopper"]))
    assert "OpIAdd %" not in text and "OpSelect" in text


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


def test_a_narrowed_number_is_rounded_before_it_is_widened(filecheck):
    body = """    %a = tt.load %p : !tt.ptr<f32>
    %h = arith.truncf %a : f32 to f16
    %w = arith.extf %h : f16 to f32
    tt.store %q, %w : !tt.ptr<f32>"""
    hopper = PROFILES["nvidia-hopper"]
    text = disassemble(compile_body(body, arguments("f32"), capabilities=hopper))
    filecheck(
        text,
        """
CHECK: OpIsNan
CHECK: OpSelect
CHECK: %[[WHOLE:[0-9]+]] = OpSelect
CHECK: OpFConvert %{{[0-9]+}} %[[WHOLE]]
""",
    )
    assert "OpIsNan" not in disassemble(compile_body(body, arguments("f32")))
    stored = """    %a = tt.load %p : !tt.ptr<f32>
    %h = arith.truncf %a : f32 to f16
    %x = tt.bitcast %q : !tt.ptr<f32> -> !tt.ptr<f16>
    tt.store %x, %h : !tt.ptr<f16>"""
    assert "OpIsNan" not in disassemble(compile_body(stored, arguments("f32"), capabilities=hopper))


#: Quotients of 8 rows of 128 elements, 8 in each invocation, by one number.
SHARED_DIVISOR = """
    %x0 = tt.splat %p : !tt.ptr<f32> -> tensor<8x128x!tt.ptr<f32>, #rows>
    %i0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %i1 = tt.expand_dims %i0 {axis = 0 : i32}
        : tensor<128xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x128xi32, #rows>
    %i2 = tt.broadcast %i1 : tensor<1x128xi32, #rows> -> tensor<8x128xi32, #rows>
    %x1 = tt.addptr %x0, %i2 : tensor<8x128x!tt.ptr<f32>, #rows>, tensor<8x128xi32, #rows>
    %x = tt.load %x1 : tensor<8x128x!tt.ptr<f32>, #rows>
    %b = tt.load %q : !tt.ptr<f32>
    %y = tt.splat %b : f32 -> tensor<8x128xf32, #rows>
    %z = arith.divf %x, %y : tensor<8x128xf32, #rows>
    tt.store %x1, %z : tensor<8x128x!tt.ptr<f32>, #rows>"""


def test_quotients_that_share_a_divisor_are_products_with_its_reciprocal(filecheck):
    hopper = replace(PROFILES["nvidia-hopper"], subgroup_size=8)
    text = disassemble(compile_body(SHARED_DIVISOR, arguments("f32"), capabilities=hopper))
    filecheck(
        text,
        """
CHECK: OpExtInst %{{[0-9]+}} %{{[0-9]+}} InverseSqrt
CHECK-NOT: InverseSqrt
CHECK: OpSelectionMerge
CHECK: OpFDiv
CHECK: OpPhi
CHECK-NOT: OpSelectionMerge
""",
    )
    plain = disassemble(compile_body(SHARED_DIVISOR, arguments("f32"), capabilities=replace(hopper, driver="generic")))
    assert "InverseSqrt" not in plain and "OpSelectionMerge" not in plain
