"""What the reader makes of single operations, attributes, types and locations."""

from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.ttgir.encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    OpaqueEncoding,
    PaddedSharedEncoding,
    SharedLinearEncoding,
    SliceEncoding,
)
from triton.backends.spirv.ttgir.ir import UNKNOWN, DenseAttr, FloatBits, Function, Operation
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FloatType, IntegerType, MemDescType, PointerType, TensorType

FIXTURES = Path(__file__).parent / "fixtures"
ARGUMENTS = (
    "%i: i32, %l: i64, %c: i1, %f: f32, %p: !tt.ptr<f32>, %v: tensor<64xf32>, %w: tensor<64xi32>, "
    "%m: tensor<64xi1>, %q: tensor<64x!tt.ptr<f32>>, %b: !ttg.memdesc<64xf32, #s, #smem, mutable>"
)
HEADER = "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n#smem = #ttg.shared_memory\n"


def body(text: str) -> list[Operation]:
    """The operations of a function with ARGUMENTS, without its ``tt.return``."""
    module = parse_module(f"{HEADER}module {{ tt.func @f({ARGUMENTS}) {{ {text}\n tt.return }} }}")
    region = module.functions["f"].body
    assert region is not None
    return region.blocks[0].operations[:-1]


def one(text: str) -> Operation:
    (operation,) = body(text)
    return operation


@pytest.mark.parametrize(
    "text, attributes",
    [
        ("%r = arith.cmpi slt, %w, %w : tensor<64xi32>", {"predicate": "slt"}),
        ('%r = "arith.cmpi"(%i, %i) <{predicate = 6 : i64}> : (i32, i32) -> i1', {"predicate": "ult"}),
        ("%r = arith.cmpf uno, %f, %f fastmath<nnan,ninf> : f32", {"predicate": "uno", "fastmath": ("nnan", "ninf")}),
        ("%r = tt.get_program_id z : i32", {"axis": 2}),
        ('%r = "tt.get_program_id"() <{axis = 1 : i32}> : () -> i32', {"axis": 1}),
        ("%r = tt.make_range {end = 64 : i32, start = -1 : i32} : tensor<65xi32>", {"start": -1, "end": 64}),
        ("%r = arith.addi %i, %i overflow<nsw, nuw> : i32", {"overflowFlags": ("nsw", "nuw")}),
        ("%r = arith.divsi %i, %i exact : i32", {"isExact": None}),
        ("%r = tt.load %p : !tt.ptr<f32>", {"isVolatile": False}),
        (
            "%r = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>, "
            "isVolatile = true} : !tt.ptr<f32>",
            {"isVolatile": True, "cachePolicy": {"cache_modifier": "ca", "eviction_policy": "evict_first"}},
        ),
        # Triton 3.8 has these as two attributes, before the others.
        (
            "%r = tt.load %p cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} : !tt.ptr<f32>",
            {"isVolatile": True, "cache": "cg", "evict": "evict_last"},
        ),
        ("tt.store %p, %f evictionPolicy = evict_first : !tt.ptr<f32>", {"evict": "evict_first"}),
        (
            "%r = tt.atomic_rmw fadd, acq_rel, gpu, %q, %v, %m : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, "
            "tensor<64xi1>) -> tensor<64xf32>",
            {"atomic_rmw_op": "fadd", "sem": "acq_rel", "scope": "gpu"},
        ),
        (
            '%r = "tt.atomic_rmw"(%p, %f) <{atomic_rmw_op = 5 : i32, sem = 1 : i32, scope = 3 : i32}> : '
            "(!tt.ptr<f32>, f32) -> f32",
            {"atomic_rmw_op": "fadd", "sem": "relaxed", "scope": "sys"},
        ),
        ("ttg.barrier local", {"addrSpace": "local"}),
        ("ttg.barrier local|global_read", {"addrSpace": "local|global_read"}),
        ('"ttg.barrier"() <{addrSpace = 5 : i32}> : () -> ()', {"addrSpace": "local|global_write"}),
        ("%r = tt.clampf %f, %f, %f, propagateNan = all : f32", {"propagateNan": "all"}),
        ("%r = tt.fp_to_fp %f, rounding = rtz : f32 -> f16", {"rounding": "rtz"}),
        (
            'tt.print "a\\22\\0A\\C3\\A9" {hex = true, isSigned = array<i32: 1>} : %i : i32',
            {"prefix": 'a"\né', "hex": True, "isSigned": (1,)},
        ),
        (
            'tt.assert %c, "m" {x.a = [1 : i32, 2.5 : f32, "s", @f, i32, unit], "x-b" = {c, d = false}} : i1',
            {"message": "m", "x.a": (1, 2.5, "s", "f", IntegerType(32), None), "x-b": {"c": None, "d": False}},
        ),
    ],
)
def test_attributes(text: str, attributes: dict[str, Any]) -> None:
    assert one(text).attributes == attributes


