"""The number of compute units, their threads and registers, from what drivers of each vendor tell."""

from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.capabilities import PROFILES
from triton.backends.spirv.launching.compile_only import CompileOnlyUtils, UnreportedProperty, device_properties
from triton.backends.spirv.runtime.device_choice import devices
from triton.backends.spirv.runtime.device_kind import ESTIMATED_COUNT, ComputeUnits
from triton.backends.spirv.runtime.vulkan.compute_units import STRUCTS, combine
from triton.backends.spirv.runtime.vulkan.loader import new
from triton.backends.spirv.system import usable_processors

NVIDIA = "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV"
AMD, AMD_ACTIVE = "VkPhysicalDeviceShaderCorePropertiesAMD", "VkPhysicalDeviceShaderCoreProperties2AMD"
ARM = "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM"

#: RADV's figures of a Navi 31: 6 engines of 2 arrays of 8 compute units, 768 registers of 64 lanes a SIMD.
NAVI31 = {
    "shaderEngineCount": 6,
    "shaderArraysPerEngineCount": 2,
    "computeUnitsPerShaderArray": 8,
    "simdPerComputeUnit": 2,
    "wavefrontsPerSimd": 16,
    "wavefrontSize": 64,
    "vgprsPerSimd": 768,
}


@pytest.mark.parametrize(
    ("profile", "told", "expected"),
    [
        ("nvidia-hopper", {NVIDIA: {"shaderSMCount": 132, "shaderWarpsPerSM": 64}}, ComputeUnits(132, 2048, 65536)),
        ("nvidia-hopper", {}, ComputeUnits(None, None, 65536)),
        ("amd-rdna3", {AMD: NAVI31}, ComputeUnits(96, 2048, 98304)),
        ("amd-rdna3", {AMD: NAVI31, AMD_ACTIVE: {"activeComputeUnitCount": 84}}, ComputeUnits(84, 2048, 98304)),
        ("amd-rdna3", {AMD: NAVI31, AMD_ACTIVE: {"activeComputeUnitCount": 0}}, ComputeUnits(96, 2048, 98304)),
        ("generic", {ARM: {"shaderCoreCount": 14, "shaderWarpsPerCore": 64}}, ComputeUnits(14, 2048, None)),
        ("intel-xe", {}, ComputeUnits(None, None, None)),
    ],
)
def test_what_drivers_tell(profile: str, told: dict[str, dict[str, int]], expected: ComputeUnits) -> None:
    known = PROFILES[profile]
    structs: dict[str, Any] = {name: SimpleNamespace(**figures) for name, figures in told.items()}
    units = combine(structs, known.driver, known.subgroup_size)
    assert units == expected
    properties = device_properties(known, units)
    assert properties["multiprocessor_count"] == (ESTIMATED_COUNT if units.estimated else expected.count)
    assert properties.get("max_num_regs") == expected.registers
    with pytest.raises(UnreportedProperty, match="mem_clock_rate"):
        properties["mem_clock_rate"]


@pytest.mark.parametrize("name", STRUCTS)
def test_the_structures_have_the_fields_that_are_read(name: str) -> None:
    """All figures of a zeroed structure are 0, which is not told."""
    assert STRUCTS[name][1](new(name), 32) == ComputeUnits()


@pytest.mark.parametrize("name", PROFILES)
def test_profiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_SPIRV_TARGET", name)
    properties = CompileOnlyUtils().get_device_properties()
    assert properties["multiprocessor_count"] == ESTIMATED_COUNT
    assert properties.get("max_num_regs") == (65536 if name.startswith(("nvidia", "nvk")) else None)


def test_a_cpus_threads() -> None:
    for device in devices():
        if device.kind == "cpu":
            assert device.compute_units == ComputeUnits(usable_processors())
