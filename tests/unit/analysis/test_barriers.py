"""Before which operations invocations wait, by the accesses that are parted."""

from dataclasses import replace

import pytest
from triton.backends.spirv.analysis.barriers import RULES, Need, barrier_needs
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.planning.kernel_plan import plan_kernel
from triton.backends.spirv.planning.memory_effects import MemoryEffects
from triton.backends.spirv.transforms.kernel_function import kernel_of, one_block
from triton.backends.spirv.transforms.schedule import Options
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
ALLOC = f"%m = ttg.local_alloc : () -> {BUFFER}\n"
#: Live together with %m.
OTHER = f"%n = ttg.local_alloc : () -> {BUFFER}\n"
FREE = f"ttg.local_dealloc %m : {BUFFER}\nttg.local_dealloc %n : {BUFFER}\n"
ARGUMENTS = "%r: tensor<16x16xf32, #rows>, %i: tensor<16xi32, #in_rows>, %a: i32, %c: i1"


def store(buffer: str = "%m") -> str:
    return f"ttg.local_store %r, {buffer} : tensor<16x16xf32, #rows> -> {BUFFER}\n"


def load(layout: str, name: str = "%l", buffer: str = "%m") -> str:
    return f"{name} = ttg.local_load {buffer} : {BUFFER} -> tensor<16x16xf32, {layout}>\n"


def judged(
    body: str, functions: str = "", empty: bool = False, capabilities: Capabilities = PROFILES["lavapipe"]
) -> list[tuple[str, Need]]:
    """Before which operations of a kernel with that body a barrier stands, and which."""
    module = parse_module(f"{HEADER}tt.func public @k({ARGUMENTS}) {{\n{body}\ntt.return\n}}\n{functions}}}\n")
    one_block(module)
    kernel = kernel_of(module)
    plan = plan_kernel(module, capabilities, Options()).plan
    needs = barrier_needs(kernel, MemoryEffects(plan.plans, plan.late, plan.buffers), {} if empty else RULES)
    return [(operation.name, needs[operation]) for operation in kernel.walk() if operation in needs]


LOAD, STORE, CONVERT = "ttg.local_load", "ttg.local_store", "ttg.convert_layout"
LAYOUTS = [("#rows", Need.NOTHING), ("#pairs", Need.SUBGROUP), ("#columns", Need.WORKGROUP)]


def waits(name: str, need: Need) -> list[tuple[str, Need]]:
    return [(name, need)] if need else []


@pytest.mark.parametrize(("layout", "need"), LAYOUTS)
def test_read_after_write_and_write_after_read(layout: str, need: Need) -> None:
    assert judged(f"{ALLOC}{store()}{load(layout)}") == waits(LOAD, need)
    assert judged(f"{ALLOC}{load(layout)}{store()}") == waits(STORE, need)


def test_buffer_that_is_written_where_it_is_allocated() -> None:
    alloc = f"%m = ttg.local_alloc %r : (tensor<16x16xf32, #rows>) -> {BUFFER}\n"
    assert judged(f"{alloc}{load('#pairs')}") == [(LOAD, Need.SUBGROUP)]


def test_without_rules_all_pairs_need_a_workgroup_barrier() -> None:
    body = f"{ALLOC}{store()}{load('#rows')}{store()}{load('#pairs', '%k')}"
    assert judged(body) == [(LOAD, Need.SUBGROUP)]
    assert judged(body, empty=True) == [(name, Need.WORKGROUP) for name in (LOAD, STORE, LOAD)]


def test_reads_need_nothing_between_them() -> None:
    assert judged(f"{ALLOC}{load('#rows')}{load('#columns', '%k')}", empty=True) == []


def test_bytes_of_another_buffer() -> None:
    assert judged(f"{ALLOC}{OTHER}{store('%n')}{load('#columns')}{FREE}") == []
    # Here %n has the bytes of %m, which nothing reads any more.
    assert judged(f"{ALLOC}{load('#columns')}{OTHER}{store('%n')}") == [(STORE, Need.WORKGROUP)]


def test_one_barrier_parts_all_that_is_before_from_all_behind() -> None:
    body = f"{ALLOC}{OTHER}{store()}{store('%n')}{load('#columns')}{load('#columns', '%k', '%n')}{FREE}"
    assert judged(body) == [(LOAD, Need.WORKGROUP)]
    body = f"{ALLOC}{OTHER}{store()}{store('%n')}{load('#pairs')}{load('#columns', '%k', '%n')}{FREE}"
    # The second load needs more, and its barrier comes later.
    assert judged(body) == [(LOAD, Need.WORKGROUP)]


@pytest.mark.parametrize("barrier", ["ttg.barrier all", "ttg.barrier local"])
def test_what_the_user_wrote_parts_accesses(barrier: str) -> None:
    assert judged(f"{ALLOC}{store()}{barrier}\n{load('#columns')}") == []
    assert judged(f"{ALLOC}{store()}{load('#columns')}{barrier}\n") == [(LOAD, Need.WORKGROUP)]


LOOP = "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\nscf.for %x = %z to %a step %o : i32 {{\n{}\n}}\n"


