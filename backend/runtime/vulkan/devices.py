"""The Vulkan devices of this machine, and what each can do."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...capabilities import REQUIRED, Capabilities
from ...drivers import DRIVER_IDS, DRIVERS, OTHER
from ...field_reports import NO_CARE, Care, Facts, care_for, kernel_version, version_of
from ..device_kind import DeviceInfo, MatrixProperties
from ..ending import ENDING
from ..errors import VulkanUnavailable
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
from .loader import Chain, Instance, instance, remedy, vulkan
from .matrix_properties import matrix_properties
from .memory_heaps import device_memory

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


@dataclass(frozen=True, eq=False, repr=False)
class VulkanDeviceInfo(DeviceInfo):
    """A Vulkan device as probed.

    ``handle`` is its VkPhysicalDevice. ``max_subgroups`` is maxComputeWorkgroupSubgroups. ``chooses_subgroup_size``:
    pipelines may name the size of their subgroups; where they may not, there is one size only. ``facts`` and ``care``:
    what is asked about its driver in field_reports.py, and what follows.
    """

    api: ClassVar[str] = "Vulkan"

    handle: Any = None
    api_version: tuple[int, int] = (0, 0)
    vulkan_features: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    max_subgroups: int = 0
    chooses_subgroup_size: bool = True
    facts: Facts | None = None
    care: Care = NO_CARE

    @property
    def interface(self) -> str:
        """Such as ``Vulkan 1.3``."""
        return f"{self.api} {self.api_version[0]}.{self.api_version[1]}"

    def details(self) -> dict[str, Any]:
        """As DeviceInfo's: the version of Vulkan, and the extensions that are used."""
        return {"vulkan": self.interface.removeprefix(f"{self.api} "), "extensions": sorted(self.extensions)}

    def memory(self) -> tuple[int | None, int]:
        """As DeviceInfo's, by VK_EXT_memory_budget."""
        return device_memory(self.handle)


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
    if _compute_queue_family(physical) is None:
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
        traits = DRIVERS.get(driver, OTHER)
        wanted = (traits.matrix_lanes if "matrices" in features - care.left_out else None) or traits.lanes
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
    )


def _matrices(
    instance: Instance, physical: Any, capabilities: Capabilities, care: Care
) -> tuple[MatrixProperties, ...]:
    if not (capabilities.has("matrices") and care.asks_matrices):
        return ()
    return tuple(
        one
        for one in matrix_properties(instance, physical)
        if "bf16" not in one.types or capabilities.has("bfloat16_matrices")
    )


def _driver_version(vulkan12: Any, basic: Any) -> str:
    text = vulkan().ffi.string(vulkan12.driverInfo).decode(errors="replace")
    return f"{text} {basic.driverVersion:#x}".strip()


def _compute_queue_family(physical: Any) -> int | None:
    vk = vulkan()
    count = vk.ffi.new("uint32_t*")
    vk.lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, vk.ffi.NULL)
    families = vk.ffi.new("VkQueueFamilyProperties[]", max(1, count[0]))
    vk.lib.vkGetPhysicalDeviceQueueFamilyProperties(physical, count, families)
    for index in range(count[0]):
        if families[index].queueFlags & vk.VK_QUEUE_COMPUTE_BIT:
            return index
    return None


def compute_queue_family(device: VulkanDeviceInfo) -> int:
    """Index of the queue family that kernels are submitted to."""
    family = _compute_queue_family(device.handle)
    if family is None:
        raise VulkanUnavailable(f"{device.describe()} has no compute queue")
    return family


def _physical_devices(loaded: Any) -> list[Any]:
    """Every VkPhysicalDevice of an Instance. Raises VulkanUnavailable."""
    try:
        return list(loaded.physical_devices())
    except RuntimeError as error:  # of the loader, where none of the drivers finds a device
        raise VulkanUnavailable(
            f"no Vulkan device was found: the drivers that are used have none ({error}); "
            + remedy("install Mesa's CPU driver")
        ) from None


def again(device: VulkanDeviceInfo) -> tuple[Instance, VulkanDeviceInfo]:
    """The same device in a new instance: drivers share what a device failed with among the devices of one
    instance. Mesa's CPU driver lets no kernel of it run while another one does. Raises VulkanUnavailable."""
    opened = Instance()
    for physical in _physical_devices(opened):
        found = probe(opened, physical)
        if found.uuid == device.uuid:
            return opened, replace(device, handle=physical)
    raise VulkanUnavailable(f"{device.describe()} failed and has disappeared")


def devices() -> tuple[VulkanDeviceInfo, ...]:
    """All Vulkan devices, in the loader's order. Raises VulkanUnavailable without a loader, and
    RuntimeError where the process is ending."""
    with ENDING.awaited():
        opened = instance()
        return tuple(probe(opened, physical) for physical in _physical_devices(opened))
