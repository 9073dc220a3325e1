"""Intel's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every example.

INTEL_NOOP_DRM_SHIM names the library that plays the GPU; docs/internals/testing.md says how to build it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.inspection import offline
from triton.backends.spirv.inspection.offline import NoMesa, processes

from benchmarks.intel_shaders import COMPILER
from tests.drivers.checks import assert_all_taken, assert_matrices_reported, assert_reported

PROFILE = PROFILES[COMPILER.profile]
#: What ANV has on DG2 only since a later version than 22.3.
LATER = {"matrices", "bfloat16_matrices"}


def test_a_shim_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(offline.NEWER_MESA, raising=False)
    monkeypatch.setenv("INTEL_NOOP_DRM_SHIM", str(tmp_path / "no_shim.so"))
    monkeypatch.setattr(
        offline.manifests, "installed", lambda: [offline.manifests.Manifest(Path("intel_icd.json"), "")]
    )
    with pytest.raises(NoMesa, match="no_shim.so is not there; docs/internals/testing.md says how to build it"):
        next(processes(PROFILE.driver, tmp_path))


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    """But for push constants, 256 bytes since Mesa 24 and 128 before, and shared memory, 48 KiB in 26 and 64 before."""
    device = known["device"]
    assert_reported(device, PROFILE, LATER, ("subgroup_size", "max_workgroup_invocations"))
    for name in ("push_constant_bytes", "shared_bytes"):
        assert device[name] >= getattr(PROFILE, name), name


def test_the_profiles_matrices_are_among_the_drivers(known: dict[str, Any]) -> None:
    if not known["device"]["matrices"]:
        pytest.skip(f"{known['device']['version']} has no cooperative matrices")
    assert_matrices_reported(known["device"], PROFILE)


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert_all_taken(known["shaders"])
    for one in known["shaders"]:
        assert one["lanes"] == PROFILE.subgroup_size, one


def test_a_matmul_keeps_most_of_its_accumulators_in_registers(known: dict[str, Any]) -> None:
    """It spilled 4,099 before kernels got more subgroups where lanes have few registers, and 101 while the next tiles
    were loaded ahead."""
    for one in known["shaders"]:
        if one["module"].endswith("-matmul_kernel"):
            assert one["spilled"] < 60, one


def test_dots_of_halves_are_matrix_instructions(known: dict[str, Any]) -> None:
    """The matmul of 64×64×32 has 8·8·2 products of fragments in 16 subgroups; attention of 64×64, head 64, eight times
    as many, in two loops."""
    halves = {"19-matmul_kernel": 8, "07-forward_kernel": 64}
    found = {one["module"]: one["matrix"] for one in known["shaders"] if one["module"] in halves}
    assert found == (halves if known["device"]["matrices"] else dict.fromkeys(halves, 0))