@pytest.mark.parametrize(("layout", "need"), LAYOUTS)
def test_loops_come_back(layout: str, need: Need) -> None:
    """The first barrier stands only between the load of one round and the store of the next."""
    body = f"{store()}{load(layout)}"
    expected = [*waits(STORE, need), *waits(LOAD, need)]
    assert judged(ALLOC + LOOP.format(body)) == expected
    nested = LOOP.format(body).replace("%x", "%y").replace("%z", "%z2").replace("%o", "%o2")
    assert judged(ALLOC + LOOP.format(nested)) == expected


def test_a_while_loop_comes_back_through_both_regions() -> None:
    body = f"{ALLOC}scf.while : () -> () {{\n{store()}scf.condition(%c)\n}} do {{\n{load('#columns')}scf.yield\n}}\n"
    assert judged(body) == [(STORE, Need.WORKGROUP), (LOAD, Need.WORKGROUP)]
    assert judged(body.replace("#columns", "#pairs")) == [(STORE, Need.SUBGROUP), (LOAD, Need.SUBGROUP)]
    assert judged(body.replace(load("#columns"), "")) == []


def test_an_access_in_one_branch_counts() -> None:
    assert judged(f"{ALLOC}scf.if %c {{\n{store()}}}\n{load('#columns')}") == [(LOAD, Need.WORKGROUP)]
    assert judged(f"{ALLOC}{store()}scf.if %c {{\n}} else {{\n{load('#columns')}}}") == [(LOAD, Need.WORKGROUP)]


def test_a_barrier_in_one_branch_does_not_stand_for_one_on_all_paths() -> None:
    one = f"{ALLOC}{store()}scf.if %c {{\nttg.barrier all\n}}\n{load('#columns')}"
    assert judged(one) == [(LOAD, Need.WORKGROUP)]
    both = one.replace("all\n}", "all\n} else {\nttg.barrier all\n}")
    assert judged(both) == []


def test_buffers_of_a_function_that_is_called() -> None:
    """Its buffer is not live at the same time as that of the caller, or it is."""
    function = (
        f"tt.func private @f(%r: tensor<16x16xf32, #rows>) attributes {{noinline = true}} {{\n"
        f"{ALLOC}{store()}tt.return\n}}\n"
    )
    call = "tt.call @f(%r) : (tensor<16x16xf32, #rows>) -> ()\n"
    assert judged(f"{ALLOC}{load('#columns')}{call}", function) == [(STORE, Need.WORKGROUP)]
    assert judged(f"{ALLOC}{call}{load('#columns')}", function) == []


def test_operation_that_is_not_known_may_touch_everything() -> None:
    unknown = '%u = "ttg.unknown"(%i) : (tensor<16xi32, #in_rows>) -> i32\n'
    assert judged(f"{ALLOC}{unknown}{load('#rows')}") == [(LOAD, Need.WORKGROUP)]
    assert judged(f"{ALLOC}{store()}{unknown}") == [("ttg.unknown", Need.WORKGROUP)]


LAZY = (
    f"%t = ttg.local_alloc %r : (tensor<16x16xf32, #rows>) -> {BUFFER}\n"
    f"%w = ttg.local_load %t : {BUFFER} -> tensor<16x16xf32, #right>\n"
    f"%v = ttg.local_load %t : {BUFFER} -> tensor<16x16xf32, #left>\n"
    "{}"
    "%d = tt.dot %v, %w, %r : tensor<16x16xf32, #left> * tensor<16x16xf32, #right> -> tensor<16x16xf32, #rows>\n"
)
MOVE = "%q = ttg.convert_layout %r : tensor<16x16xf32, #rows> -> tensor<16x16xf32, #columns>\n"


def test_a_lazy_load_reads_at_its_dot() -> None:
    # No rule speaks of what a dot reads: the store behind it waits.
    behind = f"ttg.local_store %d, %t : tensor<16x16xf32, #rows> -> {BUFFER}\n"
    assert judged(LAZY.format("") + behind) == [(LOAD, Need.WORKGROUP), (STORE, Need.WORKGROUP)]
    # What an operation between has for itself lies elsewhere, and its own wait does not stand for the store's.
    assert judged(LAZY.format(MOVE) + behind) == [(LOAD, Need.WORKGROUP), (STORE, Need.WORKGROUP)]


def test_memory_of_an_operation_is_written_and_read() -> None:
    # It takes the bytes of the buffer, which is not live then, if there are no others.
    full = replace(PROFILES["lavapipe"], shared_bytes=1024)
    for body, waiting in ((f"{ALLOC}{load('#pairs')}{MOVE}", CONVERT), (f"{MOVE}{ALLOC}{store()}", STORE)):
        assert judged(body, capabilities=full) == [(waiting, Need.WORKGROUP)]
        assert judged(body) == []
    # Its own wait parts what is before and after it.
    assert judged(f"{ALLOC}{store()}{MOVE}{load('#columns')}") == []


def test_a_barrier_stands_before_the_loads_of_the_next_iteration() -> None:
    """Unless something between reads the memory that the barrier is for."""
    ahead = "%p = arith.addi %a, %a {spirv.ahead = true} : i32\n%q = arith.muli %p, %a : i32\n"
    assert judged(f"{ALLOC}{store()}{ahead}{load('#columns')}") == [("arith.addi", Need.WORKGROUP)]
    own = load("#rows", "%o")
    assert judged(f"{ALLOC}{store()}{ahead}{own}{load('#columns')}") == [(LOAD, Need.WORKGROUP)]
