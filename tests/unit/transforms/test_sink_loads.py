"""Which loads of dot operands move down to their dots."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.sink_loads import are_apart, sink_loads
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.printer import print_module

HEADER = """
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
"""
_LEFT = "tensor<32x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>"
_RIGHT = "tensor<64x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>"
ARGUMENTS = (
    "%a: tensor<32x64xf32, #blocked>, %b: tensor<64x16xf32, #blocked>, %zero: tensor<32x16xf32, #blocked>, "
    "%y: tensor<8xf32, #a>, %p: i1"
)
LOAD_A = f"%a_1 = ttg.local_load %sa : !ttg.memdesc<32x64xf32, #shared, #smem> -> {_LEFT}"
LOAD_B = f"%b_1 = ttg.local_load %sb : !ttg.memdesc<64x16xf32, #shared, #smem> -> {_RIGHT}"
ALLOC_A = "%sa = ttg.local_alloc %a : (tensor<32x64xf32, #blocked>) -> !ttg.memdesc<32x64xf32, #shared, #smem>"
ALLOC_B = "%sb = ttg.local_alloc %b : (tensor<64x16xf32, #blocked>) -> !ttg.memdesc<64x16xf32, #shared, #smem>"
DOT = f"%c = tt.dot %a_1, %b_1, %zero : {_LEFT} * {_RIGHT} -> tensor<32x16xf32, #blocked>"
ONE = "%x = arith.constant 1 : i32"


def _function(*lines: str) -> str:
    body = "\n".join([*lines, "tt.return"])
    return f"{HEADER}module {{ tt.func public @k({ARGUMENTS}) {{ {body} }} }}"


def sunk(text: str) -> str | None:
    """The module of a text after the rewrite; None where nothing was moved."""
    module = parse_module(text)
    return print_module(module) if sink_loads(module) else None


def printed(text: str) -> str:
    return print_module(parse_module(text))


def test_a_load_moves_past_what_takes_memory() -> None:
    before = _function(ALLOC_A, LOAD_A, ONE, ALLOC_B, LOAD_B, DOT)
    after = _function(ALLOC_A, ONE, ALLOC_B, LOAD_B, LOAD_A, DOT)
    assert sunk(before) == printed(after)
    assert sunk(after) is None


def test_both_loads_move() -> None:
    taker = "%r = ttg.convert_layout %y : tensor<8xf32, #a> -> tensor<8xf32, #b>"
    before = _function(ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, taker, DOT)
    assert sunk(before) == printed(_function(ALLOC_A, ALLOC_B, taker, LOAD_B, LOAD_A, DOT))


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        ("nothing between takes memory", (ALLOC_A, ALLOC_B, LOAD_A, ONE, LOAD_B, DOT)),
        (
            "the buffer may be written",
            (
                ALLOC_A.replace("#smem>", "#smem, mutable>"),
                LOAD_A.replace("#smem>", "#smem, mutable>"),
                ALLOC_B,
                LOAD_B,
                DOT,
            ),
        ),
        (
            "the buffer is freed",
            (ALLOC_A, LOAD_A, ALLOC_B, "ttg.local_dealloc %sa : !ttg.memdesc<32x64xf32, #shared, #smem>", LOAD_B, DOT),
        ),
        ("another operation reads it", (ALLOC_A, LOAD_A, ALLOC_B, f"%n = arith.negf %a_1 : {_LEFT}", LOAD_B, DOT)),
        ("the dot is in another block", (ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, "scf.if %p {", f"  {DOT}", "}")),
        ("its block ends", (ALLOC_A, "scf.if %p {", f"  {LOAD_A}", "}", ALLOC_B)),
        (
            "a region uses it first",
            (ALLOC_A, LOAD_A, ALLOC_B, "scf.if %p {", f"  %n = arith.negf %a_1 : {_LEFT}", "}", LOAD_B, DOT),
        ),
        ("there is no dot", (ALLOC_A, LOAD_A, ALLOC_B)),
    ],
)
def test_other_loads_stay(what: str, lines: tuple[str, ...]) -> None:
    assert sunk(_function(*lines)) is None, what


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        ("ttg.local_alloc ttg.local_alloc ttg.local_load ttg.local_load tt.dot ttg.convert_layout", False),
        ("ttg.local_alloc ttg.local_load ttg.local_alloc ttg.local_load tt.dot", True),
        ("ttg.local_load tt.dot tt.reduce tt.dot", True),
        ("ttg.local_load a.name_without_a_row tt.dot", True),
        ("tt.reduce ttg.local_load tt.dot", False),
        ("ttg.local_load tt.reduce", False),
    ],
)
def test_only_loads_with_taken_memory_between_them_and_a_dot_are_read(names: str, apart: bool) -> None:
    assert are_apart(names.split()) is apart
