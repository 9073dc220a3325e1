"""tt.scan, tt.histogram, tt.gather: which instructions exchange elements."""

from __future__ import annotations

from tests.lowering.harness import LAVAPIPE, PLAIN, compile_body, disassemble

POINTER = "%p: !tt.ptr<i32>, %q: !tt.ptr<i32>"
INPUT = """
    %r = tt.make_range {end = SIZE : i32, start = 0 : i32} : tensor<SIZExi32, LAYOUT>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<SIZEx!tt.ptr<i32>, LAYOUT>
    %ptr = tt.addptr %s, %r : tensor<SIZEx!tt.ptr<i32>, LAYOUT>, tensor<SIZExi32, LAYOUT>
    %v = tt.load %ptr : tensor<SIZEx!tt.ptr<i32>, LAYOUT>"""
SCAN = """
    %y = "tt.scan"(%v) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %t = arith.addi %a, %b : i32
      tt.scan.return %t : i32
    }) ATTRIBUTES : (tensor<SIZExi32, LAYOUT>) -> tensor<SIZExi32, LAYOUT>
    %s2 = tt.splat %q : !tt.ptr<i32> -> tensor<SIZEx!tt.ptr<i32>, LAYOUT>
    %out = tt.addptr %s2, %r : tensor<SIZEx!tt.ptr<i32>, LAYOUT>, tensor<SIZExi32, LAYOUT>
    tt.store %out, %y : tensor<SIZEx!tt.ptr<i32>, LAYOUT>"""


def fill(text: str, size: int, layout: str, attributes: str = "") -> str:
    return text.replace("SIZE", str(size)).replace("LAYOUT", layout).replace("ATTRIBUTES", attributes)


def accesses(body: str) -> tuple[int, int]:
    """(stores to workgroup memory, loads from it)."""
    lines = [line for line in disassemble(compile_body(body, POINTER, capabilities=PLAIN)).splitlines()]
    shared = [line for line in lines if "NonPrivatePointer" in line]
    return sum("OpStore" in line for line in shared), sum("OpLoad" in line for line in shared)


def test_totals_of_four_blocks_are_exchanged_in_one_access():
    """1,024 elements: each lane has eight blocks, of which it reads what the other three of four subgroups found."""
    assert accesses(fill(INPUT + SCAN, 1024, "#vec4")) == (2, 8)


def gather(size: int, layout: str, attributes: str = "") -> str:
    return fill(
        INPUT
        + """
    %g = tt.gather %v[%r] {axis = 0 : i32ATTRIBUTES}
      : (tensor<SIZExi32, LAYOUT>, tensor<SIZExi32, LAYOUT>) -> tensor<SIZExi32, LAYOUT>
    %s2 = tt.splat %q : !tt.ptr<i32> -> tensor<SIZEx!tt.ptr<i32>, LAYOUT>
    %out = tt.addptr %s2, %r : tensor<SIZEx!tt.ptr<i32>, LAYOUT>, tensor<SIZExi32, LAYOUT>
    tt.store %out, %g : tensor<SIZEx!tt.ptr<i32>, LAYOUT>""",
        size,
        layout,
        attributes,
    )


def test_gathers_store_neighbours_in_one_access():
    assert accesses(gather(128, "#vec4")) == (1, 4)


def test_gathers_of_many_registers_are_a_loop_where_the_driver_wants_one():
    def loops(size: int, capabilities) -> int:
        return disassemble(compile_body(gather(size, "#vec4"), POINTER, capabilities=capabilities)).count("OpLoopMerge")

    assert [loops(size, LAVAPIPE) for size in (1024, 8192)] == [0, 1]
    assert loops(8192, PLAIN) == 0
