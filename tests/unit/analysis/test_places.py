"""Whether two elements of a tensor of pointers may be the same."""

import pytest
from triton.backends.spirv.analysis.places import no_two_alike
from triton.backends.spirv.ttgir.parser import parse_module

TEXT = """
#l = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#down = #ttg.slice<{dim = 1, parent = #l}>
#across = #ttg.slice<{dim = 0, parent = #l}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 8 : i32} {
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %start = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #down>
  %j = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #across>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32, #down> -> tensor<8x1xi32, #l>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<16xi32, #across> -> tensor<1x16xi32, #l>
  %r = tt.broadcast %rows : tensor<8x1xi32, #l> -> tensor<8x16xi32, #l>
  %c = tt.broadcast %columns : tensor<1x16xi32, #l> -> tensor<8x16xi32, #l>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x16x!tt.ptr<f32>, #l>
  %ns = tt.splat %n : i32 -> tensor<8x16xi32, #l>
BODY
  tt.store %a, %x : tensor<8x16x!tt.ptr<f32>, #l>
  tt.return
}
}
"""

OFFSETS = """
  %k = arith.constant dense<ROW> : tensor<8x16xi32, #l>
  %m = arith.constant dense<COLUMN> : tensor<8x16xi32, #l>
  %s = arith.muli %r, %k : tensor<8x16xi32, #l>
  %t = arith.muli %m, %c : tensor<8x16xi32, #l>
  %o = SUM
  %w = arith.extsi %o : tensor<8x16xi32, #l> to tensor<8x16xi64, #l>
  %a = tt.addptr %ps, %w : tensor<8x16x!tt.ptr<f32>, #l>, tensor<8x16xi64, #l>
  %x = tt.load %a : tensor<8x16x!tt.ptr<f32>, #l>
"""


def alone(body: str) -> bool:
    """Of the pointers that the text stores to."""
    function = parse_module(TEXT.replace("BODY", body)).functions["k"]
    assert function.body is not None
    (store,) = (one for one in function.body.entry.operations if one.name == "tt.store")
    return no_two_alike(store.operands[0])


@pytest.mark.parametrize(
    ("row", "column", "wanted"),
    [
        (16, 1, True),
        (15, 1, False),
        (17, -1, True),
        (-16, 1, True),
        (1, 8, True),
        (1, 7, False),
        (0, 1, False),
        (16, 0, False),
        (1 << 29, 1, False),  # a row of it comes around 32 bits
    ],
)
def test_rows_and_columns(row: int, column: int, wanted: bool) -> None:
    body = OFFSETS.replace("ROW", str(row)).replace("COLUMN", str(column))
    for sign in ("addi", "subi"):
        assert alone(body.replace("SUM", f"arith.{sign} %s, %t : tensor<8x16xi32, #l>")) is wanted


@pytest.mark.parametrize(
    "offsets",
    [
        "arith.muli %s, %ns : tensor<8x16xi32, #l>",  # a factor that is not known
        "arith.andi %s, %t : tensor<8x16xi32, #l>",
        "arith.addi %s, %s : tensor<8x16xi32, #l>",  # columns are alike
    ],
)
def test_what_is_not_known_may_be_alike(offsets: str) -> None:
    assert not alone(OFFSETS.replace("ROW", "16").replace("COLUMN", "1").replace("SUM", offsets))


@pytest.mark.parametrize(("step", "wanted"), [("%ns", True), ("%c", False)])
def test_pointers_that_a_loop_carries(step: str, wanted: bool) -> None:
    """They stay apart where all of them move alike."""
    function = parse_module(
        TEXT.replace(
            "BODY",
            f"""
  %k = arith.constant dense<16> : tensor<8x16xi32, #l>
  %s = arith.muli %r, %k : tensor<8x16xi32, #l>
  %o = arith.addi %s, %c : tensor<8x16xi32, #l>
  %f = tt.addptr %ps, %o : tensor<8x16x!tt.ptr<f32>, #l>, tensor<8x16xi32, #l>
  %x = tt.load %f : tensor<8x16x!tt.ptr<f32>, #l>
  %a = scf.for %z = %start to %n step %one iter_args(%g = %f) -> (tensor<8x16x!tt.ptr<f32>, #l>) : i32 {{
    tt.store %g, %x : tensor<8x16x!tt.ptr<f32>, #l>
    %h = tt.addptr %g, {step} : tensor<8x16x!tt.ptr<f32>, #l>, tensor<8x16xi32, #l>
    scf.yield %h : tensor<8x16x!tt.ptr<f32>, #l>
  }}
""",
        )
    ).functions["k"]
    assert function.body is not None
    inner = next(one for top in function.body.entry.operations for one in top.walk() if one.name == "tt.store")
    assert no_two_alike(inner.operands[0]) is wanted
