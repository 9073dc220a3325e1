"""Which operands of matrix dots are loaded before a loop."""

from __future__ import annotations

import pytest
from triton.backends.spirv.transforms.gpu.invariant_operands import Capacity, hoist_invariant_operands
from triton.backends.spirv.transforms.verifier import verify
from triton.backends.spirv.ttgir.parser import parse_module

MODULE = """
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#x = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#across = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%q: tensor<64x64xf16, #x>, %k: tensor<64x64xf16, #x>, %zero: tensor<64x64xf32, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sq = ttg.local_alloc %q : (tensor<64x64xf16, #x>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %sk = ttg.local_alloc %k : (tensor<64x64xf16, #x>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %l = LOAD
      %m = ttg.local_load %sk : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #b>
      %d = tt.dot %l, %m, %total : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #mma>
      EXTRA
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.return
  }
}
"""  # noqa: E501
LOAD = "ttg.local_load %sq : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #a>"
ACROSS = """ttg.local_load %v : !ttg.memdesc<64x64xf16, #across, #smem> -> tensor<64x64xf16, #a>"""
VIEW = """%v = ttg.memdesc_trans %sq {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #across, #smem>
      %l = """  # noqa: E501
#: Of a lane: the accumulator has 32 words, the tile of k 16, the operand 16.
NEEDED = 32 + 16 + 16
#: Of a lane, so few that no operand finds room, and so many that all do; bytes of each buffer.
FEW, MANY, BUFFER = 16, 256, 64 * 64 * 2
CAPACITY = Capacity(MANY, 1 << 20)


def hoisted(text: str, room: Capacity = CAPACITY) -> list[str] | None:
    """The operations between the constants and the loop; None where nothing was moved."""
    source = parse_module(text)
    if not hoist_invariant_operands(source, room):
        return None
    verify(source)
    body = source.functions["k"].body
    assert body is not None
    names = [operation.name for operation in body.entry.operations]
    return names[2 : names.index("scf.for")]


def module(load: str = LOAD, extra: str = "") -> str:
    return MODULE.replace("LOAD", load).replace("EXTRA", extra)


def test_what_was_stored_before_the_loop_is_loaded_before_it() -> None:
    assert hoisted(module()) == ["ttg.local_alloc", "ttg.local_load"]


def test_with_its_view() -> None:
    assert hoisted(MODULE.replace("%l = LOAD", VIEW + ACROSS).replace("EXTRA", "")) == [
        "ttg.local_alloc",
        "ttg.memdesc_trans",
        "ttg.local_load",
    ]


def test_behind_a_view_that_is_there_already() -> None:
    view, load = (VIEW + ACROSS).split("\n")
    text = MODULE.replace("    %r = scf.for", f"    %other = arith.constant 1 : i32\n    {view}\n    %r = scf.for")
    text = text.replace("%l = LOAD", load.strip()).replace("EXTRA", "")
    assert hoisted(text) == ["ttg.local_alloc", "arith.constant", "ttg.memdesc_trans", "ttg.local_load"]


@pytest.mark.parametrize("registers, moves", [(75, True), (74, False)])
def test_only_while_there_are_registers(registers: int, moves: bool) -> None:
    assert 74 * 0.86 < NEEDED < 75 * 0.86
    assert (hoisted(module(), Capacity(registers, 1 << 20)) is not None) == moves


@pytest.mark.parametrize(
    "shared, moves", [(BUFFER - 1, False), (BUFFER, True), (2 * BUFFER - 1, True), (2 * BUFFER, False)]
)
def test_with_few_registers_where_another_workgroup_fits_only_then(shared: int, moves: bool) -> None:
    assert (hoisted(module(), Capacity(FEW, shared)) is not None) == moves


def test_with_few_registers_where_the_schedule_says_so() -> None:
    assert hoisted(module(), Capacity(FEW, 1 << 20, held=True)) == ["ttg.local_alloc", "ttg.local_load"]


def test_what_leaves_no_room_gets_its_layout_without_a_buffer() -> None:
    assert hoisted(module(), Capacity(MANY, BUFFER - 1)) == ["ttg.convert_layout"]
    view = MODULE.replace("%l = LOAD", VIEW + ACROSS).replace("EXTRA", "")
    assert hoisted(view, Capacity(MANY, BUFFER - 1)) == ["ttg.local_alloc", "ttg.memdesc_trans", "ttg.local_load"]


def test_what_is_not_an_operand_alone_stays() -> None:
    assert hoisted(module(extra="%e = arith.addf %l, %l : tensor<64x64xf16, #a>")) is None
    assert hoisted(module(LOAD.replace("%sq", "%sk"))) is None


@pytest.mark.parametrize("shared, name", [(1 << 20, "ttg.local_load"), (BUFFER - 1, "ttg.convert_layout")])
def test_two_loops_share_a_load(shared: int, name: str) -> None:
    """Else the buffer would live through the first loop for the second one's load."""
    first, rest = module().split("    tt.return")
    start = first.index("    %r = scf.for")
    second = first[start:].replace("%r =", "%r2 =").replace("%total = %zero", "%total = %r")
    source = parse_module(f"{first}{second}    tt.return{rest}")
    assert hoist_invariant_operands(source, Capacity(MANY, shared))
    body = source.functions["k"].body
    assert body is not None
    (load,) = (one for one in body.entry.operations if one.name in ("ttg.local_load", "ttg.convert_layout"))
    assert load.name == name and len(load.result.uses) == 2
