"""How many subgroups a kernel gets."""

from dataclasses import replace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.planning.workgroup import matrix_warps, subgroups
from triton.compiler import ASTSource

LAVAPIPE = PROFILES["lavapipe"]


@pytest.mark.parametrize(
    ("largest", "dot", "warps", "expected"),
    [
        (1, False, 4, 4),
        (1024, False, 4, 4),  # 32 elements a lane
        (2048, False, 4, 8),
        (64 * 64, False, 4, 16),  # four times as many at most: a warp's 32 lanes
        (64 * 64, True, 4, 8),  # a dot may have 64
        (128 * 128, True, 4, 16),
        (128 * 128, True, 8, 32),  # 256 invocations are the device's limit
        (128 * 128, True, 1, 4),  # a warp's 32 lanes
        (64 * 128, True, 1, 4),
        (1048576, False, 32, 32),
        (1048576, False, 64, 64),  # too many: refused where the module is lowered
    ],
)
def test_small_subgroups_are_more(largest: int, dot: bool, warps: int, expected: int) -> None:
    assert subgroups(largest, dot, warps, LAVAPIPE) == expected


def test_reductions_combine_what_all_subgroups_found_in_two_exchanges() -> None:
    """Upstream's allocation ends in an assertion with more subgroups along a reduced axis than lanes times lanes."""
    narrow = replace(LAVAPIPE, subgroup_size=4)  # LP_NATIVE_VECTOR_WIDTH=128
    assert subgroups(8192, False, 8, narrow) == 16
    assert subgroups(8192, False, 32, narrow) == 16  # fewer than asked for


@pytest.mark.parametrize("lanes", [32, 64])
def test_warps_are_subgroups_where_these_are_as_large(lanes: int) -> None:
    assert subgroups(32768, False, 4, replace(LAVAPIPE, subgroup_size=lanes)) == 4


@pytest.mark.parametrize(
    ("largest", "dot", "warps", "expected"),
    [
        (512, False, 4, 4),  # 4 elements a lane
        (1024, False, 4, 8),
        (64 * 64, True, 4, 16),  # a dot may have 8
        (64 * 64, True, 1, 8),  # the lanes of a warp have as many registers as 256 of these
        (128 * 128, False, 8, 32),  # 1,024 invocations are the device's limit
    ],
)
def test_lanes_with_few_registers_are_more(largest: int, dot: bool, warps: int, expected: int) -> None:
    assert subgroups(largest, dot, warps, PROFILES["intel-xe"]) == expected


@pytest.mark.parametrize(
    ("dots", "profile", "expected"),
    [
        (1, "intel-xe", 16),
        (2, "intel-xe", 8),  # of 16 some would compute the same rows
        (1, "nvidia-hopper", 4),
        (2, "amd-rdna3", 4),
        (2, "lavapipe-26", 4),  # a lane holds the registers of four
    ],
)
def test_warps_on_matrix_units(dots: int, profile: str, expected: int) -> None:
    assert matrix_warps(64 * 64, dots, 4, PROFILES[profile]) == expected


@triton.jit
def column_sums_kernel(x_ptr, y_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(y_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


def test_there_are_fewer_where_more_take_too_much_memory() -> None:
    source = ASTSource(
        column_sums_kernel,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "ROWS": "constexpr", "COLUMNS": "constexpr"},
        {(2,): 128, (3,): 64},
    )

    def compiled(shared_bytes: int) -> tuple[int, int]:
        capabilities = replace(LAVAPIPE, shared_bytes=shared_bytes)
        metadata = triton.compile(source, target=GPUTarget("spirv", capabilities.arch(), 8)).metadata
        return metadata.workgroup_size, metadata.shared

    size, shared = compiled(1 << 20)
    fewer, smaller = compiled(shared - 1)
    assert size == 128 and fewer < size and smaller < shared


@triton.jit
def pairs_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    both = at[:, None] * N + at[None, :]
    tl.store(y_ptr + both, tl.dot(tl.load(x_ptr + both), tl.load(x_ptr + both)))


def test_the_largest_tensor_is_found_in_the_kernel() -> None:
    source = ASTSource(pairs_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "constexpr"}, {(2,): 64})
    compiled = triton.compile(source, target=GPUTarget("spirv", LAVAPIPE.arch(), 8))
    assert compiled.metadata.workgroup_size == 8 * subgroups(64 * 64, True, 4, LAVAPIPE)
