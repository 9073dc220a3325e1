"""The Vulkan loader, through the ``vulkan`` package, and structure chains for it.

The package raises OSError on import if libvulkan is missing, so it is imported on first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from typing import Any

from ... import system
from ...settings import VALIDATE
from ..errors import DeviceUnavailable
from ..once import once_a_process
from . import asking, manifests

INSTALL = system.INSTALL_VULKAN
VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"


def remedy(install: str) -> str:
    """What to do where no driver is found: unset what hides the installed ones, or ``install`` one."""
    return "; ".join(filter(None, (asking.hint(), manifests.hint()))) or f"{install} with: {INSTALL}"


@cache
def vulkan() -> Any:
    """The ``vulkan`` package. Raises DeviceUnavailable if it or the loader is missing."""
    try:
        import vulkan
    except ModuleNotFoundError as error:
        if error.name != "vulkan":
            raise
        raise DeviceUnavailable("the Python package 'vulkan' is missing; install it with: pip install vulkan") from None
    except OSError:
        raise DeviceUnavailable(
            f"the Vulkan loader ({system.VULKAN_LOADER}) is missing; install it, and a driver, with: {INSTALL}"
        ) from None
    return vulkan


def handle(value: Any) -> int:
    """A Vulkan handle of the ``vulkan`` package as an integer."""
    return int(vulkan().ffi.cast("uintptr_t", value))


def check(result: int, function: str) -> None:
    """Raise RuntimeError unless ``result``, of the Vulkan ``function``, is VK_SUCCESS."""
    if result != 0:
        name = _result_names().get(result, "an error without a known name")
        raise RuntimeError(f"{function} failed: {name} ({result})")


@cache
def _result_names() -> dict[int, str]:
    names = ((name, value) for name, value in vars(vulkan()).items() if name.startswith("VK_ERROR_"))
    return {value: name for name, value in names if isinstance(value, int)}


#: Structure → its VkStructureType, less VK_STRUCTURE_TYPE_.
_STRUCTURE_TYPES = {
    "VkApplicationInfo": "APPLICATION_INFO",
    "VkComputePipelineCreateInfo": "COMPUTE_PIPELINE_CREATE_INFO",
    "VkDeviceCreateInfo": "DEVICE_CREATE_INFO",
    "VkDeviceQueueCreateInfo": "DEVICE_QUEUE_CREATE_INFO",
    "VkInstanceCreateInfo": "INSTANCE_CREATE_INFO",
    "VkPhysicalDeviceCooperativeMatrixFeaturesKHR": "PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR",
    "VkPhysicalDeviceExternalMemoryHostPropertiesEXT": "PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT",
    "VkPhysicalDeviceFaultFeaturesEXT": "PHYSICAL_DEVICE_FAULT_FEATURES_EXT",
    "VkPhysicalDeviceFeatures2": "PHYSICAL_DEVICE_FEATURES_2",
    "VkPhysicalDeviceMemoryBudgetPropertiesEXT": "PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT",
    "VkPhysicalDeviceMemoryProperties2": "PHYSICAL_DEVICE_MEMORY_PROPERTIES_2",
    "VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR": "PHYSICAL_DEVICE_"
    "PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR",
    "VkPhysicalDeviceProperties2": "PHYSICAL_DEVICE_PROPERTIES_2",
    "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT": "PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT",
    "VkPhysicalDeviceShaderClockFeaturesKHR": "PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR",
    "VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM": "PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM",
    "VkPhysicalDeviceShaderCoreProperties2AMD": "PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD",
    "VkPhysicalDeviceShaderCorePropertiesAMD": "PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD",
    "VkPhysicalDeviceShaderSMBuiltinsFeaturesNV": "PHYSICAL_DEVICE_SHADER_SM_BUILTINS_FEATURES_NV",
    "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV": "PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV",
    "VkPhysicalDeviceVulkan11Features": "PHYSICAL_DEVICE_VULKAN_1_1_FEATURES",
    "VkPhysicalDeviceVulkan11Properties": "PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES",
    "VkPhysicalDeviceVulkan12Features": "PHYSICAL_DEVICE_VULKAN_1_2_FEATURES",
    "VkPhysicalDeviceVulkan12Properties": "PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES",
    "VkPhysicalDeviceVulkan13Features": "PHYSICAL_DEVICE_VULKAN_1_3_FEATURES",
    "VkPhysicalDeviceVulkan13Properties": "PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES",
    "VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR": "PHYSICAL_DEVICE_"
    "WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR",
    "VkPipelineCacheCreateInfo": "PIPELINE_CACHE_CREATE_INFO",
    "VkPipelineExecutableInfoKHR": "PIPELINE_EXECUTABLE_INFO_KHR",
    "VkPipelineExecutableInternalRepresentationKHR": "PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR",
    "VkPipelineExecutablePropertiesKHR": "PIPELINE_EXECUTABLE_PROPERTIES_KHR",
    "VkPipelineExecutableStatisticKHR": "PIPELINE_EXECUTABLE_STATISTIC_KHR",
    "VkPipelineInfoKHR": "PIPELINE_INFO_KHR",
    "VkPipelineLayoutCreateInfo": "PIPELINE_LAYOUT_CREATE_INFO",
    "VkPipelineShaderStageCreateInfo": "PIPELINE_SHADER_STAGE_CREATE_INFO",
    "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo": "PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO",
    "VkShaderModuleCreateInfo": "SHADER_MODULE_CREATE_INFO",
}


#: Structures that the ``vulkan`` package does not know → one of the same fields, the number of its VkStructureType, and
#: that one's names of the fields.
_RECENT = {
    "VkPhysicalDeviceShaderBfloat16FeaturesKHR": (
        "VkPhysicalDeviceMultiviewFeatures",
        1000141000,
        {
            "shaderBFloat16Type": "multiview",
            "shaderBFloat16DotProduct": "multiviewGeometryShader",
            "shaderBFloat16CooperativeMatrix": "multiviewTessellationShader",
        },
    )
}


class Renamed:
    """A structure whose fields have other names. ``struct``: the structure itself."""

    def __init__(self, struct: Any, names: dict[str, str]) -> None:
        object.__setattr__(self, "struct", struct)
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.struct, self._names.get(name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.struct, self._names.get(name, name), value)


def new(struct: str) -> Any:
    """A zeroed Vulkan structure with its sType set."""
    vk = vulkan()
    if struct in _RECENT:
        like, number, names = _RECENT[struct]
        value = vk.ffi.new(f"{like}*")
        vk.ffi.cast("uint32_t*", value)[0] = number
        return Renamed(value, names)
    value = vk.ffi.new(f"{struct}*")
    value.sType = getattr(vk, f"VK_STRUCTURE_TYPE_{_STRUCTURE_TYPES[struct]}")
    return value


class Chain:
    """Zeroed Vulkan structures linked by pNext, in the order given. ``chain[name]`` is one of them."""

    def __init__(self, structs: Iterable[str]) -> None:
        ffi = vulkan().ffi
        self._structs = {}
        previous = None
        for name in structs:
            struct = new(name)
            self._structs[name] = struct
            if previous is None:
                self.head = struct
            else:
                previous.pNext = ffi.cast("void*", getattr(struct, "struct", struct))
            previous = struct

    def __getitem__(self, name: str) -> Any:
        return self._structs[name]


class Instance:
    """A VkInstance of API 1.3, with the validation layer where it is asked for."""

    def __init__(self) -> None:
        vk = vulkan()
        ffi = vk.ffi
        self.validation = VALIDATE.get()
        layers, extensions = [], []
        if self.validation:
            if VALIDATION_LAYER not in instance_layers():
                raise DeviceUnavailable(
                    f"{VALIDATE.name} is set but {VALIDATION_LAYER} is not installed; "
                    f"install it with: {system.INSTALL_VALIDATION_LAYERS}"
                )
            layers.append(ffi.new("char[]", VALIDATION_LAYER.encode()))
            extensions.append(ffi.new("char[]", b"VK_EXT_debug_utils"))
        name = ffi.new("char[]", b"triton")
        application = new("VkApplicationInfo")
        application.pApplicationName = name
        application.apiVersion = (1 << 22) | (3 << 12)
        layer_names, extension_names = ffi.new("char*[]", layers), ffi.new("char*[]", extensions)
        info = new("VkInstanceCreateInfo")
        info.pApplicationInfo = application
        info.enabledLayerCount, info.ppEnabledLayerNames = len(layers), layer_names
        info.enabledExtensionCount, info.ppEnabledExtensionNames = len(extensions), extension_names
        out = ffi.new("VkInstance*")
        result = vk.lib.vkCreateInstance(info, ffi.NULL, out)
        if result == vk.VK_ERROR_INCOMPATIBLE_DRIVER:
            raise DeviceUnavailable("no Vulkan driver was found; " + remedy("install Mesa's"))
        check(result, "vkCreateInstance")
        self.handle = out[0]

    def physical_devices(self) -> list[Any]:
        """Every VkPhysicalDevice, in the loader's order."""
        vk = vulkan()
        count = vk.ffi.new("uint32_t*")
        check(vk.lib.vkEnumeratePhysicalDevices(self.handle, count, vk.ffi.NULL), "vkEnumeratePhysicalDevices")
        if count[0] == 0:
            return []
        found = vk.ffi.new("VkPhysicalDevice[]", count[0])
        check(vk.lib.vkEnumeratePhysicalDevices(self.handle, count, found), "vkEnumeratePhysicalDevices")
        return list(found[0 : count[0]])


def instance_layers() -> set[str]:
    """Names of the layers that are installed."""
    vk = vulkan()
    count = vk.ffi.new("uint32_t*")
    check(vk.lib.vkEnumerateInstanceLayerProperties(count, vk.ffi.NULL), "vkEnumerateInstanceLayerProperties")
    found = vk.ffi.new("VkLayerProperties[]", max(1, count[0]))
    check(vk.lib.vkEnumerateInstanceLayerProperties(count, found), "vkEnumerateInstanceLayerProperties")
    return {vk.ffi.string(layer.layerName).decode() for layer in found[0 : count[0]]}


#: The process that was the first to make an instance: this one, or the one that it was forked from.
_first_user: list[int] = []


@once_a_process
def instance() -> Instance:
    """The instance of this process; a forked child makes its own. Raises DeviceUnavailable."""
    _first_user[:] = _first_user or [os.getpid()]
    vulkan()  # without the loader there is nobody to ask
    with asking.without(asking.left_out()):
        return Instance()


def used_before_fork() -> bool:
    """Whether a process that this one was forked from has made an instance."""
    return bool(_first_user) and _first_user[0] != os.getpid()
