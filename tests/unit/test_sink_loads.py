"""Which loads of dot operands move down to their dots, on the text of TTGIR."""

from __future__ import annotations

import pytest
from triton.backends.spirv.sink_loads import sunk

_LEFT = "tensor<32x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>"
_RIGHT = "tensor<64x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>"
LOAD_A = f"%a_1 = ttg.local_load %sa : !ttg.memdesc<32x64xf32, #shared, #smem> -> {_LEFT} loc(#loc1)"
LOAD_B = f"%b_1 = ttg.local_load %sb : !ttg.memdesc<64x16xf32, #shared, #smem> -> {_RIGHT} loc(#loc2)"
ALLOC_A = "%sa = ttg.local_alloc %a : (tensor<32x64xf32, #b>) -> !ttg.memdesc<32x64xf32, #shared, #smem> loc(#loc1)"
ALLOC_B = "%sb = ttg.local_alloc %b : (tensor<64x16xf32, #b>) -> !ttg.memdesc<64x16xf32, #shared, #smem> loc(#loc2)"
DOT = f"%c = tt.dot %a_1, %b_1, %zero : {_LEFT} * {_RIGHT} -> tensor<32x16xf32, #blocked> loc(#loc3)"
RETURN = "tt.return loc(#loc4)"


def _function(*lines: str) -> str:
    return "\n".join(["tt.func public @k() {", *(f"  {line}" for line in lines), "}"])


def test_a_load_moves_past_what_takes_memory() -> None:
    before = _function(ALLOC_A, LOAD_A, "%x = arith.constant 1 : i32", ALLOC_B, LOAD_B, DOT, RETURN)
    after = _function(ALLOC_A, "%x = arith.constant 1 : i32", ALLOC_B, LOAD_B, LOAD_A, DOT, RETURN)
    assert sunk(before) == after
    assert sunk(after) is None


def test_both_loads_move() -> None:
    taker = "%r = ttg.convert_layout %y : tensor<8xf32, #a> -> tensor<8xf32, #b> loc(#loc5)"
    before = _function(ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, taker, DOT, RETURN)
    assert sunk(before) == _function(ALLOC_A, ALLOC_B, taker, LOAD_B, LOAD_A, DOT, RETURN)


@pytest.mark.parametrize(
    ("what", "lines"),
    [
        (
            "nothing between takes memory",
            (ALLOC_A, ALLOC_B, LOAD_A, "%x = arith.constant 1 : i32", LOAD_B, DOT, RETURN),
        ),
        (
            "the buffer may be written",
            (ALLOC_A, LOAD_A.replace("#smem>", "#smem, mutable>"), ALLOC_B, LOAD_B, DOT, RETURN),
        ),
        (
            "the buffer is freed",
            (ALLOC_A, LOAD_A, ALLOC_B, "ttg.local_dealloc %sa : !ttg.memdesc<…>", LOAD_B, DOT, RETURN),
        ),
        (
            "another operation reads it",
            (ALLOC_A, LOAD_A, ALLOC_B, f"%n = arith.negf %a_1 : {_LEFT}", LOAD_B, DOT, RETURN),
        ),
        ("the dot is in another block", (ALLOC_A, LOAD_A, ALLOC_B, LOAD_B, "scf.if %p {", f"  {DOT}", "}", RETURN)),
        ("its block ends", ("scf.if %p {", f"  {LOAD_A}", "}", ALLOC_B, LOAD_B, DOT, RETURN)),
        ("a name begins alike", (ALLOC_A, LOAD_A.replace("%a_1 =", "%a_ ="), ALLOC_B, LOAD_B, DOT, RETURN)),
        ("there is no dot", (ALLOC_A, RETURN)),
    ],
)
def test_other_loads_stay(what: str, lines: tuple[str, ...]) -> None:
    assert sunk(_function(*lines)) is None, what