@pytest.mark.parametrize(
    "text, segments",
    [
        ("%r = tt.load %q : tensor<64x!tt.ptr<f32>>", (1, 0, 0)),
        ("%r = tt.load %q, %m : tensor<64x!tt.ptr<f32>>", (1, 1, 0)),
        ("%r = tt.load %q, %m, %v : tensor<64x!tt.ptr<f32>>", (1, 1, 1)),
        ("tt.store %q, %v : tensor<64x!tt.ptr<f32>>", (1, 1, 0)),
        ("tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>>", (1, 1, 1)),
        ('"tt.store"(%p, %f) : (!tt.ptr<f32>, f32) -> ()', (1, 1, 0)),
        ("%r = tt.make_tensor_descriptor %p, [%i, %i], [%l, %l] : <f32>, <4x8xf32>", (1, 2, 2)),
        (
            '%r = "tt.make_tensor_descriptor"(%p, %i, %i, %l, %l) : (!tt.ptr<f32>, i32, i32, i64, i64) -> '
            "!tt.tensordesc<4x8xf32>",
            (1, 2, 2),
        ),
        ("%r = scf.for %k = %i to %i step %i iter_args(%a = %f) -> (f32) : i32 { scf.yield %a : f32 }", (1, 1, 1, 1)),
    ],
)
def test_segments(text: str, segments: tuple[int, ...]) -> None:
    assert one(text).segments == segments


def test_derived_result_types() -> None:
    assert one("%r = arith.cmpi eq, %w, %w : tensor<64xi32>").result.type == TensorType((64,), IntegerType(1))
    assert one("%r = tt.load %q : tensor<64x!tt.ptr<f32>>").result.type == TensorType((64,), FloatType("f32"))
    assert one("%r = tt.load %p : !tt.ptr<f32>").result.type == FloatType("f32")
    assert one("%r = math.isnan %v : tensor<64xf32>").result.type == TensorType((64,), IntegerType(1))


@pytest.mark.parametrize(
    "text, value",
    [
        ("-3 : i8", -3),
        ("true", True),
        ("5 : index", 5),
        ("1.500000e+00 : bf16", 1.5),
        ("0x7FC00000 : f32", FloatBits(0x7FC00000, 32)),
        ("0x7C : f8E5M2", FloatBits(0x7C, 8)),
        (
            "dense<0xFF800000> : tensor<4xf32>",
            DenseAttr(TensorType((4,), FloatType("f32")), (FloatBits(0xFF800000, 32),), True),
        ),
        (
            "dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>",
            DenseAttr(TensorType((2, 2), IntegerType(32)), (1, -2, 3, 4), False),
        ),
        ("dense<true> : tensor<4xi1>", DenseAttr(TensorType((4,), IntegerType(1)), (True,), True)),
        ('dense<"0x01FF"> : tensor<2xi8>', DenseAttr(TensorType((2,), IntegerType(8)), (1, -1), False)),
        (
            'dense<"0x0000803F0000C07F"> : tensor<2xf32>',
            DenseAttr(TensorType((2,), FloatType("f32")), (1.0, FloatBits(0x7FC00000, 32)), False),
        ),
    ],
)
def test_constants(text: str, value: Any) -> None:
    operation = one(f"%r = arith.constant {text}")
    assert operation.attributes["value"] == value
    assert type(operation.attributes["value"]) is type(value)


