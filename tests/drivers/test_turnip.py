"""Qualcomm's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every example.

FREEDRENO_NOOP_DRM_SHIM names the library that plays the GPU; docs/internals/testing.md says how to build it.
"""

from __future__ import annotations

from typing import Any

from triton.backends.spirv.capabilities import PROFILES

from benchmarks.qualcomm_shaders import COMPILER
from tests.drivers.checks import assert_all_taken, assert_reported

PROFILE = PROFILES[COMPILER.profile]


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    """Its subgroups have 128 lanes by default, and 64 where a pipeline says so."""
    assert_reported(known["device"], PROFILE)


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert_all_taken(known["shaders"])
    for one in known["shaders"]:
        assert one["lanes"] == 64 and one["registers"] <= 48, one


def test_accesses_are_wide_and_little_is_spilled(known: dict[str, Any]) -> None:
    found = {one["module"].partition("-")[2]: one for one in known["shaders"]}
    assert found["add_kernel"]["accesses"] == found["add_kernel"]["wide"] == 3
    for kernel in ("add_kernel", "softmax_kernel", "layer_norm_kernel", "matmul_kernel", "persistent_kernel"):
        assert not found[kernel]["spilled"], kernel
