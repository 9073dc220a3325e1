"""The math dialect: every operation compiles at every width; what is exact is one instruction; refusals are by name."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import FLOAT_CONTROLS, PROFILES
from triton.backends.spirv.lowering import registry
from triton.backends.spirv.lowering.errors import UnsupportedOperation
from triton.backends.spirv.lowering.externs import EMITTERS
from triton.backends.spirv.transforms.schedule import Options

from tests.lowering.harness import PLAIN, compile_body, disassemble

UNARY = sorted(
    name
    for name in registry.RULES
    if name.startswith("math.")
    and name.split(".")[1]
    not in (
        "absi",
        "ctlz",
        "cttz",
        "ctpop",
        "fma",
        "atan2",
        "copysign",
        "powf",
        "fpowi",
        "clampf",
        "sincos",
        "isnan",
        "isinf",
        "isfinite",
        "isnormal",
        "ipowi",
    )
)


def tensor(operation: str, type_: str, operands: str = "%x") -> str:
    """A body that loads a 32-element tensor, applies ``operation``, and stores the result."""
    pointers = f"tensor<32x!tt.ptr<{type_}>, #one>"
    return (
        f"    %r = tt.make_range {{end = 32 : i32, start = 0 : i32}} : tensor<32xi32, #one>\n"
        f"    %s = tt.splat %p : !tt.ptr<{type_}> -> {pointers}\n"
        f"    %a = tt.addptr %s, %r : {pointers}, tensor<32xi32, #one>\n    %x = tt.load %a : {pointers}\n"
        f"    %y = {operation} {operands} : tensor<32x{type_}, #one>\n    tt.store %a, %y : {pointers}"
    )


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_every_function_compiles(name, type_):
    assert compile_body(tensor(name, type_), f"%p: !tt.ptr<{type_}>")


@pytest.mark.parametrize("type_", ["f16", "f32", "f64"])
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("math.atan2", 2),
        ("math.copysign", 2),
        ("math.powf", 2),
        ("math.fma", 3),
        ("tt.precise_divf", 2),
        ("tt.precise_sqrt", 1),
    ],
)
def test_several_operands(name, count, type_):
    assert compile_body(tensor(name, type_, ", ".join(["%x"] * count)), f"%p: !tt.ptr<{type_}>")


@pytest.mark.parametrize("name", ["math.ctlz", "math.cttz", "math.ctpop"])
@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64"])
def test_bit_counts(name, type_):
    assert compile_body(tensor(name, type_), f"%p: !tt.ptr<{type_}>")


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("math.floor", "Floor"), ("math.ceil", "Ceil"), ("math.trunc", "Trunc"), ("math.roundeven", "RoundEven")],
)
def test_exact_functions_are_one_instruction(filecheck, name, instruction):
    for type_, width in (("f32", 32), ("f64", 64)):
        filecheck(
            disassemble(compile_body(tensor(name, type_), f"%p: !tt.ptr<{type_}>", capabilities=PLAIN)),
            f"""
CHECK: %[[FLOAT:[0-9]+]] = OpTypeFloat {width}
CHECK: OpExtInst %[[FLOAT]] %{{{{[0-9]+}}}} {instruction}
CHECK-NOT: OpFMul
""",
        )


@pytest.mark.parametrize(
    ("functions", "features", "lines"),
    [
        ({"exp2"}, set(), ["CHECK-NOT: OpFOrdLessThan", "CHECK: OpExtInst {{.*}} Exp2 ", "CHECK-NOT: OpFMul"]),
        ({"exp2", "exp2_subnormal"}, {"preserve_denormals32"}, ["CHECK-NOT: OpFOrdLessThan", "CHECK: Exp2 "]),
        # Arguments are lifted where the result may be subnormal, and the result is scaled.
        (
            {"exp2"},
            {"preserve_denormals32"},
            ["CHECK: OpFOrdLessThan", "CHECK: OpSelect", "CHECK: OpExtInst {{.*}} Exp2 ", "CHECK: OpFMul"],
        ),
        (set(), set(), ["CHECK-NOT: Exp2 ", "CHECK: OpExtInst {{.*}} Fma "]),
    ],
)
def test_exp2_is_the_devices_where_it_is_exact(filecheck, functions, features, lines):
    capabilities = replace(PLAIN, features=PLAIN.features - {"preserve_denormals32"} | features)
    spirv = compile_body(
        tensor("math.exp2", "f32"),
        "%p: !tt.ptr<f32>",
        capabilities=capabilities,
        options=Options(native_math=frozenset(functions)),
    )
    filecheck(disassemble(spirv), "CHECK: OpFunction\n" + "\n".join(lines) + "\n")


def test_exp_needs_products_and_sums_that_round_once(filecheck):
    for driver, line in (("nvidia_proprietary", "CHECK: Exp2 "), ("generic", "CHECK-NOT: Exp2 ")):
        spirv = compile_body(
            tensor("math.exp", "f32"),
            "%p: !tt.ptr<f32>",
            capabilities=replace(PLAIN, driver=driver),
            options=Options(native_math=frozenset({"exp2"})),
        )
        filecheck(disassemble(spirv), f"CHECK: OpFunction\n{line}\n")


def test_float_modes_only_where_the_device_has_them(filecheck):
    body, arguments = tensor("math.floor", "f16"), "%p: !tt.ptr<f16>"
    filecheck(
        disassemble(compile_body(body, arguments)),
        """
CHECK: OpExecutionMode {{.*}} RoundingModeRTE 16
CHECK: OpExecutionMode {{.*}} SignedZeroInfNanPreserve 16
""",
    )
    bare = replace(
        PROFILES["lavapipe"],
        features=frozenset(
            feature for feature in PROFILES["lavapipe"].features if not feature.startswith(tuple(FLOAT_CONTROLS))
        ),
    )
    filecheck(
        disassemble(compile_body(body, arguments, capabilities=bare)),
        """
CHECK-NOT: RoundingModeRTE
CHECK-NOT: SignedZeroInfNanPreserve
CHECK: OpFunction
""",
    )


def extern(symbol: str) -> str:
    """A body that calls a function of libdevice on f32."""
    body = tensor("", "f32").splitlines()
    attributes = f'{{libname = "", libpath = "", pure = true, symbol = "{symbol}"}}'
    body[-2] = f"    %y = tt.extern_elementwise %x {attributes} : (tensor<32xf32, #one>) -> tensor<32xf32, #one>"
    return "\n".join(body)


def test_an_unknown_extern_function_is_refused_by_name():
    with pytest.raises(UnsupportedOperation, match="__nv_mystery.*tl.extra.libdevice"):
        compile_body(extern("__nv_mystery"), "%p: !tt.ptr<f32>")


def test_a_function_with_a_signature_and_no_emitter_is_refused_by_name(monkeypatch):
    body = extern("__spirv_erfc_f32")
    assert compile_body(body, "%p: !tt.ptr<f32>")
    monkeypatch.delitem(EMITTERS, "erfc")
    with pytest.raises(UnsupportedOperation, match="libdevice.erfc has signatures .*, but no emitter.*EMITTERS"):
        compile_body(body, "%p: !tt.ptr<f32>")
