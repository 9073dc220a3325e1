"""The Vulkan features and extensions that kernels can use, and which of them a device has."""

from __future__ import annotations

from typing import Any

from ...capabilities import FLOAT_CONTROLS
from .loader import Chain, check, vulkan

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
    "VK_EXT_device_fault",
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
    "VkPhysicalDeviceFaultFeaturesEXT": ("VK_EXT_device_fault", ("deviceFault",)),
    "VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR": (
        "VK_KHR_pipeline_executable_properties",
        ("pipelineExecutableInfo",),
    ),
}

#: Bytes of a structure before its features: sType and pNext.
_HEAD = 16

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


def feature_chain(extensions: frozenset[str], enabled: frozenset[str] = frozenset()) -> Chain:
    """The feature structures that a device with these extensions knows, with the features ``enabled`` set."""
    structs = [name for name, (extension, _) in FEATURE_STRUCTS.items() if extension is None or extension in extensions]
    chain = Chain(structs)
    for name in structs:
        for feature in FEATURE_STRUCTS[name][1]:
            if feature in enabled:
                setattr(features_of(chain, name), feature, 1)
    return chain


def features_of(chain: Chain, struct: str) -> Any:
    """The structure of a chain that holds the features of ``struct``."""
    return chain[struct].features if struct == "VkPhysicalDeviceFeatures2" else chain[struct]


def place_of(struct: str, feature: str) -> tuple[int, int]:
    """The number of a structure's VkStructureType, and which of its flags the feature is."""
    ffi = vulkan().ffi
    chain = Chain([struct])
    setattr(features_of(chain, struct), feature, 1)
    head = chain.head
    pointer = getattr(head, "struct", head)
    size = ffi.sizeof(ffi.typeof(pointer).item)
    words = ffi.unpack(ffi.cast("uint32_t*", pointer), size // 4)
    return words[0], words.index(1, _HEAD // 4) - _HEAD // 4


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


#: Float control → the property that says whether its widths can be chosen apart (VkShaderFloatControlsIndependence).
_INDEPENDENCE = {
    "round_to_nearest_even": "roundingModeIndependence",
    "preserve_denormals": "denormBehaviorIndependence",
}
_INDEPENDENCE_32_BIT_ONLY, _INDEPENDENCE_NONE = 0, 2


def float_controls(vulkan12: Any, supported: frozenset[str]) -> frozenset[str]:
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
