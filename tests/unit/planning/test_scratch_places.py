"""Where exchanges lie, so that invocations wait less: what lies where, and which barriers are left."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.spirv.analysis.barriers import Need
from triton.backends.spirv.capabilities import PROFILES, Capabilities
from triton.backends.spirv.planning import kernel_plan
from triton.backends.spirv.planning.kernel_plan import KernelPlan, plan_kernel
from triton.backends.spirv.planning.memory_pools import POOL, Apart, Room, ScratchPart, View
from triton.backends.spirv.planning.scratch_places import GRANULE, spare_bytes
from triton.backends.spirv.transforms.kernel_function import kernel_of, one_block
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FloatType, IntegerType

#: 32 invocations may take 4,096 bytes, and 512 on a GPU of which nothing is known.
CPU = PROFILES["lavapipe"]
EXPLICIT = replace(CPU, features=CPU.features | {"explicit_workgroup_layout"})
GPU = replace(EXPLICIT, driver="generic")

HEADER = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#mixed = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1]], lane = [[0, 8], [0, 4], [4, 0]],
                      warp = [[0, 2], [8, 0]], block = []}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
"""
#: Elements of a row lie in four subgroups.
TENSORS = "%r: tensor<16x16xf32, #columns>, %s: tensor<16x16xf32, #mixed>, %w: tensor<64x16xf32, #rows>"
BUFFER = "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>"

#: 16 rows of four partial results: 256 bytes.
SUM = """"tt.reduce"(%r) <{axis = 1 : i32}> ({
^bb0(%p: f32, %q: f32):
  %t = arith.addf %p, %q : f32
  tt.reduce.return %t : f32
}) : (tensor<16x16xf32, #columns>) -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #columns}>>
"""
#: 4,096 bytes.
MOVE = "ttg.convert_layout %w : tensor<64x16xf32, #rows> -> tensor<64x16xf32, #columns>\n"
#: Goes to another layout, across subgroups, and back.
SCAN = SUM.replace("reduce", "scan").replace("%r", "%s").replace("{axis", "{reverse = false, axis")
SCAN = f"{SCAN.partition(' : (tensor')[0]} : (tensor<16x16xf32, #mixed>) -> tensor<16x16xf32, #mixed>\n"


def program(*steps: object) -> str:
    """Operations, which are strings, and structures, which are tuples: ``("for", *steps)``, ``("if", then, else)``."""
    lines, count = ["%z = arith.constant 0 : i32", "%o = arith.constant 1 : i32"], 0

    def write(some: tuple[object, ...]) -> None:
        nonlocal count
        for step in some:
            count += 1
            if isinstance(step, str):
                lines.append(f"%x{count} = {step}" if step in (SUM, MOVE, SCAN) else step)
            elif step[0] == "for":  # type: ignore[index]
                lines.append(f"scf.for %i{count} = %z to %a step %o : i32 {{")
                write(step[1:])  # type: ignore[index]
                lines.append("}")
            else:
                _, first, second = step  # type: ignore[misc]
                lines.append("scf.if %c {")
                write(first)
                lines.append("} else {")
                write(second)
                lines.append("}")

    write(steps)
    return "\n".join(lines)


def planned(body: str, capabilities: Capabilities = CPU, shared: int = 32768) -> tuple[list[int], int, KernelPlan]:
    """Where the first part of each exchange lies in its pool, how many barriers there are before operations, and the
    plan."""
    module = parse_module(f"{HEADER}tt.func public @k({TENSORS}, %a: i32, %c: i1) {{\n{body}\ntt.return\n}}\n}}\n")
    one_block(module)
    kernel = kernel_of(module)
    plan = plan_kernel(module, replace(capabilities, shared_bytes=shared), Options()).plan
    made = [plan.plans[one] for one in kernel.walk() if one in plan.plans]
    assert all(need == Need.WORKGROUP for need in plan.barriers.values())
    return [one.offset % POOL for found in made for one in found.scratch], len(plan.barriers), plan


