"""How many subgroups a kernel gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.workgroup import subgroups
from triton.compiler import ASTSource

LAVAPIPE = PROFILES["lavapipe"]


def ttir(*shapes: str, dot: bool = False) -> str:
    lines = [f"%{number} = arith.addf %a, %b : tensor<{shape}>" for number, shape in enumerate(shapes)]
    return "\n".join([*lines, "%d = tt.dot %a, %b, %c : …"] if dot else lines)


@pytest.mark.parametrize(
    ("shapes", "dot", "warps", "expected"),
    [
        ((), False, 4, 4),
        (("1024xf32",), False, 4, 4),  # 32 elements a lane
        (("2048xf32",), False, 4, 8),
        (("64x64xf32", "16xf32"), False, 4, 16),  # four times as many at most: a warp's 32 lanes
        (("64x64xf32",), True, 4, 8),  # a dot may have 64
        (("128x128x!tt.ptr<f32>",), True, 4, 16),
        (("128x128xf32",), True, 8, 32),  # 256 invocations are the device's limit
        (("128x128xf32",), True, 1, 4),
        (("1048576xf32",), False, 32, 32),
        (("1048576xf32",), False, 64, 64),  # too many: refused where the module is lowered
    ],
)
def test_small_subgroups_are_more(shapes: tuple[str, ...], dot: bool, warps: int, expected: int) -> None:
    assert subgroups(ttir(*shapes, dot=dot), warps, LAVAPIPE) == expected


@pytest.mark.parametrize("lanes", [32, 64])
def test_warps_are_subgroups_where_these_are_as_large(lanes: int) -> None:
    assert subgroups(ttir("65536xf32"), 4, replace(LAVAPIPE, subgroup_size=lanes)) == 4


@pytest.mark.parametrize(
    ("shapes", "dot", "warps", "expected"),
    [
        (("512xf32",), False, 4, 4),  # 4 elements a lane
        (("1024xf32",), False, 4, 8),
        (("64x64xf32",), True, 4, 16),  # a dot may have 8
        (("64x64xf32",), True, 1, 8),  # the lanes of a warp have as many registers as 256 of these
        (("128x128xf32",), False, 8, 32),  # 1,024 invocations are the device's limit
    ],
)
def test_lanes_with_few_registers_are_more(shapes: tuple[str, ...], dot: bool, warps: int, expected: int) -> None:
    assert subgroups(ttir(*shapes, dot=dot), warps, PROFILES["intel-xe"]) == expected


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