def argument_type(text: str) -> Any:
    module = parse_module(f"{HEADER}module {{ tt.func private @f({text}) }}")
    return module.functions["f"].type.inputs[0]


BLOCKED = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>"
BLOCKED_DATA = BlockedEncoding((1, 2), (4, 8), (2, 1), (1, 0))


@pytest.mark.parametrize(
    "text, encoding",
    [
        (BLOCKED, BLOCKED_DATA),
        (f"#ttg.slice<{{dim = 1, parent = {BLOCKED}}}>", SliceEncoding(1, BLOCKED_DATA)),
        (f"#ttg.dot_op<{{opIdx = 1, parent = {BLOCKED}, kWidth = 4}}>", DotOperandEncoding(1, BLOCKED_DATA, 4)),
        (
            "#ttg.linear<{register = [[0, 1]], lane = [[1, 0], [2, 0]], warp = [], block = []}>",
            LinearEncoding(((0, 1),), ((1, 0), (2, 0)), (), ()),
        ),
        (
            BLOCKED.replace("}>", ", CGALayout = [[1, 0]]}>"),
            OpaqueEncoding("blocked", BLOCKED.replace("}>", ", CGALayout = [[1, 0]]}>")),
        ),
        (
            "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>",
            NvidiaMmaEncoding(2, 0, (2, 1), (16, 8)),
        ),
    ],
)
def test_encodings(text: str, encoding: Any) -> None:
    assert argument_type(f"tensor<8x32xf16, {text}>") == TensorType((8, 32), FloatType("f16"), encoding)


@pytest.mark.parametrize(
    "text, encoding",
    [
        (
            "#ttg.padded_shared<[4:+2, 8:+4] {order = [1, 0], shape = [16, 16]}>",
            PaddedSharedEncoding(((4, 2), (8, 4)), (1, 0), (16, 16)),
        ),
        (
            "#ttg.padded_shared<[4:+2] {offset = [[0, 1], [1, 0]], block = []}>",
            PaddedSharedEncoding(((4, 2),), offset=((0, 1), (1, 0))),
        ),
        (
            "#ttg.shared_linear<{offset = [[0, 1], [1, 1]]}, alignment = 32>",
            SharedLinearEncoding(((0, 1), (1, 1)), (), 32),
        ),
    ],
)
def test_shared_encodings(text: str, encoding: Any) -> None:
    assert argument_type(f"!ttg.memdesc<16x8xf16, {text}, #smem, mutable, 2x16x16>") == MemDescType(
        (16, 8), FloatType("f16"), encoding, "shared", True, (2, 16, 16)
    )


def test_pointer_address_spaces() -> None:
    assert argument_type("!tt.ptr<f32>") == PointerType(FloatType("f32"))
    assert argument_type('!tt.ptr<f32, "constant">') == PointerType(FloatType("f32"), 4)


def function(name: str) -> Function:
    (found, *_) = parse_module((FIXTURES / name).read_text(), name).functions.values()
    return found


def test_function_signature() -> None:
    module = parse_module((FIXTURES / "call.ttgir").read_text())
    kernel, helper = module.functions.values()
    assert kernel.public and not helper.public
    assert kernel.attributes == {"noinline": False} and helper.attributes == {"noinline": True}
    assert helper.type.inputs == (FloatType("f32"),)
    assert helper.type.results == (FloatType("f32"), FloatType("f32"))
    assert module.attributes["ttg.num-warps"] == 4 and module.attributes["ttg.target"] == "spirv:vulkan1.3"


