"""Where loops carry a tile on that they turn around."""

import pytest
from triton.backends.spirv.analysis.turned_tiles import turned_carried_tiles
from triton.backends.spirv.ttgir.parser import parse_module

TILE = "tensor<8x8xf16>"
TURN = f"%t = tt.trans %x {{order = array<i32: 1, 0>}} : {TILE} -> {TILE}"


def inner(body: str) -> str:
    """A loop inside of the loop, which carries %x as %z and yields %u. Its result is %t."""
    return (
        f"%t = scf.for %j = %zero to %n step %one iter_args(%z = %x) -> ({TILE}) : i32 {{\n"
        f"{body}\nscf.yield %u : {TILE}\n}}"
    )


def places(body: str, first: str, second: str = "%y") -> list[int]:
    """The operands of yields that are found in a loop over %x and %y with that body: -1 for those of a loop inside."""
    text = (
        f"tt.func public @k(%a: {TILE}, %f: tensor<8x8xf32>, %n: i32, %c: i1) {{\n"
        "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n"
        f"%r:2 = scf.for %i = %zero to %n step %one iter_args(%x = %a, %y = %a) -> ({TILE}, {TILE}) : i32 {{\n"
        f"{body}\nscf.yield {first}, {second} : {TILE}, {TILE}\n}}\ntt.return\n}}\n"
    )
    found = turned_carried_tiles(parse_module(f"module {{\n{text}\n}}\n").functions["k"])
    return [place.number if len(place.end.operands) == 2 else -1 for place in found]


@pytest.mark.parametrize(
    ("body", "carried", "expected"),
    [
        (TURN, "%t", [0]),
        (f"{TURN}\n%s = arith.addf %t, %y : {TILE}", "%s", [0]),
        (f"{TURN}\n%s = arith.addf %t, %x : {TILE}", "%x", []),
        (TURN.replace("%x", "%y"), "%t", []),
        (f"%s = arith.addf %x, %y : {TILE}", "%s", []),
        (
            f"%t = scf.if %c -> ({TILE}) {{\n{TURN.replace('%t', '%u')}\nscf.yield %u : {TILE}\n}} else {{\n"
            f"scf.yield %x : {TILE}\n}}",
            "%t",
            [0],
        ),
        (
            f"{TURN}\n%d = tt.dot %t, %y, %f : {TILE} * {TILE} -> tensor<8x8xf32>\n"
            f"%h = arith.truncf %d : tensor<8x8xf32> to {TILE}",
            "%h",
            [],
        ),
    ],
)
def test_what_a_loop_carries(body: str, carried: str, expected: list[int]) -> None:
    assert places(body, carried) == expected


def test_tiles_that_change_places_have_one_between_them() -> None:
    assert places(TURN, "%y", "%t") == [0]


def test_several_turns_in_a_row_have_one_between_them() -> None:
    assert places(f"{TURN}\n{TURN.replace('%x', '%v').replace('%t ', '%u ').replace('%v', '%t')}", "%u") == [0]


def test_two_tiles_have_two() -> None:
    assert places(f"{TURN}\n{TURN.replace('%x', '%y').replace('%t', '%u')}", "%t", "%u") == [0, 1]


def test_the_innermost_loop_that_turns_has_it() -> None:
    turns = inner(TURN.replace("%x", "%z").replace("%t", "%u"))
    keeps = inner(f"%u = arith.addf %z, %z : {TILE}")
    assert places(turns, "%t") == [-1]
    assert places(f"{keeps}\n{TURN.replace('%x', '%t').replace('%t =', '%v =')}", "%v") == [0]


def test_a_number_has_no_layout() -> None:
    """It is summed from a tile that is turned, and added to the tile of the next iteration."""
    text = f"""
    tt.func public @k(%a: {TILE}, %n: i32, %from: f16) {{
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %r = scf.for %i = %zero to %n step %one iter_args(%x = %from) -> (f16) : i32 {{
        %s = tt.splat %x : f16 -> {TILE}
        %y = arith.addf %a, %s : {TILE}
        %l = tt.reshape %y : {TILE} -> tensor<64xf16>
        %t = "tt.reduce"(%l) <{{axis = 0 : i32}}> ({{
        ^bb0(%p: f16, %q: f16):
          %o = arith.addf %p, %q : f16
          tt.reduce.return %o : f16
        }}) : (tensor<64xf16>) -> f16
        scf.yield %t : f16
      }}
      tt.return
    }}"""
    assert turned_carried_tiles(parse_module(f"module {{{text}\n}}\n").functions["k"]) == []
