"""The Vulkan devices of this machine, and what each can do."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...capabilities import REQUIRED, Capabilities
from ...driver_quirks import DRIVER_IDS, DRIVERS, OTHER, Driver
from ...field_reports import RAN_HERE, Care, Facts, care_for, kernel_version, version_of
from ...matrices import component_features
from ..device_kind import MatrixProperties
from ..ending import ENDING
from ..errors import DeviceUnavailable
from . import asking
from .compute_units import compute_units
from .device_features import (
    CAPABILITY_FEATURES,
    EXTENSIONS,
    FEATURE_STRUCTS,
    device_extensions,
    feature_chain,
    features_of,
    float_controls,
)
from .device_info import VulkanDeviceInfo
from .loader import Chain, Instance, instance, remedy, vulkan
from .matrix_properties import matrix_properties
from .twins import without_twins

#: VkPhysicalDeviceType → one of SORTS.
_KIND_OF_TYPE = {2: "discrete", 1: "integrated", 3: "virtual", 4: "cpu", 0: "other"}

_PROPERTY_STRUCTS = (
    "VkPhysicalDeviceProperties2",
    "VkPhysicalDeviceVulkan11Properties",
    "VkPhysicalDeviceVulkan12Properties",
    "VkPhysicalDeviceVulkan13Properties",
)
_COMPUTE_STAGE = 0x20
_IMPORT = "VK_EXT_external_memory_host"


def probe(instance: Instance, physical: Any) -> VulkanDeviceInfo:
    """What the VkPhysicalDevice, of ``instance``, can do."""
    vk = vulkan()
    ffi, lib = vk.ffi, vk.lib
    basic = ffi.new("VkPhysicalDeviceProperties*")
    lib.vkGetPhysicalDeviceProperties(physical, basic)
    api_version = ((basic.apiVersion >> 22) & 0x7F, (basic.apiVersion >> 12) & 0x3FF)
    name = ffi.string(basic.deviceName).decode(errors="replace")
    kind = _KIND_OF_TYPE.get(basic.deviceType, "other")
    if api_version < (1, 3):
        lacks_all = ("Vulkan 1.3",)
        return VulkanDeviceInfo(name, kind, "", "unknown", lacks_all, None, handle=physical, api_version=api_version)

    extensions = device_extensions(physical)
    chain = feature_chain(extensions)
    lib.vkGetPhysicalDeviceFeatures2(physical, chain.head)
    supported = frozenset(
        feature
        for struct, (extension, names) in FEATURE_STRUCTS.items()
        if extension is None or extension in extensions
        for feature in names
        if getattr(features_of(chain, struct), feature)
    )

    has_import = _IMPORT in extensions
    host_struct = "VkPhysicalDeviceExternalMemoryHostPropertiesEXT"
    properties = Chain((*_PROPERTY_STRUCTS, host_struct) if has_import else _PROPERTY_STRUCTS)
    lib.vkGetPhysicalDeviceProperties2(physical, properties.head)
    limits = properties["VkPhysicalDeviceProperties2"].properties.limits
    vulkan11 = properties["VkPhysicalDeviceVulkan11Properties"]
    vulkan13 = properties["VkPhysicalDeviceVulkan13Properties"]

    lacks = [feature for feature in REQUIRED if feature not in supported]
    chooses_size = bool(vulkan13.requiredSubgroupSizeStages & _COMPUTE_STAGE)
    sizes = vulkan13.minSubgroupSize, vulkan13.maxSubgroupSize
    if not chooses_size and sizes[0] != sizes[1] and "subgroupSizeControl" not in lacks:
        lacks.append("subgroupSizeControl in compute shaders")
    if not _compute_families(physical):
        lacks.append("a compute queue")
    vulkan12 = properties["VkPhysicalDeviceVulkan12Properties"]
    driver = DRIVER_IDS.get(vulkan12.driverID, "unknown")
    units = compute_units(physical, extensions, kind, driver, vulkan11.subgroupSize)
    features = frozenset(
        key for key, needs in CAPABILITY_FEATURES.items() if supported.issuperset(needs)
    ) | float_controls(vulkan12, supported)
    facts = Facts(
        driver=driver,
        version=version_of(driver, basic.driverVersion, ffi.string(vulkan12.driverInfo).decode(errors="replace")),
        name=name,
        kind=kind,
        vendor=basic.vendorID,
        system=platform.system(),
        kernel=kernel_version(platform.release()),
        least_lanes=sizes[0],
        most_lanes=sizes[1],
        mixed_dots=bool(vulkan13.integerDotProduct4x8BitPackedMixedSignednessAccelerated),
        features=features,
        unit_threads=units.threads,
    )
    care = care_for(facts)
    capabilities = None
    if not lacks:
        wanted = lanes_for(DRIVERS.get(driver, OTHER), "matrices" in features - care.left_out)
        subgroup_size = vulkan11.subgroupSize if wanted is None or not chooses_size else wanted
        subgroup_size = max(min(subgroup_size, sizes[1], care.most_lanes or sizes[1]), sizes[0])
        capabilities = Capabilities(
            driver=driver,
            subgroup_size=subgroup_size,
            shared_bytes=limits.maxComputeSharedMemorySize,
            push_constant_bytes=limits.maxPushConstantsSize,
            # Pipelines name their subgroup size, which has its own limit.
            max_workgroup_invocations=min(
                limits.maxComputeWorkGroupInvocations,
                limits.maxComputeWorkGroupSize[0],
                vulkan13.maxComputeWorkgroupSubgroups * subgroup_size,
            ),
            features=features - care.left_out,
        )
    imports = has_import and care.imports_host
    return VulkanDeviceInfo(
        name=name,
        kind=kind,
        uuid=bytes(vulkan11.deviceUUID).hex(),
        driver=driver,
        api_version=api_version,
        lacks=tuple(lacks),
        capabilities=capabilities,
        vulkan_features=supported,
        extensions=(extensions if imports else extensions - {_IMPORT}) & frozenset(EXTENSIONS),
        host_import_alignment=properties[host_struct].minImportedHostPointerAlignment if imports else 0,
        max_subgroups=vulkan13.maxComputeWorkgroupSubgroups,
        handle=physical,
        chooses_subgroup_size=chooses_size,
        driver_version=_driver_version(vulkan12, basic),
        matrices=_matrices(instance, physical, capabilities, care) if capabilities is not None else (),
        compute_units=units,
        facts=facts,
        care=care,
        luid=bytes(vulkan11.deviceLUID).hex() if vulkan11.deviceLUIDValid else "",
    )


def lanes_for(driver: Driver, matrices: bool) -> int | None:
    """How many lanes subgroups are to have on a driver, with or without matrix units; None: the device's default."""
    return (driver.matrix_lanes if matrices else None) or driver.lanes