def test_argument_attributes_and_names() -> None:
    matmul = function("matmul.ttgir")
    assert matmul.argument_attributes[0] == {"tt.divisibility": 16} and matmul.argument_attributes[6] == {}
    assert matmul.body is not None
    assert [value.name for value in matmul.body.entry.arguments[:4]] == ["a", "b", "c", "M"]


def test_locations_name_file_line_and_callers() -> None:
    softmax = function("softmax.ttgir")
    assert softmax.body is not None
    reduces = [op for outer in softmax.body.entry.operations for op in outer.walk() if op.name == "tt.reduce"]
    location = reduces[0].location
    assert location.file.endswith("triton/language/standard.py")
    assert location.caller is not None and (location.caller.file, location.caller.line) == ("kernels.py", 15)
    loads = [op for outer in softmax.body.entry.operations for op in outer.walk() if op.name == "tt.load"]
    assert (loads[0].location.file, loads[0].location.line, loads[0].location.name) == ("kernels.py", 14, "v")
    assert loads[0].location.caller is None


def test_fused_and_unknown_locations() -> None:
    text = (
        '%x0 = tt.get_program_id x : i32 loc(fused<"x">[unknown, "n"("f.py":3:4)])\n'
        "%x1 = tt.get_program_id x : i32 loc(unknown)\n"
        '%x2 = tt.get_program_id x : i32 loc(callsite(callsite("a.py":1:1 at "b.py":2:2) at "c.py":3:3))\n'
        '%x3 = tt.get_program_id x : i32 loc("f.py":3:4 to :3:9)'
    )
    fused, unknown, chain, span = (op.location for op in body(text))
    assert (fused.file, fused.line, fused.column, fused.name) == ("f.py", 3, 4, "n")
    assert unknown == UNKNOWN
    assert chain.caller is not None and chain.caller.caller is not None
    assert (chain.file, chain.caller.file, chain.caller.caller.file) == ("a.py", "b.py", "c.py")
    assert (span.line, span.column) == (3, 4)


def test_loop_results_and_implicit_yield() -> None:
    loop, use = body(
        "%r:2 = scf.for %k = %i to %i step %i iter_args(%a = %f, %d = %l) -> (f32, i64) : i32 {\n"
        "scf.yield %a, %d : f32, i64\n} {tt.num_stages = 3 : i32}\n%s = arith.addi %r#1, %r#1 : i64"
    )
    assert use.operands == [loop.results[1], loop.results[1]] and loop.results[1].uses == [use, use]
    assert loop.attributes == {"tt.num_stages": 3}
    empty = one("scf.if %c { }")
    assert [block.terminator.name for block in empty.regions[0].blocks] == ["scf.yield"]
    assert empty.regions[1].blocks == []


def test_branches_and_forward_references() -> None:
    module = parse_module(
        "module { tt.func @f(%c: i1, %x: i32) -> i32 {\n cf.br ^late\n ^early(%a: i32):\n"
        " %s = arith.addi %a, %y : i32\n tt.return %s : i32\n ^late:\n"
        " %y = arith.addi %x, %x : i32\n cf.cond_br %c, ^early(%y : i32), ^late } }"
    )
    region = module.functions["f"].body
    assert region is not None
    entry, early, late = region.blocks
    assert entry.terminator.successors[0].block is late
    taken, other = late.terminator.successors
    assert taken.block is early and taken.arguments == [late.operations[0].result] and other.block is late
    assert early.operations[0].operands == [early.arguments[0], late.operations[0].result]
    assert late.operations[0].result.uses == [early.operations[0], late.terminator]


def test_names_may_repeat_in_sibling_regions() -> None:
    first, second = body("scf.if %c { %a = arith.addi %i, %i : i32 }\nscf.if %c { %a = arith.addi %l, %l : i64 }")
    values = [op.regions[0].entry.operations[0].result for op in (first, second)]
    assert values[0] is not values[1] and values[0].type != values[1].type