@pytest.mark.parametrize("capabilities", [CPU, GPU], ids=["cpu", "gpu"])
def test_a_sequence_takes_turns(capabilities: Capabilities) -> None:
    places, barriers, plan = planned(program(SUM, SUM, SUM, SUM), capabilities)
    assert (places, barriers, plan.shared_bytes) == ([0, 256, 0, 256], 0, 512)


def test_a_loop_with_an_even_number_needs_two_places() -> None:
    assert planned(program(("for", SUM, SUM)))[:2] == ([0, 256], 0)
    assert planned(program(("for", SUM, SUM, SUM, SUM)))[:2] == ([0, 256, 0, 256], 0)


def test_a_loop_with_an_odd_number_needs_three() -> None:
    assert planned(program(("for", SUM, SUM, SUM)))[:2] == ([0, 256, 512], 0)
    assert planned(program(("for", SUM, SUM, SUM, SUM, SUM)))[:2] == ([0, 256, 0, 256, 512], 0)
    # Two of them are all that this one may take: one barrier in a round.
    assert planned(program(("for", SUM, SUM, SUM)), GPU)[:2] == ([0, 256, 0], 1)


def test_an_exchange_that_is_alone_in_a_loop_waits_wherever_it_lies() -> None:
    places, barriers, plan = planned(program(SUM, ("for", SUM), SUM))
    assert (places, barriers, plan.shared_bytes) == ([0, 0, 256], 1, 512)


def test_a_loop_may_run_no_round() -> None:
    """Then what is behind it comes next to what is before it."""
    assert planned(program(SUM, ("for", SUM, SUM), SUM))[:2] == ([0, 256, 0, 256], 0)
    assert planned(program(SUM, ("for", SUM, SUM, SUM), SUM))[:2] == ([0, 256, 0, 512, 256], 0)


def test_nested_loops() -> None:
    places, barriers, _ = planned(program(("for", SUM, ("for", SUM, SUM), SUM)))
    assert (places, barriers) == ([0, 256, 0, 256], 0)
    places, barriers, _ = planned(program(("for", SUM, ("for", SUM, SUM, SUM), SUM)))
    assert (places, barriers) == ([0, 256, 0, 512, 256], 0)
    assert planned(program(("for", ("for", SUM, SUM))))[:2] == ([0, 256], 0)


def test_branches() -> None:
    """One of them runs, and both may share a place. Behind an empty one comes what was before it."""
    assert planned(program(SUM, ("if", (SUM,), (SUM,)), SUM))[:2] == ([0, 256, 256, 0], 0)
    assert planned(program(SUM, ("if", (SUM,), ()), SUM))[:2] == ([0, 256, 512], 0)
    assert planned(program(("for", ("if", (SUM,), (SUM, SUM)), SUM)))[1] == 0


def test_a_barrier_of_the_user_parts_exchanges() -> None:
    assert planned(program(SUM, "ttg.barrier all", SUM))[:2] == ([0, 0], 0)


def test_exchanges_of_one_operation_take_turns() -> None:
    """The layout of the scan is changed before it and after it."""
    _, barriers, plan = planned(program(SCAN, SCAN), EXPLICIT)
    scratch = [one for found in plan.plans.values() for one in found.scratch]
    assert [one.exchange for one in scratch] == [0, 1, 2] * 2 and not barriers and not any(one.waits for one in scratch)
    _, barriers, plan = planned(program(SCAN, SCAN), EXPLICIT, 1024)
    scratch = [one for found in plan.plans.values() for one in found.scratch]
    assert plan.fits and [one.waits for one in scratch] == [False, True, True] * 2 and barriers == 1


ALLOC, LOAD, STORE = (
    f"%m = ttg.local_alloc : () -> {BUFFER}",
    f"%l = ttg.local_load %m : {BUFFER} -> tensor<16x16xf32, #rows>",
    f"ttg.local_store %r, %m : tensor<16x16xf32, #columns> -> {BUFFER}",
)


