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


def test_scan_within_a_subgroup_takes_one_shuffle_a_bit(filecheck):
    """8 elements of which every subgroup holds all: three steps, no workgroup memory."""
    filecheck(
        disassemble(compile_body(fill(INPUT + SCAN, 8, "#one"), POINTER)),
        """
CHECK-NOT: OpVariable %{{[0-9]+}} Workgroup
CHECK-COUNT-3: OpGroupNonUniformShuffle
CHECK-NOT: OpGroupNonUniformShuffle
CHECK-NOT: OpControlBarrier
CHECK: OpReturn
""",
    )


def test_scan_across_subgroups_takes_one_barrier(filecheck):
    body = fill(INPUT + SCAN, 128, "#vec4", "{allocation.offset = 0 : i32, allocation.size = 16 : i32}")
    filecheck(
        disassemble(compile_body(body, POINTER, shared=16)),
        """
CHECK: OpTypeArray
CHECK: OpControlBarrier
CHECK-NOT: OpControlBarrier
CHECK: OpReturn
""",
    )


def accesses(body: str) -> tuple[int, int]:
    """(stores to workgroup memory, loads from it)."""
    lines = [line for line in disassemble(compile_body(body, POINTER, capabilities=PLAIN)).splitlines()]
    shared = [line for line in lines if "NonPrivatePointer" in line]
    return sum("OpStore" in line for line in shared), sum("OpLoad" in line for line in shared)


def test_totals_of_four_blocks_are_exchanged_in_one_access():
    """1,024 elements: each lane has eight blocks, of which it reads what the other three of four subgroups found."""
    assert accesses(fill(INPUT + SCAN, 1024, "#vec4")) == (2, 8)


def test_histogram_counts_by_atomics_between_two_barriers(filecheck):
    body = (
        fill(INPUT, 128, "#vec4")
        + """
    %h = tt.histogram %v {allocation.offset = 0 : i32, allocation.size = 64 : i32}
      : tensor<128xi32, #vec4> -> tensor<16xi32, #one>
    %r16 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #one>
    %s16 = tt.splat %p : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #one>
    %p16 = tt.addptr %s16, %r16 : tensor<16x!tt.ptr<i32>, #one>, tensor<16xi32, #one>
    tt.store %p16, %h : tensor<16x!tt.ptr<i32>, #one>"""
    )
    filecheck(
        disassemble(compile_body(body, POINTER, shared=64)),
        """
CHECK: OpControlBarrier
CHECK-COUNT-4: OpAtomicIAdd
CHECK-NOT: OpAtomicIAdd
CHECK: OpControlBarrier
CHECK-NOT: OpControlBarrier
CHECK: OpReturn
""",
    )


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


def test_gather_within_a_subgroup_shuffles(filecheck):
    filecheck(
        disassemble(compile_body(gather(8, "#one"), POINTER)),
        """
CHECK: OpGroupNonUniformShuffle %
CHECK-NOT: OpControlBarrier
CHECK: OpReturn
""",
    )


def test_gather_across_subgroups_goes_through_workgroup_memory(filecheck):
    body = gather(128, "#vec4", ", allocation.offset = 0 : i32, allocation.size = 512 : i32")
    filecheck(
        disassemble(compile_body(body, POINTER, shared=512)),
        """
CHECK-NOT: OpGroupNonUniformShuffle %
CHECK: OpControlBarrier
CHECK-NOT: OpControlBarrier
CHECK: OpReturn
""",
    )


def test_gathers_store_neighbours_in_one_access():
    assert accesses(gather(128, "#vec4")) == (1, 4)


def test_gathers_of_many_registers_are_a_loop_where_the_driver_wants_one():
    def loops(size: int, capabilities) -> int:
        return disassemble(compile_body(gather(size, "#vec4"), POINTER, capabilities=capabilities)).count("OpLoopMerge")

    assert [loops(size, LAVAPIPE) for size in (1024, 8192)] == [0, 1]
    assert loops(8192, PLAIN) == 0


def test_exclusive_or_with_the_partner_is_the_partner(filecheck):
    """What tl.sort does at every step: x ^ (x ^ partner), where the reduction is over two elements of a lane."""
    body = """
    %c = arith.constant dense<3> : tensor<64x2xi32, #pairs>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #flat>
    %m = tt.reshape %r : tensor<128xi32, #flat> -> tensor<64x2xi32, #pairs>
    %x = "tt.reduce"(%m) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %t = arith.xori %a, %b : i32
      tt.reduce.return %t : i32
    }) : (tensor<64x2xi32, #pairs>) -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #pairs}>>
    %e = tt.expand_dims %x {axis = 1 : i32}
      : tensor<64xi32, #ttg.slice<{dim = 1, parent = #pairs}>> -> tensor<64x1xi32, #pairs>
    %w = tt.broadcast %e : tensor<64x1xi32, #pairs> -> tensor<64x2xi32, #pairs>
    %y = arith.xori %m, %w : tensor<64x2xi32, #pairs>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<64x2x!tt.ptr<i32>, #pairs>
    %ptr = tt.addptr %s, %m : tensor<64x2x!tt.ptr<i32>, #pairs>, tensor<64x2xi32, #pairs>
    tt.store %ptr, %y : tensor<64x2x!tt.ptr<i32>, #pairs>"""
    pairs = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 1], warpsPerCTA = [4, 1], order = [1, 0]}>"
    flat = "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>"
    filecheck(
        disassemble(compile_body(body.replace("#pairs", pairs).replace("#flat", flat), POINTER)),
        """
CHECK-NOT: OpBitwiseXor
CHECK: OpReturn
""",
    )
