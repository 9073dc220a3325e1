"""NVIDIA's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every example.

NOUVEAU_NOOP_DRM_SHIM names the library that plays the GPU; CONTRIBUTING.md says how to build it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES

from benchmarks.example_kernels import KERNELS
from benchmarks.mesa_shaders import Compiler
from benchmarks.nvidia_shaders import COMPILER

PROFILE = PROFILES[COMPILER.profile]


@pytest.fixture(scope="module")
def known(examples: Callable[[Compiler], dict[str, Any]]) -> dict[str, Any]:
    """What NVK says of the device and of all examples' kernels."""
    return examples(COMPILER)


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    """It has one size of subgroups, and lets no pipeline name it."""
    device = known["device"]
    for name in ("driver", "subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations"):
        assert device[name] == getattr(PROFILE, name), name
    assert frozenset(device["features"]) == PROFILE.features
    reported = {(one["m"], one["n"], one["k"], *one["types"]) for one in device["matrices"]}
    assert {(one.m, one.n, one.k, *one.types) for one in PROFILE.matrices} <= reported


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert [one["module"].partition("-")[2] for one in known["shaders"]] == [kernel for _, kernel, _ in KERNELS]
    for one in known["shaders"]:
        assert one["instructions"] > 0 and one["registers"] <= 255, one


def test_dots_of_halves_are_matrix_instructions(known: dict[str, Any]) -> None:
    """The matmul of 64×64×32 has 4·8·2 products of fragments in four subgroups; attention of 64×64, head 64, four times
    as many."""
    halves = {"19-matmul_kernel": 16, "07-forward_kernel": 64}
    found = {one["module"]: one["matrix"] for one in known["shaders"] if one["module"] in halves}
    assert found == halves
    assert not any(one["spilled"] for one in known["shaders"] if one["module"] in halves)
