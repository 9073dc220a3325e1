"""Where buffers lie, and what operations may take next to them."""

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.kernel_plan import KernelPlan, least_shared, plan_kernel
from triton.backends.spirv.planning.memory_pools import POOL, Room, ScratchPart, View, lowest_gap
from triton.backends.spirv.transforms.kernel_function import kernel_of, one_block
from triton.backends.spirv.transforms.schedule import Options
from triton.backends.spirv.ttgir.ir import Function, Module
from triton.backends.spirv.ttgir.parser import parse_module
from triton.backends.spirv.ttgir.types import FloatType, IntegerType

LAVAPIPE = PROFILES["lavapipe"]
EXPLICIT = replace(LAVAPIPE, features=LAVAPIPE.features | {"explicit_workgroup_layout"})
HEADER = """
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 8 : i32} {
"""
ARGUMENTS = "%r: tensor<16x16xf32, #rows>, %h: tensor<16x16xf16, #rows>, %a: i32, %c: i1"


def buffer(rows: int, element: str = "f32") -> str:
    return f"!ttg.memdesc<{rows}x16x{element}, #shared, #smem, mutable>"


def alloc(name: str, rows: int = 16, element: str = "f32") -> str:
    return f"%{name} = ttg.local_alloc : () -> {buffer(rows, element)}\n"


def use(name: str, rows: int = 16, element: str = "f32") -> str:
    tensor = f"tensor<{rows}x16x{element}, #columns>"
    return f"%{name}{name} = ttg.local_load %{name} : {buffer(rows, element)} -> {tensor}\n"


CONVERT = "%q = ttg.convert_layout %r : tensor<16x16xf32, #rows> -> tensor<16x16xf32, #columns>\n"
LOOP = "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\nscf.for %x = %z to %a step %o : i32 {{\n{}\n}}\n"


def parsed(body: str) -> tuple[Function, Module]:
    module = parse_module(f"{HEADER}tt.func public @k({ARGUMENTS}) {{\n{body}\ntt.return\n}}\n}}\n")
    one_block(module)
    return kernel_of(module), module


def planned(body: str, capabilities=EXPLICIT, shared: int = 32768) -> tuple[dict[str, int], KernelPlan, Function]:
    """The offset of each buffer by its name, and the plan."""
    kernel, module = parsed(body)
    plan = plan_kernel(module, replace(capabilities, shared_bytes=shared), Options()).plan
    found = {
        operation.result.name.lstrip("%"): plan.buffers[operation.result].first
        for operation in kernel.walk()
        if operation.name == "ttg.local_alloc"
    }
    return found, plan, kernel


def scratch(plan: KernelPlan) -> list[tuple[int, int]]:
    return [(one.offset, one.size) for made in plan.plans.values() for one in made.scratch]


def test_buffers_share_bytes_where_they_are_not_live_together() -> None:
    assert planned(alloc("m") + use("m") + alloc("n") + use("n"))[0] == {"m": 0, "n": 0}
    assert planned(alloc("m") + alloc("n") + use("m") + use("n"))[0] == {"m": 0, "n": 1024}


def test_a_buffer_that_a_loop_uses_is_live_to_its_end() -> None:
    inside = LOOP.format(use("m") + alloc("n") + use("n"))
    assert planned(alloc("m") + inside)[0] == {"m": 0, "n": 1024}
    own = LOOP.format(alloc("m") + use("m") + alloc("n") + use("n"))
    assert planned(own)[0] == {"m": 0, "n": 0}


def test_views_and_branches_count() -> None:
    view = f"%w = ttg.memdesc_trans %m {{order = array<i32: 1, 0>}} : {buffer(16)} -> {buffer(16)}\n"
    assert planned(alloc("m") + view + alloc("n") + use("n") + use("w"))[0] == {"m": 0, "n": 1024}
    both = f"scf.if %c {{\n{alloc('m')}{use('m')}}} else {{\n{alloc('n')}{use('n')}}}\n"
    assert planned(both)[0] == {"m": 0, "n": 0}


