"""Mesa's driver for Apple's GPUs, on a machine without one: it can do what the profile says, and takes every example.

ASAHI_NOOP_DRM_SHIM names the library that plays the GPU; docs/internals/testing.md says how to build it.
"""

from __future__ import annotations

from typing import Any

from triton.backends.spirv.capabilities import PROFILES

from benchmarks.apple_shaders import COMPILER
from tests.drivers.checks import assert_all_taken, assert_reported

PROFILE = PROFILES[COMPILER.profile]


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    assert_reported(known["device"], PROFILE)


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert_all_taken(known["shaders"])
    for one in known["shaders"]:
        assert one["registers"] <= 256, one


def test_little_is_spilled(known: dict[str, Any]) -> None:
    """Kernels have as many subgroups as keep a lane's part small: with half as many, attention spills 226 registers."""
    for one in known["shaders"]:
        assert one["spilled"] <= 40, one
    found = {one["module"].partition("-")[2]: one["spilled"] for one in known["shaders"]}
    assert not any(found[kernel] for kernel in ("add_kernel", "softmax_kernel", "layer_norm_kernel", "matmul_kernel"))
