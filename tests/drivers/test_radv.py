"""AMD's driver of Mesa, on a machine without such a GPU: it can do what the profile says, and takes every kernel of the
examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES

from benchmarks.amd_shaders import DRIVER, PROFILE, shaders
from benchmarks.example_kernels import KERNELS
from benchmarks.mesa_shaders import NoCompiler, compiled_examples, manifest

#: What RADV has on RDNA 3 only since a later version than 22.3.
LATER = {"float32_atomic_add"}


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    try:
        manifest(DRIVER)
    except NoCompiler as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What RADV says of the device and of all examples' kernels."""
    return shaders(compiled_examples(tmp_path_factory.mktemp("modules"), PROFILE))


def test_the_profile_is_what_the_driver_reports(known: dict[str, Any]) -> None:
    device, profile = known["device"], PROFILES[PROFILE]
    for name in ("driver", "subgroup_size", "shared_bytes", "push_constant_bytes", "max_workgroup_invocations"):
        assert device[name] == getattr(profile, name), name
    features = frozenset(device["features"])
    assert features <= profile.features and profile.features - features <= LATER


def test_every_kernel_is_taken(known: dict[str, Any]) -> None:
    assert [one["module"].partition("-")[2] for one in known["shaders"]] == [kernel for _, kernel, _ in KERNELS]
    for one in known["shaders"]:
        assert one["instructions"] > 0 and one["shared"] <= PROFILES[PROFILE].shared_bytes, one


def test_aligned_vectors_are_read_and_written_in_128_bits(known: dict[str, Any]) -> None:
    (add,) = [one for one in known["shaders"] if one["module"].endswith("-add_kernel")]
    assert (add["accesses"], add["spilled_vgprs"]) == ({"global_load_b128": 2, "global_store_b128": 1}, 0)


def test_a_matmul_keeps_its_accumulators_in_registers(known: dict[str, Any]) -> None:
    for one in known["shaders"]:
        if one["module"].endswith("-matmul_kernel"):
            assert one["spilled_vgprs"] == one["scratch"] == 0, one


def test_a_damaged_module_is_an_error(tmp_path: Path) -> None:
    module = tmp_path / "damaged.spv"
    module.write_bytes(b"\3\2\43\7" + bytes(100))
    with pytest.raises(ValueError, match="damaged.spv: .*damaged at word 5"):
        shaders([module])
