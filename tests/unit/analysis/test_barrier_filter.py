"""Which of membar's barriers go, by the accesses that they part."""

from __future__ import annotations

import pytest
from triton.backends.spirv.analysis.barrier_filter import RULES, Need, barrier_needs, mark_inserted
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.passes import _added
from triton.backends.spirv.planning.footprints import Footprints
from triton.backends.spirv.planning.kernel_plan import plan_kernel
from triton.backends.spirv.planning.options import Options
from triton.backends.spirv.transforms.kernel import kernel_of, one_block
from triton.backends.spirv.ttgir.parser import parse_module

#: #rows and #pairs: subgroup w holds rows 2w and 2w + 1 of each eight, in other lanes; #columns: columns.
HEADER = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#pairs = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [8], warpsPerCTA = [4], order = [0]}>
#in_rows = #ttg.slice<{dim = 0, parent = #rows}>
#left = #ttg.dot_op<{opIdx = 0, parent = #rows}>
#right = #ttg.dot_op<{opIdx = 1, parent = #rows}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
"""
BUFFER = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"
BARRIER = "ttg.barrier local {inserted}"
ALLOC = f"%m = ttg.local_alloc {{allocation.offset = 0 : i32}} : () -> {BUFFER}\n"
#: Its last 16 bytes are the first of %m.
OTHER = f"%n = ttg.local_alloc {{allocation.offset = 1008 : i32}} : () -> {BUFFER}\n"
ARGUMENTS = "%r: tensor<16x16xf32, #rows>, %i: tensor<16xi32, #in_rows>, %a: i32, %c: i1"


def store(buffer: str = "%m") -> str:
    return f"ttg.local_store %r, {buffer} : tensor<16x16xf32, #rows> -> {BUFFER}\n"


def load(layout: str, name: str = "%l") -> str:
    return f"{name} = ttg.local_load %m : {BUFFER} -> tensor<16x16xf32, {layout}>\n"


def judged(body: str, functions: str = "", empty: bool = False) -> list[Need]:
    """What becomes of each barrier of a kernel with that body, in the order of its text."""
    module = parse_module(f"{HEADER}tt.func public @k({ARGUMENTS}) {{\n{body}\ntt.return\n}}\n{functions}}}\n")
    one_block(module)
    kernel = kernel_of(module)
    assert kernel.body is not None
    plan = plan_kernel(kernel, module, PROFILES["lavapipe"], Options())
    footprints = Footprints(plan.plans, plan.late, plan.buffers)
    needs = barrier_needs(kernel, footprints, {} if empty else RULES)
    return [
        needs.get(operation, Need.WORKGROUP)
        for top in kernel.body.entry.operations
        for operation in top.walk()
        if operation.name == "ttg.barrier"
    ]


@pytest.mark.parametrize(
    ("layout", "need"), [("#rows", Need.NOTHING), ("#pairs", Need.SUBGROUP), ("#columns", Need.WORKGROUP)]
)
def test_read_after_write_and_write_after_read(layout: str, need: Need) -> None:
    assert judged(f"{ALLOC}{store()}{BARRIER}\n{load(layout)}") == [need]
    assert judged(f"{ALLOC}{load(layout)}{BARRIER}\n{store()}") == [need]


def test_buffer_that_is_written_where_it_is_allocated() -> None:
    alloc = f"%m = ttg.local_alloc %r {{allocation.offset = 0 : i32}} : (tensor<16x16xf32, #rows>) -> {BUFFER}\n"
    assert judged(f"{alloc}{BARRIER}\n{load('#pairs')}") == [Need.SUBGROUP]


def test_without_rules_all_barriers_between_accesses_stay() -> None:
    body = f"{ALLOC}{store()}{BARRIER}\n{load('#rows')}{BARRIER}\n{store()}{BARRIER}\n{load('#pairs', '%k')}"
    assert judged(body) == [Need.NOTHING, Need.NOTHING, Need.SUBGROUP]
    assert judged(body, empty=True) == [Need.WORKGROUP] * 3


def test_reads_need_nothing_between_them() -> None:
    assert judged(f"{ALLOC}{load('#rows')}{BARRIER}\n{load('#columns', '%k')}", empty=True) == [Need.NOTHING]


def test_bytes_of_another_buffer() -> None:
    apart = OTHER.replace("1008", "1024")
    assert judged(f"{ALLOC}{apart}{store('%n')}{BARRIER}\n{load('#columns')}") == [Need.NOTHING]
    assert judged(f"{ALLOC}{OTHER}{store('%n')}{BARRIER}\n{load('#columns')}") == [Need.WORKGROUP]
    # Overlapping by less than an access of the widest kind counts too: words may be read along.
    near = OTHER.replace("1008", "1020")
    assert judged(f"{ALLOC}{near}{store('%n')}{BARRIER}\n{load('#columns')}") == [Need.WORKGROUP]


def test_access_in_between_that_overlaps_keeps_the_barrier() -> None:
    assert judged(f"{ALLOC}{OTHER}{store()}{store('%n')}{BARRIER}\n{load('#pairs')}") == [Need.WORKGROUP]
    assert judged(f"{ALLOC}{OTHER}{store()}{BARRIER}\n{store('%n')}{load('#pairs')}") == [Need.WORKGROUP]


def test_of_two_barriers_in_a_row_one_stays() -> None:
    assert judged(f"{ALLOC}{store()}{BARRIER}\n{BARRIER}\n{load('#columns')}") == [Need.NOTHING, Need.WORKGROUP]


@pytest.mark.parametrize("barrier", ["ttg.barrier all", "ttg.barrier local"])
def test_what_the_user_wrote_stays(barrier: str) -> None:
    assert judged(f"{barrier}\n{ALLOC}{store()}{barrier}\n{load('#rows')}") == [Need.WORKGROUP] * 2
    # It parts accesses as any other: membar's goes beside it.
    assert judged(f"{ALLOC}{store()}{BARRIER}\n{barrier}\n{load('#columns')}") == [Need.NOTHING, Need.WORKGROUP]


LOOP = "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\nscf.for %x = %z to %a step %o : i32 {{\n{}\n}}\n"


@pytest.mark.parametrize(
    ("layout", "need"), [("#rows", Need.NOTHING), ("#pairs", Need.SUBGROUP), ("#columns", Need.WORKGROUP)]
)
def test_loops_come_back(layout: str, need: Need) -> None:
    """The first barrier stands only between the load of one round and the store of the next."""
    body = f"{BARRIER}\n{store()}{BARRIER}\n{load(layout)}"
    assert judged(ALLOC + LOOP.format(body)) == [need, need]
    assert judged(
        ALLOC + LOOP.format(LOOP.format(body).replace("%x", "%y").replace("%z", "%z2").replace("%o", "%o2"))
    ) == [need, need]


def test_a_while_loop_comes_back_through_both_regions() -> None:
    body = (
        f"{ALLOC}scf.while : () -> () {{\n{BARRIER}\n{store()}{BARRIER}\nscf.condition(%c)\n}} do {{\n"
        f"{load('#columns')}scf.yield\n}}\n"
    )
    assert judged(body) == [Need.WORKGROUP, Need.WORKGROUP]
    assert judged(body.replace("#columns", "#pairs")) == [Need.SUBGROUP, Need.SUBGROUP]
    assert judged(body.replace(load("#columns"), "")) == [Need.NOTHING, Need.NOTHING]


def test_an_access_in_one_branch_counts() -> None:
    assert judged(f"{ALLOC}scf.if %c {{\n{store()}}}\n{BARRIER}\n{load('#columns')}") == [Need.WORKGROUP]
    assert judged(f"{ALLOC}{store()}{BARRIER}\nscf.if %c {{\n}} else {{\n{load('#columns')}}}") == [Need.WORKGROUP]


def test_a_barrier_in_one_branch_does_not_stand_for_one_on_all_paths() -> None:
    assert (
        judged(f"{ALLOC}{store()}scf.if %c {{\nttg.barrier all\n}}\n{BARRIER}\n{load('#columns')}")
        == [Need.WORKGROUP] * 2
    )
    body = f"{ALLOC}{store()}scf.if %c {{\n{BARRIER}\n}}\n{BARRIER}\n{load('#columns')}"
    assert judged(body) == [Need.NOTHING, Need.WORKGROUP]
    assert (
        judged(f"{ALLOC}{store()}scf.if %c {{\n{BARRIER}\n}} else {{\n{BARRIER}\n}}\n{load('#columns')}")
        == [Need.WORKGROUP] * 2
    )


def test_bytes_of_a_function_lie_where_each_call_puts_them() -> None:
    function = (
        f"tt.func private @f(%r: tensor<16x16xf32, #rows>) attributes {{noinline = true}} {{\n"
        f"{ALLOC}{store()}tt.return\n}}\n"
    )
    call = "tt.call @f(%r) {{allocation.offset = {} : i32}} : (tensor<16x16xf32, #rows>) -> ()\n"
    for offset, need in ((0, Need.WORKGROUP), (1024, Need.NOTHING)):
        assert judged(f"{ALLOC}{call.format(offset)}{BARRIER}\n{load('#columns')}", function) == [need]
    # The copy's layout is known as well as the caller's.
    assert judged(f"{ALLOC}{call.format(0)}{BARRIER}\n{load('#pairs')}", function) == [Need.SUBGROUP]


def test_operation_that_is_not_known_may_touch_everything() -> None:
    unknown = '%u = "ttg.unknown"(%i) {allocation.offset = 8192 : i32} : (tensor<16xi32, #in_rows>) -> i32\n'
    assert judged(f"{ALLOC}{unknown}{BARRIER}\n{load('#rows')}") == [Need.WORKGROUP]
    assert judged(f"{ALLOC}{store()}{BARRIER}\n{unknown}") == [Need.WORKGROUP]


LAZY = (
    f"%t = ttg.local_alloc %r {{allocation.offset = 0 : i32}} : (tensor<16x16xf32, #rows>) -> {BUFFER}\n"
    f"%w = ttg.local_load %t : {BUFFER} -> tensor<16x16xf32, #right>\n"
    f"%v = ttg.local_load %t : {BUFFER} -> tensor<16x16xf32, #left>\n"
    "%d = tt.dot %v, %w, %r : tensor<16x16xf32, #left> * tensor<16x16xf32, #right> -> tensor<16x16xf32, #rows>\n"
)


def test_a_lazy_load_reads_at_its_dot() -> None:
    module = parse_module(f"{HEADER}tt.func public @k({ARGUMENTS}) {{\n{LAZY}tt.return\n}}\n}}\n")
    one_block(module)
    kernel = kernel_of(module)
    assert kernel.body is not None
    plan = plan_kernel(kernel, module, PROFILES["lavapipe"], Options())
    dot = next(operation for operation in kernel.body.entry.operations if operation.name == "tt.dot")
    reads = Footprints(plan.plans, plan.late, plan.buffers)(dot).before
    assert len(plan.late) == 2 and [(read.start, read.end, read.write) for read in reads] == [(0, 1024, False)] * 2
    # No rule speaks of what a dot reads: the store behind it waits.
    assert judged(f"{LAZY}{BARRIER}\nttg.local_store %d, %t : tensor<16x16xf32, #rows> -> {BUFFER}\n") == [
        Need.WORKGROUP
    ]


CONVERT = (
    "%q = ttg.convert_layout %i {allocation.offset = 0 : i32, allocation.size = 64 : i32} : "
    "tensor<16xi32, #in_rows> -> tensor<16xi32, #one>\n"
)


def test_scratch_memory_that_is_not_used_needs_no_barrier() -> None:
    assert judged(f"{ALLOC}{load('#columns')}{BARRIER}\n{CONVERT}") == [Need.NOTHING]
    # But for what it was also to part: the wait in the operation is the one that stays, or the barrier.
    assert judged(f"{ALLOC}{store()}{BARRIER}\n{CONVERT}{load('#columns')}") == [Need.WORKGROUP]


def test_scratch_memory_that_is_used_is_written_and_read() -> None:
    move = (
        "%q = ttg.convert_layout %r {allocation.offset = 0 : i32, allocation.size = 1024 : i32} : "
        "tensor<16x16xf32, #rows> -> tensor<16x16xf32, #columns>\n"
    )
    assert judged(f"{ALLOC}{load('#pairs')}{BARRIER}\n{move}{BARRIER}\n{store()}") == [Need.WORKGROUP] * 2
    # Its own wait parts what is before and after it.
    apart = move.replace("offset = 0", "offset = 4096")
    assert judged(f"{ALLOC}{store()}{apart}{BARRIER}\n{load('#columns')}") == [Need.NOTHING]


def test_which_barriers_are_new() -> None:
    before = ["arith.constant", "ttg.barrier", "tt.load", "tt.return"]
    after = ["arith.constant", "ttg.barrier", "ttg.barrier", "tt.load", "ttg.barrier", "tt.return"]
    assert _added(before, after) == {1, 2} and _added(before, before) == frozenset()
    module = parse_module(
        f"{HEADER}tt.func public @k(%c: i1) {{\n{BARRIER}\nscf.if %c {{\nttg.barrier all\n}}\n"
        "ttg.barrier local\ntt.return\n}\n}\n"
    )
    mark_inserted(module, frozenset({1, 2}))
    body = module.functions["k"].body
    assert body is not None
    marked = [
        "inserted" in operation.attributes
        for top in body.entry.operations
        for operation in top.walk()
        if operation.name == "ttg.barrier"
    ]
    assert marked == [False, False, True], "of the user, of another address space, membar's"
