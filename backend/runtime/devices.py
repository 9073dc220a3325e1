"""The Vulkan devices of this machine: what each can do, and which one is used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .. import settings
from ..capabilities import FLOAT_CONTROLS, REQUIRED, Capabilities
from ..drivers import DRIVERS, OTHER
from .compute_units import ComputeUnits, compute_units
from .errors import VulkanUnavailable
from .loader import INSTALL, Chain, check, instance, remedy, vulkan
from .matrix_properties import MatrixProperties, matrix_properties

#: Kinds of VkPhysicalDeviceType, best first.
KINDS = ("discrete", "integrated", "virtual", "cpu", "other")
_KIND_OF_TYPE = {2: "discrete", 1: "integrated", 3: "virtual", 4: "cpu", 0: "other"}

#: Extensions that let another API use a device's memory and order its work.
SHARING_EXTENSIONS = ("VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd")

#: Extensions that are enabled where the device has them.
EXTENSIONS = (
    "VK_EXT_external_memory_host",
    "VK_KHR_workgroup_memory_explicit_layout",
    "VK_EXT_shader_atomic_float",
    "VK_KHR_shader_clock",
    "VK_NV_shader_sm_builtins",
    "VK_KHR_cooperative_matrix",
    "VK_KHR_shader_bfloat16",
    "VK_KHR_pipeline_executable_properties",
    *SHARING_EXTENSIONS,
)

#: Feature structure → (the extension that defines it, the features that are enabled where the device has them).
FEATURE_STRUCTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "VkPhysicalDeviceFeatures2": (None, ("shaderFloat64", "shaderInt64", "shaderInt16", "sparseBinding")),
    "VkPhysicalDeviceVulkan11Features": (
        None,
        (
            "storageBuffer16BitAccess",
            "uniformAndStorageBuffer16BitAccess",
            "storagePushConstant16",
            "variablePointersStorageBuffer",
            "variablePointers",
        ),
    ),
    "VkPhysicalDeviceVulkan12Features": (
        None,
        (
            "storageBuffer8BitAccess",
            "uniformAndStorageBuffer8BitAccess",
            "storagePushConstant8",
            "shaderFloat16",
            "shaderInt8",
            "shaderBufferInt64Atomics",
            "shaderSharedInt64Atomics",
            "scalarBlockLayout",
            "shaderSubgroupExtendedTypes",
            "hostQueryReset",
            "timelineSemaphore",
            "bufferDeviceAddress",
            "vulkanMemoryModel",
            "vulkanMemoryModelDeviceScope",
            "vulkanMemoryModelAvailabilityVisibilityChains",
        ),
    ),
    "VkPhysicalDeviceVulkan13Features": (
        None,
        (
            "subgroupSizeControl",
            "computeFullSubgroups",
            "synchronization2",
            "maintenance4",
            "shaderZeroInitializeWorkgroupMemory",
            "shaderIntegerDotProduct",
        ),
    ),
    "VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR": (
        "VK_KHR_workgroup_memory_explicit_layout",
        (
            "workgroupMemoryExplicitLayout",
            "workgroupMemoryExplicitLayoutScalarBlockLayout",
            "workgroupMemoryExplicitLayout8BitAccess",
            "workgroupMemoryExplicitLayout16BitAccess",
        ),
    ),
    "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT": (
        "VK_EXT_shader_atomic_float",
        (
            "shaderBufferFloat32Atomics",
            "shaderBufferFloat32AtomicAdd",
            "shaderBufferFloat64Atomics",
            "shaderBufferFloat64AtomicAdd",
            "shaderSharedFloat32Atomics",
            "shaderSharedFloat32AtomicAdd",
            "shaderSharedFloat64Atomics",
            "shaderSharedFloat64AtomicAdd",
        ),
    ),
    "VkPhysicalDeviceShaderClockFeaturesKHR": ("VK_KHR_shader_clock", ("shaderDeviceClock",)),
    "VkPhysicalDeviceShaderSMBuiltinsFeaturesNV": ("VK_NV_shader_sm_builtins", ("shaderSMBuiltins",)),
    "VkPhysicalDeviceCooperativeMatrixFeaturesKHR": ("VK_KHR_cooperative_matrix", ("cooperativeMatrix",)),
    "VkPhysicalDeviceShaderBfloat16FeaturesKHR": (
        "VK_KHR_shader_bfloat16",
        ("shaderBFloat16Type", "shaderBFloat16CooperativeMatrix"),
    ),
    "VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR": (
        "VK_KHR_pipeline_executable_properties",
        ("pipelineExecutableInfo",),
    ),
}

#: Key of capabilities.FEATURES → the Vulkan features that it needs, all of them.
CAPABILITY_FEATURES: dict[str, tuple[str, ...]] = {
    "float16": ("shaderFloat16",),
    "float64": ("shaderFloat64",),
    "int8": ("shaderInt8",),
    "int16": ("shaderInt16",),
    "storage8": ("storageBuffer8BitAccess",),
    "storage16": ("storageBuffer16BitAccess",),
    "explicit_workgroup_layout": FEATURE_STRUCTS["VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR"][1],
    "int64_atomics": ("shaderBufferInt64Atomics",),
    "device_clock": ("shaderDeviceClock",),
    "multiprocessor_built_ins": ("shaderSMBuiltins",),
    "float32_atomic_add": ("shaderBufferFloat32AtomicAdd",),
    "float64_atomic_add": ("shaderBufferFloat64AtomicAdd",),
    "matrices": ("cooperativeMatrix",),
    "bfloat16_matrices": ("cooperativeMatrix", "shaderBFloat16Type", "shaderBFloat16CooperativeMatrix"),
}

_PROPERTY_STRUCTS = (
    "VkPhysicalDeviceProperties2",
    "VkPhysicalDeviceVulkan11Properties",
    "VkPhysicalDeviceVulkan12Properties",
    "VkPhysicalDeviceVulkan13Properties",
)
_COMPUTE_STAGE = 0x20


@dataclass(frozen=True, eq=False)
class DeviceInfo:
    """A Vulkan device as probed. ``lacks`` names what it lacks of the required; ``capabilities`` is None then.

    Two devices may be alike in everything, their UUID included: only the object tells them apart.

    ``host_import_alignment`` is minImportedHostPointerAlignment in bytes, 0 where host memory cannot be imported.
    ``max_subgroups`` is maxComputeWorkgroupSubgroups. ``chooses_subgroup_size``: pipelines may name the size of their
    subgroups; where they may not, there is one size only. ``driver_version`` is the driver's own text. ``matrices`` is
    what it reports of its matrix units; those that kernels may use are in measured.capabilities_of().
    """

    name: str
    kind: str
    uuid: str
    driver: str
    api_version: tuple[int, int]
    lacks: tuple[str, ...]
    capabilities: Capabilities | None
    vulkan_features: frozenset[str]
    extensions: frozenset[str]
    host_import_alignment: int
    max_subgroups: int
    handle: Any = field(repr=False)
    driver_version: str = ""
    chooses_subgroup_size: bool = True
    matrices: tuple[MatrixProperties, ...] = ()
    compute_units: ComputeUnits = ComputeUnits()

    def describe(self) -> str:
        """One line: name, kind, and what it lacks, if anything."""
        lacking = f", lacks {', '.join(self.lacks)}" if self.lacks else ""
        return f"{self.name} ({self.kind}, Vulkan {self.api_version[0]}.{self.api_version[1]}{lacking})"


def feature_chain(extensions: frozenset[str], enabled: frozenset[str] = frozenset()) -> Chain:
    """The feature structures that a device with these extensions knows, with the features ``enabled`` set."""
    structs = [name for name, (extension, _) in FEATURE_STRUCTS.items() if extension is None or extension in extensions]
    chain = Chain(structs)
    for name in structs:
        for feature in FEATURE_STRUCTS[name][1]:
            if feature in enabled:
                setattr(_features_of(chain, name), feature, 1)
    return chain


def _features_of(chain: Chain, struct: str) -> Any:
    return chain[struct].features if struct == "VkPhysicalDeviceFeatures2" else chain[struct]


def device_extensions(physical: Any) -> frozenset[str]:
    """The names of all extensions of a VkPhysicalDevice."""
    vk = vulkan()
    ffi = vk.ffi
    count = ffi.new("uint32_t*")
    function = vk.lib.vkEnumerateDeviceExtensionProperties
    check(function(physical, ffi.NULL, count, ffi.NULL), "vkEnumerateDeviceExtensionProperties")
    found = ffi.new("VkExtensionProperties[]", max(1, count[0]))
    check(function(physical, ffi.NULL, count, found), "vkEnumerateDeviceExtensionProperties")
    return frozenset(ffi.string(entry.extensionName).decode() for entry in found[0 : count[0]])


#: VkDriverId → its name in vulkan_core.h 1.4.335, where the binding's header has none or a provisional one.
_LATER_DRIVERS = {26: "mesa_honeykrisp", 27: "vulkan_sc_emulation_on_vulkan", 28: "mesa_kosmickrisp"}


@cache
def _driver_names() -> dict[int, str]:
    prefix = "VK_DRIVER_ID_"
    names = {name.removeprefix(prefix): value for name, value in vars(vulkan()).items() if name.startswith(prefix)}
    known = {value: name.lower() for name, value in names.items() if not name.endswith("_KHR") and name[0] != "_"}
    return known | _LATER_DRIVERS


def probe(physical: Any) -> DeviceInfo:
    """What the VkPhysicalDevice can do."""
    vk = vulkan()
    ffi, lib = vk.ffi, vk.lib
    basic = ffi.new("VkPhysicalDeviceProperties*")
    lib.vkGetPhysicalDeviceProperties(physical, basic)
    api_version = ((basic.apiVersion >> 22) & 0x7F, (basic.apiVersion >> 12) & 0x3FF)
    name = ffi.string(basic.deviceName).decode(errors="replace")
    kind = _KIND_OF_TYPE.get(basic.deviceType, "other")
    if api_version < (1, 3):
        return DeviceInfo(
            name, kind, "", "unknown", api_version, ("Vulkan 1.3",), None, frozenset(), frozenset(), 0, 0, physical
        )

    extensions = device_extensions(physical)
    features = feature_chain(extensions)
    lib.vkGetPhysicalDeviceFeatures2(physical, features.head)
    supported = frozenset(
        feature
        for struct, (extension, names) in FEATURE_STRUCTS.items()
        if extension is None or extension in extensions
        for feature in names
        if getattr(_features_of(features, struct), feature)
    )

    has_import = "VK_EXT_external_memory_host" in extensions
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
    driver = _driver_names().get(properties["VkPhysicalDeviceVulkan12Properties"].driverID, "unknown")
    capabilities = None
    if not lacks:
        traits = DRIVERS.get(driver, OTHER)
        wanted = (traits.matrix_lanes if "cooperativeMatrix" in supported else None) or traits.lanes
        subgroup_size = vulkan11.subgroupSize if wanted is None or not chooses_size else wanted
        subgroup_size = min(max(subgroup_size, sizes[0]), sizes[1])
        capabilities = Capabilities(
            driver=driver,
            subgroup_size=subgroup_size,
            shared_bytes=limits.maxComputeSharedMemorySize,
            push_constant_bytes=limits.maxPushConstantsSize,
            # Pipelines name their subgroup size, for which there is a limit of its own.
            max_workgroup_invocations=min(
                limits.maxComputeWorkGroupInvocations,
                limits.maxComputeWorkGroupSize[0],
                vulkan13.maxComputeWorkgroupSubgroups * subgroup_size,
            ),
            features=frozenset(key for key, needs in CAPABILITY_FEATURES.items() if supported.issuperset(needs))
            | _float_controls(properties["VkPhysicalDeviceVulkan12Properties"], supported),
        )
    return DeviceInfo(
        name=name,
        kind=kind,
        uuid=bytes(vulkan11.deviceUUID).hex(),
        driver=driver,
        api_version=api_version,
        lacks=tuple(lacks),
        capabilities=capabilities,
        vulkan_features=supported,
        extensions=extensions & frozenset(EXTENSIONS),
        host_import_alignment=properties[host_struct].minImportedHostPointerAlignment if has_import else 0,
        max_subgroups=vulkan13.maxComputeWorkgroupSubgroups,
        handle=physical,
        chooses_subgroup_size=chooses_size,
        driver_version=_driver_version(properties["VkPhysicalDeviceVulkan12Properties"], basic),
        matrices=_matrices(physical, supported) if capabilities is not None else (),
        compute_units=compute_units(physical, extensions, kind, driver, vulkan11.subgroupSize),
    )


def _matrices(physical: Any, supported: frozenset[str]) -> tuple[MatrixProperties, ...]:
    if "cooperativeMatrix" not in supported:
        return ()
    return tuple(
        one
        for one in matrix_properties(physical)
        if "bf16" not in one.types or supported.issuperset(CAPABILITY_FEATURES["bfloat16_matrices"])
    )


def _driver_version(vulkan12: Any, basic: Any) -> str:
    text = vulkan().ffi.string(vulkan12.driverInfo).decode(errors="replace")
    return f"{text} {basic.driverVersion:#x}".strip()


#: Float control → the property that says whether its widths can be chosen apart (VkShaderFloatControlsIndependence).
_INDEPENDENCE = {
    "round_to_nearest_even": "roundingModeIndependence",
    "preserve_denormals": "denormBehaviorIndependence",
}
_INDEPENDENCE_32_BIT_ONLY, _INDEPENDENCE_NONE = 0, 2


def _float_controls(vulkan12: Any, supported: frozenset[str]) -> frozenset[str]:
    """The float controls that can be asked for together, each with its width.

    Where the driver cannot choose widths apart, those that must agree are all there or all left out."""
    widths = [32, *([16] if "shaderFloat16" in supported else []), *([64] if "shaderFloat64" in supported else [])]
    found = set()
    for control, name in FLOAT_CONTROLS.items():
        present = {width for width in widths if getattr(vulkan12, f"{name}{width}")}
        independence = getattr(vulkan12, _INDEPENDENCE[control]) if control in _INDEPENDENCE else None
        if independence == _INDEPENDENCE_NONE and present != set(widths):
            present = set()
        elif independence == _INDEPENDENCE_32_BIT_ONLY and not present.issuperset(set(widths) - {32}):
            present &= {32}
        found |= {f"{control}{width}" for width in present}
    return frozenset(found)


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


def compute_queue_family(device: DeviceInfo) -> int:
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


@cache
def _ranked(pid: int) -> tuple[DeviceInfo, ...]:
    found = [probe(physical) for physical in _physical_devices(instance())]
    return tuple(sorted(found, key=lambda device: (bool(device.lacks), KINDS.index(device.kind))))


def devices() -> tuple[DeviceInfo, ...]:
    """All Vulkan devices, best first: usable ones, then by kind. Raises VulkanUnavailable without a loader."""
    return _ranked(os.getpid())


def select(found: Sequence[DeviceInfo], wanted: str | None = None) -> DeviceInfo:
    """The device to use: the first of ``found``, or the one that ``wanted`` (TRITON_SPIRV_DEVICE) names.

    ``wanted`` is an index into ``found`` (one or two digits), a UUID (with or without hyphens), or a part of the name
    ("4090", say), in any case.
    Raises VulkanUnavailable where there is none, it is not there, or it lacks something required.
    """
    listing = "; ".join(f"{index}: {device.describe()}" for index, device in enumerate(found))
    if not found:
        raise VulkanUnavailable("no Vulkan device was found; " + remedy("install Mesa's CPU driver"))
    chosen = found[0]
    if wanted:
        matching = _matching(found, wanted)
        if not matching:
            raise VulkanUnavailable(
                f"TRITON_SPIRV_DEVICE={wanted!r} matches no Vulkan device; the devices are {listing}"
            )
        chosen = matching[0]
    if chosen.lacks:
        raise VulkanUnavailable(
            f"{chosen.describe()} cannot run Triton kernels: it lacks {', '.join(chosen.lacks)}; "
            f"the Vulkan devices are {listing}; Mesa's CPU driver has all that is needed: "
            f"{INSTALL}"
        )
    return chosen


#: A longer number is a part of a name: no machine has a hundred devices.
_INDEX_DIGITS = 2


def _matching(found: Sequence[DeviceInfo], wanted: str) -> list[DeviceInfo]:
    if wanted.isdecimal() and len(wanted) <= _INDEX_DIGITS:
        return [found[int(wanted)]] if int(wanted) < len(found) else []
    plain = wanted.replace("-", "").lower()
    by_uuid = [device for device in found if device.uuid == plain]
    return by_uuid or [device for device in found if wanted.lower() in device.name.lower()]


def is_chosen() -> bool:
    """Whether TRITON_SPIRV_DEVICE or LOCAL_RANK says which device this process uses."""
    return bool(settings.DEVICE.get() or os.environ.get("LOCAL_RANK"))


def choose(found: Sequence[DeviceInfo]) -> tuple[DeviceInfo, str]:
    """The device that this process uses, and why. Raises VulkanUnavailable, and ValueError on a wrong LOCAL_RANK.

    TRITON_SPIRV_DEVICE decides. Without it, where LOCAL_RANK is set (torchrun does so), the ranks share the devices of
    the best kind in turn; otherwise it is the best device.
    """
    wanted = settings.DEVICE.get()
    if wanted:
        return select(found, wanted), f"TRITON_SPIRV_DEVICE={wanted}"
    best = select(found)
    rank = os.environ.get("LOCAL_RANK", "")
    if not rank:
        return best, "the first of the best kind"
    if not rank.isdecimal():
        raise ValueError(f"LOCAL_RANK={rank!r} is not a number")
    alike = [device for device in found if device.kind == best.kind and not device.lacks]
    return alike[int(rank) % len(alike)], f"LOCAL_RANK={rank}, of {len(alike)} {best.kind} device(s)"


def selected() -> DeviceInfo:
    """The device that this process uses. Raises VulkanUnavailable."""
    return choose(devices())[0]
