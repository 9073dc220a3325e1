"""Text that is not a module: one error that says where and what, never a partial module, never another exception."""

import pickle
import random
import re
import time
from pathlib import Path

import pytest
from triton.backends.spirv import stages
from triton.backends.spirv.errors import UnsupportedOperation
from triton.backends.spirv.ttgir.lexer import Tokens, TTGIRSyntaxError
from triton.backends.spirv.ttgir.parser import parse_module

FIXTURES = Path(__file__).parent / "fixtures"


def failure(text: str, source: str = "<ttgir>") -> TTGIRSyntaxError:
    with pytest.raises(TTGIRSyntaxError) as caught:
        parse_module(text, source)
    return caught.value


def in_function(text: str) -> str:
    return f"module {{\n  tt.func @f(%i: i32, %l: i64, %c: i1, %p: !tt.ptr<f32>) {{\n    {text}\n  }}\n}}"


def test_error_gives_source_line_column_and_text() -> None:
    error = failure(in_function("%a = arith.addi %i %i : i32\n    tt.return"), "kernel.ttgir")
    assert (error.source, error.line, error.column) == ("kernel.ttgir", 3, 24)
    assert error.text == "    %a = arith.addi %i %i : i32"
    assert "expected ','" in error.expected and "kernel.ttgir:3:24" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    "text, message",
    [
        ("%a = tt.made_up %i : i32\n tt.return", "unknown operation 'tt.made_up'"),
        ('%a = "tt.reduce"(%i) : (i32) -> i32\n tt.return', "'tt.reduce' needs the attribute 'axis'"),
        ("%a = tt.reduce %i : i32\n tt.return", "only read in its generic form"),
        ("%a = arith.addi %i, %x : i32\n tt.return", "value %x is not defined"),
        ("%a = arith.addi %i, %b : i32\n %b = arith.addi %i, %i : i32\n tt.return", "%b is used before it is defined"),
        (
            "scf.if %c { %a = arith.addi %i, %b : i32 }\n %b = arith.addi %i, %i : i32\n tt.return",
            "%b is used before it is defined",
        ),
        ("%i = arith.addi %i, %i : i32\n tt.return", "value %i is defined twice"),
        ("%a = arith.addi %i, %l : i32\n tt.return", "value %l has type i64, but i32 is needed"),
        ("%a, %b = arith.addi %i, %i : i32\n tt.return", "'arith.addi' has 1 results, but 2 are named"),
        ("%a = arith.cmpi less, %i, %i : i32\n tt.return", "expected one of eq, ne, slt"),
        ("%a = tt.load %i : i32\n tt.return", "the type of 'result' does not follow from the type of 'ptr'"),
        ("%a = tt.make_range {end = 4 : i32} : tensor<4xi32>\n tt.return", "needs the attribute 'start'"),
        ("%a = arith.constant dense<[1, 2]> : tensor<3xi32>\n tt.return", "has 3 elements, but 2 are given"),
        ("%a = arith.constant 1 : f32\n tt.return", "expected a f32 value"),
        ("cf.br ^nowhere", "block ^nowhere is not defined"),
        ("%a = arith.addi %i, %i : i32", "expected a terminator"),
        ("tt.return\n tt.return", "after the terminator 'tt.return'"),
        ("tt.return %i : i32", "results of @f: given (i32), needed ()"),
        ("scf.yield", "'scf.yield' cannot end a function"),
        ("cf.br ^a(%i : i32)\n ^a(%x: i64):\n tt.return", "arguments of block ^a"),
        (
            "%a = scf.if %c -> (i32) { scf.yield %l : i64 } else { scf.yield %i : i32 }\n tt.return",
            "results of 'scf.if'",
        ),
        ("%a = tt.call @g(%i) : (i32) -> i32\n tt.return", "function @g is not defined"),
        ("tt.return loc(#loc7)", "location #loc7 is not defined"),
        ("%a = tt.splat %i : i32 -> tensor<4xi32, #blocked>\n tt.return", "this alias is not defined"),
        ("%a = tt.splat %i : i32 -> tensor<4xq7>\n tt.return", "expected a type"),
        ("%a = tt.splat %i : i32 -> tensor<4xi32, #ttg.blocked<{order = [0]}>>\n tt.return", "missing: sizePerThread"),
        ("%a:99999999 = arith.addi %i, %i : i32\n tt.return", "99999999 is not a number of results"),
    ],
)
def test_messages(text: str, message: str) -> None:
    assert message in str(failure(in_function(text)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\0",
        "module",
        "module {",
        "module {} module {}",
        "hello",
        "{" * 50_000,
        "module {\ntt.func @f() {} }",
        "module { llvm.func @f() }",
        "module attributes {a = " + "[" * 50_000,
        "#a = #b\nmodule {}",
        '"' * 9_999,
        "tensor<" * 20_000,
        "module {} loc(" + "(" * 50_000,
        "#loc = loc(#loc)\nmodule {}\n trailing",
        "module { tt.func @f(%a: i" + "9" * 10_000 + ") }",
        "module { tt.func @f() { " + "scf.if %c {" * 20_000,
    ],
)
def test_garbage_is_refused_quickly(text: str) -> None:
    start = time.process_time()
    assert failure(text).line >= 1
    assert time.process_time() - start < 5


def test_location_cycle_is_refused() -> None:
    assert "refers to itself" in str(
        failure('#loc = loc("a"(#loc1))\n' + in_function("tt.return loc(#loc)") + '\n#loc1 = loc("b"(#loc))')
    )


@pytest.mark.parametrize("name", ["softmax.ttgir", "early_return.ttir", "map.ttgir", "every_op.ttgir"])
def test_every_truncation_is_refused(name: str) -> None:
    items = Tokens((FIXTURES / name).read_text(), name).items[:-1]
    end = max(k for k, item in enumerate(items) if item == "}")
    for cut in range(0, end, max(1, end // 150)):
        failure("\n".join(items[:cut]))


def test_mutations_are_read_or_refused() -> None:
    choose = random.Random(7)
    texts = [(FIXTURES / name).read_text() for name in ("softmax.ttgir", "early_return.ttir", "map.ttgir")]
    refused = 0
    for _ in range(600):
        items = Tokens(choose.choice(texts), "").items[:-1]
        at = choose.randrange(len(items))
        kind = choose.randrange(4)
        if kind == 0:
            del items[at]
        elif kind == 1:
            items[at] = choose.choice(items)
        elif kind == 2:
            items.insert(at, choose.choice(items))
        else:
            cut = choose.randrange(len(items[at]))
            items[at] = items[at][:cut] + choose.choice('<>(){}"x,1 #') + items[at][cut + 1 :]
        try:
            parse_module("\n".join(items))
        except TTGIRSyntaxError as error:
            refused += error.line >= 1 and error.column >= 1
    assert refused > 400


def test_an_operation_of_another_backend_is_refused_with_its_line() -> None:
    text = """
#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
tt.func public @k(%x: tensor<8xf32, #l>) {
  %r = tti.experimental_fpsan_embed %x : tensor<8xf32, #l> -> tensor<8xi32, #l> loc(#loc2)
  tt.return loc(#loc)
} loc(#loc)
} loc(#loc)
#loc = loc("kernel.py":4:1)
#loc1 = loc("kernel.py":7:9)
#loc2 = loc("r"(#loc1))
"""
    said = "kernel.py:7:9: the SPIR-V backend cannot compile 'tti.experimental_fpsan_embed': it is not known"
    with pytest.raises(UnsupportedOperation, match=re.escape(said)):
        stages._read(text, "kernel.ttgir")
