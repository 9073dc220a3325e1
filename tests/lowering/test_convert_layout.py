"""ttg.convert_layout: nothing, register moves, shuffles or shared memory."""

from __future__ import annotations

from dataclasses import replace

from triton.backends.spirv.capabilities import PROFILES

from tests.lowering.harness import compile_body, disassemble

POINTERS = ", ".join(f"%{name}: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}" for name in "pq")

GPU = replace(PROFILES["nvidia-hopper"], subgroup_size=8)


def conversion(source: str, target: str, size: int, capabilities=PROFILES["lavapipe"], attributes: str = "") -> str:
    """A kernel that loads in one layout and stores in the other, elsewhere."""
    tensor = f"tensor<{size}x!tt.ptr<f32>, "
    body = f"""    %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32, {source}>
    %s = tt.splat %p : !tt.ptr<f32> -> {tensor}{source}>
    %a = tt.addptr %s, %r : {tensor}{source}>, tensor<{size}xi32, {source}>
    %v = tt.load %a : {tensor}{source}>
    %w = ttg.convert_layout %v {attributes} : tensor<{size}xf32, {source}> -> tensor<{size}xf32, {target}>
    %r2 = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32, {target}>
    %s2 = tt.splat %q : !tt.ptr<f32> -> {tensor}{target}>
    %a2 = tt.addptr %s2, %r2 : {tensor}{target}>, tensor<{size}xi32, {target}>
    tt.store %a2, %w : {tensor}{target}>"""
    shared = 4 * size if attributes else 0
    return disassemble(compile_body(body, POINTERS, shared, capabilities))


def one_warp(size: int) -> str:
    """A blocked layout whose four warps hold copies, so that elements move within warps alone."""
    return (
        f"#ttg.slice<{{dim = 1, parent = #ttg.blocked<{{sizePerThread = [{size}, 1], threadsPerWarp = [8, 1], "
        "warpsPerCTA = [1, 4], order = [0, 1]}>}>"
    )


SCRATCH = "{allocation.offset = 0 : i32, allocation.size = 1024 : i32}"


def test_between_warps_through_shared_memory(filecheck):
    filecheck(
        conversion("#one", "#vec8", 256, GPU, SCRATCH),
        "CHECK: OpStore\nCHECK: OpControlBarrier\nCHECK: OpLoad\nCHECK-NOT: OpGroupNonUniformShuffle %\n",
    )


def test_within_warps_by_shuffles(filecheck):
    filecheck(
        conversion(one_warp(1), one_warp(4), 32, GPU),
        "CHECK: OpGroupNonUniformShuffle %\nCHECK-NOT: OpControlBarrier\nCHECK: OpReturn\n",
    )


def test_shuffles_give_way_where_the_driver_makes_too_much_of_them(filecheck):
    filecheck(
        conversion(one_warp(1), one_warp(4), 512), "CHECK-NOT: OpGroupNonUniformShuffle %\nCHECK: OpControlBarrier\n"
    )
    filecheck(
        conversion(one_warp(1), one_warp(4), 512, GPU),
        "CHECK-NOT: OpControlBarrier\nCHECK: OpGroupNonUniformShuffle %\nCHECK-NOT: OpControlBarrier\n",
    )
    filecheck(conversion(one_warp(1), one_warp(4), 32), "CHECK: OpGroupNonUniformShuffle %\n")


def test_warps_take_turns_where_registers_do_not_say_the_round(filecheck):
    """256 elements through the memory of 64: both layouts' lanes and warps hold all bits between them."""
    text = conversion("#one", "#vec8", 256, replace(GPU, shared_bytes=256), SCRATCH)
    filecheck(text, "CHECK: OpIEqual\nCHECK: OpSelectionMerge\nCHECK: OpStore\nCHECK: OpControlBarrier\n")
    assert text.count("OpControlBarrier") == 7
