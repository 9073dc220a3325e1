"""NVIDIA's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every example.

NOUVEAU_NOOP_DRM_SHIM names the library that plays the GPU; docs/internals/testing.md says how to build it.
"""

from __future__ import annotations

from typing import Any

from triton.backends.spirv.capabilities import PROFILES

from benchmarks.nvidia_shaders import COMPILER
from tests.drivers.checks import assert_all_taken, assert_matrices_reported, assert_reported

PROFILE = PROFILES[COMPILER.profile]


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    """It has one size of subgroups, and lets no pipeline name it."""
    assert_reported(known["device"], PROFILE)
    assert_matrices_reported(known["device"], PROFILE)


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert_all_taken(known["shaders"])
    for one in known["shaders"]:
        assert one["registers"] <= 255, one


def test_dots_of_halves_are_matrix_instructions(known: dict[str, Any]) -> None:
    """The matmul of 64×64×32 has 4·8·2 products of fragments in four subgroups; attention of 64×64, head 64, four times
    as many."""
    halves = {"19-matmul_kernel": 16, "07-forward_kernel": 64}
    found = {one["module"]: one["matrix"] for one in known["shaders"] if one["module"] in halves}
    assert found == halves
    assert not any(one["spilled"] for one in known["shaders"] if one["module"] in halves)
