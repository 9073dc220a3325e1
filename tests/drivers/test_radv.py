"""AMD's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every kernel of the
examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES

from benchmarks.amd_shaders import COMPILER
from benchmarks.mesa_shaders import shaders
from tests.drivers.checks import LIMITS, assert_all_taken, assert_matrices_reported, assert_reported

PROFILE = PROFILES[COMPILER.profile]
#: What RADV has on RDNA 3 only since a later version than 22.3. Without matrices subgroups have its default of lanes.
LATER = {"float32_atomic_add", "matrices"}


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    device = known["device"]
    assert_reported(device, PROFILE, LATER, LIMITS[1:])
    assert device["subgroup_size"] == (PROFILE.subgroup_size if device["matrices"] else 64)


def test_the_profiles_matrices_are_among_the_drivers(known: dict[str, Any]) -> None:
    if not known["device"]["matrices"]:
        pytest.skip(f"{known['device']['version']} has no cooperative matrices")
    assert_matrices_reported(known["device"], PROFILE)


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert_all_taken(known["shaders"])
    for one in known["shaders"]:
        assert one["shared"] <= PROFILE.shared_bytes, one


def test_aligned_vectors_are_read_and_written_in_128_bits(known: dict[str, Any]) -> None:
    (add,) = [one for one in known["shaders"] if one["module"].endswith("-add_kernel")]
    assert (add["accesses"], add["wide"], add["spilled"]) == (6, 6, 0)


def test_a_matmul_keeps_its_accumulators_in_registers(known: dict[str, Any]) -> None:
    for one in known["shaders"]:
        if one["module"].endswith("-matmul_kernel"):
            assert one["spilled"] == one["scratch"] == 0, one


def test_dots_of_halves_are_matrix_instructions(known: dict[str, Any]) -> None:
    """The matmul of 64×64×32 has 4·4·2 products of fragments in four subgroups; attention as many a product again."""
    matrices = bool(known["device"]["matrices"])
    halves = {"19-matmul_kernel": 8, "07-forward_kernel": 32}
    found = {one["module"]: one["matrix"] for one in known["shaders"] if one["module"] in halves}
    assert found == (halves if matrices else dict.fromkeys(halves, 0))


def test_a_damaged_module_is_an_error(tmp_path: Path) -> None:
    module = tmp_path / "damaged.spv"
    module.write_bytes(b"\3\2\43\7" + bytes(100))
    with pytest.raises(ValueError, match="damaged.spv: .*damaged at word 5"):
        shaders([module], COMPILER)
