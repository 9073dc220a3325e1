"""Intel's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every example.

INTEL_NOOP_DRM_SHIM names the library that plays the GPU; benchmarks/intel_shaders.py says how to build it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES

from benchmarks.example_kernels import KERNELS
from benchmarks.intel_shaders import DRIVER, PROFILE, shaders
from benchmarks.mesa_shaders import NoCompiler, compiled_examples, manifest


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ANV says of the device and of all examples' kernels."""
    shim = os.environ.get("INTEL_NOOP_DRM_SHIM", "")
    if not shim:
        pytest.skip("INTEL_NOOP_DRM_SHIM names no library that plays an Intel GPU")
    try:
        manifest(DRIVER)
    except NoCompiler as error:
        pytest.skip(str(error))
    return shaders(compiled_examples(tmp_path_factory.mktemp("modules"), PROFILE), Path(shim))


def test_a_shim_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCompiler, match="no_shim.so is not there; see python -m benchmarks.intel_shaders --help"):
        shaders([], tmp_path / "no_shim.so")


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    """But for push constants: 256 bytes since Mesa 24, 128 before."""
    device, profile = known["device"], PROFILES[PROFILE]
    for name in ("driver", "subgroup_size", "shared_bytes", "max_workgroup_invocations"):
        assert device[name] == getattr(profile, name), name
    assert frozenset(device["features"]) == profile.features
    assert device["push_constant_bytes"] >= profile.push_constant_bytes


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert [one["module"].partition("-")[2] for one in known["shaders"]] == [kernel for _, kernel, _ in KERNELS]
    for one in known["shaders"]:
        assert one["instructions"] > 0 and one["lanes"] == PROFILES[PROFILE].subgroup_size, one


def test_a_matmul_keeps_most_of_its_accumulators_in_registers(known: dict[str, Any]) -> None:
    """It spilled 4,099 before kernels got more subgroups where lanes have few registers."""
    for one in known["shaders"]:
        if one["module"].endswith("-matmul_kernel"):
            assert one["spills"] < 200, one