def _matrices(
    instance: Instance, physical: Any, capabilities: Capabilities, care: Care
) -> tuple[MatrixProperties, ...]:
    if not (capabilities.has("matrices") and care.asks_matrices):
        return ()
    return tuple(
        one for one in matrix_properties(instance, physical) if component_features(one.types) <= capabilities.features
    )


def _driver_version(vulkan12: Any, basic: Any) -> str:
    text = vulkan().ffi.string(vulkan12.driverInfo).decode(errors="replace")
    return f"{text} {basic.driverVersion:#x}".strip()


def _families(physical: Any) -> dict[int, tuple[int, int]]:
    """Index → flags, and how many bits timestamps have, of the queue families."""
    vk = vulkan()
    count = vk.ffi.new("uint32_t*")
    vk.lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, vk.ffi.NULL)
    families = vk.ffi.new("VkQueueFamilyProperties[]", max(1, count[0]))
    vk.lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, families)
    return {
        index: (int(families[index].queueFlags), int(families[index].timestampValidBits)) for index in range(count[0])
    }


def _compute_families(physical: Any) -> dict[int, int]:
    """Index → flags of the queue families that take compute work."""
    compute = vulkan().VK_QUEUE_COMPUTE_BIT
    return {index: flags for index, (flags, _) in _families(physical).items() if flags & compute}


def best_family(families: dict[int, int], compute_only: bool) -> int | None:
    """The first of the families that take compute work, given with their flags, or with ``compute_only`` the first that
    takes no graphics, if there is one."""
    graphics = vulkan().VK_QUEUE_GRAPHICS_BIT
    without = [index for index, flags in families.items() if not flags & graphics] if compute_only else []
    return next(iter([*without, *families]), None)


def compute_queue_family(device: VulkanDeviceInfo) -> int:
    """Index of the queue family that kernels are submitted to."""
    family = best_family(_compute_families(device.handle), device.care.compute_only)
    if family is None:
        raise DeviceUnavailable(f"{device.describe()} has no compute queue")
    return family


def transfer_queue_family(device: VulkanDeviceInfo, compute: int) -> int:
    """Index of the queue family for copies beside kernels: one that does nothing else and has the same timestamps, on
    drivers that ran here; else that of the kernels."""
    return transfer_family(_families(device.handle), compute) if device.driver in RAN_HERE else compute


def transfer_family(families: dict[int, tuple[int, int]], compute: int) -> int:
    """The family of transfer_queue_family() among all, given with their flags and bits of timestamps."""
    vk = vulkan()
    for index, (flags, bits) in families.items():
        if flags & ~vk.VK_QUEUE_SPARSE_BINDING_BIT == vk.VK_QUEUE_TRANSFER_BIT and bits == families[compute][1]:
            return index
    return compute


def _physical_devices(loaded: Any) -> list[Any]:
    """Every VkPhysicalDevice of an Instance. Raises DeviceUnavailable."""
    try:
        return list(loaded.physical_devices())
    except RuntimeError as error:  # of the loader, where none of the drivers finds a device
        raise DeviceUnavailable(
            f"no Vulkan device was found: the drivers that are used have none ({error}); "
            + remedy("install Mesa's CPU driver")
        ) from None


def probed(opened: Instance) -> Iterator[VulkanDeviceInfo]:
    """Every device of an instance, in the loader's order. Raises DeviceUnavailable."""
    return (probe(opened, physical) for physical in _physical_devices(opened))


def again(device: VulkanDeviceInfo) -> tuple[Instance, VulkanDeviceInfo]:
    """The device in a new instance: drivers share what a device failed with among the devices of one
    instance. Mesa's CPU driver lets no kernel of it run while another one does. Raises DeviceUnavailable."""
    with asking.without(asking.left_out()):
        opened = Instance()
    for found in probed(opened):
        if (found.uuid, found.driver) == (device.uuid, device.driver):
            return opened, replace(device, handle=found.handle)
    raise DeviceUnavailable(f"{device.describe()} failed and has disappeared")


def devices() -> tuple[VulkanDeviceInfo, ...]:
    """All Vulkan devices, in the loader's order, each GPU once. Drivers that fail when they are asked are left out
    (asking.py). Raises DeviceUnavailable without a loader, and RuntimeError where the process is ending."""
    with ENDING.awaited():
        return without_twins(list(probed(instance())))
