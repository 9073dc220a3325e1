"""How many subgroups a kernel gets."""

from __future__ import annotations

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
        (128 * 128, True, 1, 8),  # more than the 256 registers of 32 lanes
        (64 * 128, True, 1, 4),
        (1048576, False, 32, 32),
        (1048576, False, 64, 64),  # too many: refused where the module is lowered
    ],
)
def test_small_subgroups_are_more(largest: int, dot: bool, warps: int, expected: int) -> None:
    assert subgroups(largest, dot, warps, LAVAPIPE) == expected


@pytest.mark.parametrize(
    ("largest", "dot", "exchanges", "profile", "expected"),
    [
        (64, False, 16, "lavapipe", 1),  # 8 elements a lane
        (128, False, 16, "lavapipe", 2),
        (512, False, 100, "lavapipe", 8),
        (64, False, 15, "lavapipe", 8),
        (64, True, 16, "lavapipe", 8),
        (64, False, 16, "nvidia-hopper", 8),  # whose warps run at once
    ],
)
def test_many_exchanges_of_small_tensors_have_fewer(
    largest: int, dot: bool, exchanges: int, profile: str, expected: int
) -> None:
    assert subgroups(largest, dot, 8, PROFILES[profile], exchanges) == expected


@pytest.mark.parametrize(
    ("elements", "dot", "profile", "expected"),
    [
        (8 * 4300, True, "lavapipe", 1),
        (8 * 4300 + 1, True, "lavapipe", 2),
        (5 * 8 * 4300, True, "lavapipe", 8),  # more than the 32 lanes of the warp
        (10**7, True, "lavapipe", 32),  # 256 invocations are the device's limit
        (10**7, False, "lavapipe", 1),  # element-by-element code is cut in strips
        (10**7, True, "intel-xe", 1),
    ],
)
def test_many_tensors_of_a_kernel_with_dots_have_more(elements: int, dot: bool, profile: str, expected: int) -> None:
    assert subgroups(16 * 16, dot, 1, PROFILES[profile], 0, elements) == expected


@pytest.mark.parametrize(
    ("accesses", "largest", "profile", "expected"),
    [
        (4 * 8 * 192, 1024, "lavapipe", 4),
        (4 * 8 * 192 + 1, 1024, "lavapipe", 8),
        (10**6, 1024, "lavapipe", 16),  # eight elements a lane are left
        (10**6, 1 << 20, "lavapipe", 32),  # 256 invocations are the device's limit
        (10**6, 1024, "nvidia-hopper", 4),
    ],
)
def test_many_accesses_one_by_one_have_more(accesses: int, largest: int, profile: str, expected: int) -> None:
    assert subgroups(largest, False, 4, PROFILES[profile], accesses=accesses) == expected


@triton.jit
def scattering_kernel(x_ptr, y_ptr, n, COUNT: tl.constexpr):
    i = tl.arange(0, 1024)
    x = tl.load(x_ptr + i)
    for round in tl.static_range(COUNT):
        place = tl.load(y_ptr + 1024 * round + i, mask=i < n)
        tl.atomic_add(x_ptr + place, tl.gather(x, place, 0))


@pytest.mark.parametrize(("count", "invocations"), [(2, 32), (3, 64), (5, 128)])
def test_accesses_one_by_one_are_counted(count: int, invocations: int) -> None:
    """A masked load, a gather and an atomic addition of 1,024 elements each time; a load of all is wide."""
    signature = {"x_ptr": "*i32", "y_ptr": "*i32", "n": "i32", "COUNT": "constexpr"}
    source = ASTSource(scattering_kernel, signature, {(3,): count})
    compiled = triton.compile(source, target=GPUTarget("spirv", LAVAPIPE.arch(), 8))
    assert compiled.metadata.workgroup_size == invocations


def test_no_more_than_reductions_can_combine() -> None:
    narrow = replace(LAVAPIPE, subgroup_size=4, max_workgroup_invocations=1024)
    assert subgroups(16 * 16, True, 1, narrow, 0, 10**7) == 16


@triton.jit
def repeating_kernel(x_ptr, y_ptr, COUNT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    for _ in tl.static_range(COUNT):
        x -= tl.sum(x)
    tl.store(y_ptr + tl.arange(0, 64), x)


@pytest.mark.parametrize(("count", "invocations"), [(15, 32), (16, 8)])
def test_exchanges_are_counted_in_the_kernel(count: int, invocations: int) -> None:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "COUNT": "constexpr"}
    source = ASTSource(repeating_kernel, signature, {(2,): count})
    compiled = triton.compile(source, target=GPUTarget("spirv", LAVAPIPE.arch(), 8))
    assert compiled.metadata.workgroup_size == invocations


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
def powers_kernel(x_ptr, y_ptr, COUNT: tl.constexpr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + at)
    for _ in tl.static_range(COUNT):
        x = tl.exp(-tl.dot(x, x))
    tl.store(y_ptr + at, x)


@pytest.mark.parametrize(("count", "invocations"), [(4, 8), (40, 16), (80, 32)])
def test_all_tensors_of_the_kernel_are_counted(count: int, invocations: int) -> None:
    """A dot, which counts thrice, a negation and an exponential of 256 elements each time."""
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "COUNT": "constexpr"}
    source = ASTSource(powers_kernel, signature, {(2,): count})
    options = {"num_warps": 1}
    compiled = triton.compile(source, target=GPUTarget("spirv", LAVAPIPE.arch(), 8), options=options)
    assert compiled.metadata.workgroup_size == invocations


@triton.jit
def pairs_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    both = at[:, None] * N + at[None, :]
    tl.store(y_ptr + both, tl.dot(tl.load(x_ptr + both), tl.load(x_ptr + both)))


def test_the_largest_tensor_is_found_in_the_kernel() -> None:
    source = ASTSource(pairs_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "constexpr"}, {(2,): 64})
    compiled = triton.compile(source, target=GPUTarget("spirv", LAVAPIPE.arch(), 8))
    assert compiled.metadata.workgroup_size == 8 * subgroups(64 * 64, True, 4, LAVAPIPE)
