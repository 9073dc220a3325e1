"""How many subgroups a kernel gets."""
from __future__ import annotations

from dataclasses import replace

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.workgroup import subgroups

LAVAPIPE = PROFILES["lavapipe"]


def ttir(*shapes: str, dot: bool = False) -> str:
    lines = [f"%{number} = arith.addf %a, %b : tensor<{shape}>" for number, shape in enumerate(shapes)]
    return "\n".join([*lines, "%d = tt.dot %a, %b, %c : …"] if dot else lines)


@pytest.mark.parametrize(("shapes", "dot", "warps", "expected"), [
    ((), False, 4, 4),
    (("1024xf32", ), False, 4, 4),             # 32 elements a lane
    (("2048xf32", ), False, 4, 8),
    (("64x64xf32", "16xf32"), False, 4, 16),   # four times as many at most: a warp's 32 lanes
    (("64x64xf32", ), True, 4, 8),             # a dot may have 64
    (("128x128x!tt.ptr<f32>", ), True, 4, 16),
    (("128x128xf32", ), True, 8, 32),          # 256 invocations are the device's limit
    (("128x128xf32", ), True, 1, 4),
    (("1048576xf32", ), False, 32, 32),
    (("1048576xf32", ), False, 64, 64),        # too many: refused where the module is lowered
])
def test_small_subgroups_are_more(shapes: tuple[str, ...], dot: bool, warps: int, expected: int) -> None:
    assert subgroups(ttir(*shapes, dot=dot), warps, LAVAPIPE) == expected


@pytest.mark.parametrize("lanes", [32, 64])
def test_warps_are_subgroups_where_these_are_as_large(lanes: int) -> None:
    assert subgroups(ttir("65536xf32"), 4, replace(LAVAPIPE, subgroup_size=lanes)) == 4