def test_an_operation_takes_the_lowest_bytes_that_are_free() -> None:
    _, plan, _ = planned(CONVERT + alloc("m") + use("m"))
    assert scratch(plan) == [(0, 1024)] and plan.shared_bytes == 1024
    offsets, plan, _ = planned(alloc("m") + CONVERT + use("m"))
    assert offsets == {"m": 0} and scratch(plan) == [(1024, 1024)] and plan.shared_bytes == 2048


def test_a_small_buffer_that_lives_long_leaves_the_rest_in_one_piece() -> None:
    """The small one below the large one, so that the conversion has the large one's bytes and what is above."""
    body = alloc("s", 8) + alloc("l", 32) + use("l", 32) + CONVERT.replace("16x16", "64x16").replace("%r", "%t")
    body = "%t = arith.constant dense<0.0> : tensor<64x16xf32, #rows>\n" + body + use("s", 8)
    offsets, plan, _ = planned(body)
    assert offsets == {"s": 0, "l": 512} and scratch(plan) == [(512, 4096)] and plan.shared_bytes == 4608


def test_a_conversion_goes_in_rounds_where_there_is_less() -> None:
    convert = CONVERT.replace("16x16", "64x16").replace("%r", "%t")
    body = f"%t = arith.constant dense<0.0> : tensor<64x16xf32, #rows>\n{alloc('m')}{convert}{use('m')}"
    assert scratch(planned(body)[1]) == [(1024, 4096)]
    _, plan, _ = planned(body, shared=1024 + 2048)
    assert plan.fits and scratch(plan) == [(1024, 2048)] and plan.shared_bytes == 3072
    # The bytes that it takes at least, a place for each invocation, are what the refusal says.
    _, plan, _ = planned(body, shared=1024 + 16)
    assert not plan.fits and plan.shared_bytes == 1024 + 32 * 4


@pytest.mark.parametrize(("capabilities", "total"), [(EXPLICIT, 1536), (LAVAPIPE, 1536)])
def test_types_without_a_common_block_lie_in_arrays_of_their_own(capabilities, total: int) -> None:
    store = f"ttg.local_store %h, %n : tensor<16x16xf16, #rows> -> {buffer(16, 'f16')}\n"
    body = alloc("m") + alloc("n", element="f16") + store + use("m") + use("n", element="f16")
    _, plan, _ = planned(body, capabilities)
    assert plan.shared_bytes == total
    pools = {access.start // POOL for made in plan.plans.values() for access in made.accesses}
    assert len(pools) == (1 if capabilities is EXPLICIT else 2)


def test_what_cannot_fit_is_known_from_its_buffers() -> None:
    filled = f"%m = ttg.local_alloc %r : (tensor<16x16xf32, #rows>) -> {buffer(16)}\n"
    other = filled.replace("%m", "%n")
    assert least_shared(parsed(filled + use("m") + other + use("n"))[0]) == 1024
    assert least_shared(parsed(filled + other + use("m") + use("n"))[0]) == 2048


def test_gaps() -> None:
    assert lowest_gap([], 0, 100) == 0
    assert lowest_gap([(0, 64), (96, 128)], 0, 32) == 64
    assert lowest_gap([(0, 64), (96, 128)], 0, 33) == 128
    assert lowest_gap([(0, 60), (0, 32)], 0, 8) == 64  # a multiple of 16
    room = Room(View(1024, True), {0: [(256, 512)]})
    assert room.free == 512
    first, second = room.place(ScratchPart(FloatType("f32"), 200), ScratchPart(IntegerType(32), 512))
    assert (first.offset, second.offset, first.waits) == (0, 512, False)
    assert room.after((first,)).place(ScratchPart(FloatType("f32"), 200))[0].waits
