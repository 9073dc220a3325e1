"""How many compute units a device has and what one holds, as far as vendors' extensions report it.

Vulkan itself has no such figures. Programs use them to choose how many programs share the work, so that an estimate
serves where a driver tells nothing: it may cost time, and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...driver_quirks import DRIVERS, OTHER
from ...system import usable_processors
from ..device_kind import ComputeUnits
from .loader import Chain, vulkan


def _nvidia(properties: Any, subgroup_size: int) -> ComputeUnits:
    """VK_NV_shader_sm_builtins."""
    return ComputeUnits(properties.shaderSMCount or None, properties.shaderWarpsPerSM * subgroup_size or None)


def _amd(properties: Any, subgroup_size: int) -> ComputeUnits:
    """VK_AMD_shader_core_properties: figures of one SIMD. Its registers are counted by lane of a wavefront."""
    count = properties.shaderEngineCount * properties.shaderArraysPerEngineCount * properties.computeUnitsPerShaderArray
    lanes = properties.simdPerComputeUnit * properties.wavefrontSize
    return ComputeUnits(
        count or None, lanes * properties.wavefrontsPerSimd or None, lanes * properties.vgprsPerSimd or None
    )


def _amd_active(properties: Any, subgroup_size: int) -> ComputeUnits:
    """VK_AMD_shader_core_properties2: without the units that are switched off."""
    return ComputeUnits(properties.activeComputeUnitCount or None)


def _arm(properties: Any, subgroup_size: int) -> ComputeUnits:
    """VK_ARM_shader_core_builtins."""
    return ComputeUnits(properties.shaderCoreCount or None, properties.shaderWarpsPerCore * subgroup_size or None)


#: Structure → (the extension that defines it, what it tells). Of two that a device has, the later counts.
STRUCTS: dict[str, tuple[str, Callable[[Any, int], ComputeUnits]]] = {
    "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV": ("VK_NV_shader_sm_builtins", _nvidia),
    "VkPhysicalDeviceShaderCorePropertiesAMD": ("VK_AMD_shader_core_properties", _amd),
    "VkPhysicalDeviceShaderCoreProperties2AMD": ("VK_AMD_shader_core_properties2", _amd_active),
    "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM": ("VK_ARM_shader_core_builtins", _arm),
}


def combine(structs: dict[str, Any], driver: str, subgroup_size: int) -> ComputeUnits:
    """What the structures of a device tell, and its driver's row of driver_quirks.py where they do not tell the
    registers."""
    found = ComputeUnits()
    for name, properties in structs.items():
        told = STRUCTS[name][1](properties, subgroup_size)
        found = replace(found, **{key: value for key, value in vars(told).items() if value is not None})
    if found.registers is None:
        found = replace(found, registers=DRIVERS.get(driver, OTHER).unit_registers)
    return found


def compute_units(
    physical: Any, extensions: frozenset[str], kind: str, driver: str, subgroup_size: int
) -> ComputeUnits:
    """The compute units of a VkPhysicalDevice with these extensions."""
    if kind == "cpu":
        return ComputeUnits(usable_processors())
    names = [name for name, (extension, _) in STRUCTS.items() if extension in extensions]
    chain = Chain(("VkPhysicalDeviceProperties2", *names))
    vulkan().lib.vkGetPhysicalDeviceProperties2(physical, chain.head)
    return combine({name: chain[name] for name in names}, driver, subgroup_size)
