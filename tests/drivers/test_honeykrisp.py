"""Mesa's driver for Apple's GPUs, on a machine without one: it can do what the profile says, and takes every example.

ASAHI_NOOP_DRM_SHIM names the library that plays the GPU; CONTRIBUTING.md says how to build it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES

from benchmarks.apple_shaders import COMPILER
from benchmarks.example_kernels import KERNELS
from benchmarks.mesa_shaders import Compiler

PROFILE = PROFILES[COMPILER.profile]


@pytest.fixture(scope="module")
def known(examples: Callable[[Compiler], dict[str, Any]]) -> dict[str, Any]:
    """What Honeykrisp says of the device and of all examples' kernels."""
    return examples(COMPILER)


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    device = known["device"]
    for name in ("driver", "subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations"):
        assert device[name] == getattr(PROFILE, name), name
    assert frozenset(device["features"]) == PROFILE.features


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert [one["module"].partition("-")[2] for one in known["shaders"]] == [kernel for _, kernel, _ in KERNELS]
    for one in known["shaders"]:
        assert one["instructions"] > 0 and one["registers"] <= 256, one


def test_little_is_spilled(known: dict[str, Any]) -> None:
    """Kernels have as many subgroups as keep a lane's part small: with half as many, attention spills 226 registers."""
    for one in known["shaders"]:
        assert one["spilled"] <= 40, one
    found = {one["module"].partition("-")[2]: one["spilled"] for one in known["shaders"]}
    assert not any(found[kernel] for kernel in ("add_kernel", "softmax_kernel", "layer_norm_kernel", "matmul_kernel"))
