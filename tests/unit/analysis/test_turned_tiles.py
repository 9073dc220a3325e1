"""Which loops turn a tile around and carry it on."""

from __future__ import annotations

import pytest
from triton.backends.spirv.analysis.turned_tiles import turned_carried_tile
from triton.backends.spirv.ttgir.parser import parse_module

TILE = "tensor<8x8xf16>"
TURN = f"%t = tt.trans %x {{order = array<i32: 1, 0>}} : {TILE} -> {TILE}"


def turns(body: str, carried: str) -> bool:
    """Whether a loop over %x and %y with that body, which yields ``carried`` and %y, does."""
    text = (
        f"tt.func public @k(%a: {TILE}, %f: tensor<8x8xf32>, %n: i32, %c: i1) {{\n"
        "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n"
        f"%r:2 = scf.for %i = %zero to %n step %one iter_args(%x = %a, %y = %a) -> ({TILE}, {TILE}) : i32 {{\n"
        f"{body}\nscf.yield {carried}, %y : {TILE}, {TILE}\n}}\ntt.return\n}}\n"
    )
    return turned_carried_tile(parse_module(f"module {{\n{text}\n}}\n").functions["k"]) is not None


@pytest.mark.parametrize(
    ("body", "carried", "expected"),
    [
        (TURN, "%t", True),
        (f"{TURN}\n%s = arith.addf %t, %y : {TILE}", "%s", True),
        (f"{TURN}\n%s = arith.addf %t, %x : {TILE}", "%x", False),
        (TURN.replace("%x", "%y"), "%t", False),
        (f"%s = arith.addf %x, %y : {TILE}", "%s", False),
        (
            f"%t = scf.if %c -> ({TILE}) {{\n{TURN.replace('%t', '%u')}\nscf.yield %u : {TILE}\n}} else {{\n"
            f"scf.yield %x : {TILE}\n}}",
            "%t",
            True,
        ),
        (
            f"{TURN}\n%d = tt.dot %t, %y, %f : {TILE} * {TILE} -> tensor<8x8xf32>\n"
            f"%h = arith.truncf %d : tensor<8x8xf32> to {TILE}",
            "%h",
            False,
        ),
    ],
)
def test_what_a_loop_carries(body: str, carried: str, expected: bool) -> None:
    assert turns(body, carried) is expected