def test_clear_of_buffers() -> None:
    # The buffer is not live any more, or not yet: but its bytes are accessed.
    assert planned(program(ALLOC, LOAD, SUM), EXPLICIT)[:2] == ([1024], 0)
    assert planned(program(SUM, ALLOC, STORE), EXPLICIT)[:2] == ([1024], 0)
    # On this GPU that would be too much memory.
    assert planned(program(ALLOC, LOAD, SUM), GPU)[:2] == ([0], 1)


def test_a_kernel_takes_no_more_than_there_is() -> None:
    places, barriers, plan = planned(program(SUM, SUM, SUM), shared=256)
    assert (places, barriers, plan.shared_bytes, plan.fits) == ([0, 0, 0], 2, 256, True)
    places, barriers, plan = planned(program(SUM, SUM, SUM), shared=511)
    assert (places, barriers, plan.shared_bytes) == ([0, 0, 0], 2, 256)
    # What fits nowhere stays as it was, and is refused for the same bytes.
    _, _, plan = planned(program(SUM, MOVE, SUM), shared=32)
    assert not plan.fits


def test_memory_that_the_kernel_takes_anyway_is_free() -> None:
    places, barriers, plan = planned(program(MOVE, SUM, SUM, SUM), GPU)
    # Next to the conversion there is no room; its bytes are free behind the first sum.
    assert (places, barriers, plan.shared_bytes) == ([0, 0, 256, 0], 1, 4096)


def test_what_a_kernel_may_take() -> None:
    seen = View(32768, True)
    assert spare_bytes(64, seen, 128, 16) == 2048 - 64
    assert spare_bytes(4096 + 16, seen, 128, 16) == GRANULE - 16
    assert spare_bytes(4096, seen, 128, 16) == 0
    assert spare_bytes(32768 - 16, seen, 4096, 16) == 16
    assert spare_bytes(40000, seen, 128, 16) == 0


def test_parts_of_an_exchange_add_up() -> None:
    """Each type has a pool here; both grow, and so the second of them finds no room."""
    view, parts = View(4096, False), (ScratchPart(FloatType("f32"), 64), ScratchPart(IntegerType(8), 64))
    pools = [view.pool(part.type) for part in parts]
    before, ends = tuple((pool, pool + 64) for pool in pools), {pool: pool + 64 for pool in pools}
    for spare, offset in ((127, 0), (128, 64)):
        found = Room(view, apart=Apart(before=before, ends=ends, spare=spare)).place(*parts)
        assert [one.offset for one in found] == [pool + offset for pool in pools]


STEPS = st.recursive(
    st.sampled_from([SUM, SUM, MOVE, SCAN]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda some: ("for", *some)),
        st.tuples(st.just("if"), st.lists(inner, max_size=3).map(tuple), st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=5), st.sampled_from([CPU, GPU]), st.sampled_from([4096, 5120, 32768]))
def test_never_more_barriers_and_never_too_much_memory(steps: list, capabilities: Capabilities, shared: int) -> None:
    body = program(*steps)
    _, barriers, plan = planned(body, capabilities, shared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_plan, "_spread", lambda _kernel, chosen, *_: chosen)
        _, most, alone = planned(body, capabilities, shared)
    waits, all_waits = (
        sum(one.waits for found in made.plans.values() for one in found.scratch) for made in (plan, alone)
    )
    assert barriers + waits <= most + all_waits
    free = max(4096 if capabilities is CPU else 512, -(-alone.shared_bytes // GRANULE) * GRANULE)
    assert alone.fits == plan.fits and plan.shared_bytes <= max(alone.shared_bytes, min(free, shared))
    sizes, before = ([one.size for found in made.plans.values() for one in found.scratch] for made in (plan, alone))
    assert sizes == before
