"""Vulkan's objects that every kernel of a device shares: the VkDevice and the layout of its pipelines."""

from __future__ import annotations

from typing import Any

from ..capabilities import Capabilities
from .device_features import feature_chain
from .devices import DeviceInfo
from .loader import check, new, vulkan

_COMPUTE_STAGE = 0x20


def create_device(device: DeviceInfo, family: int) -> Any:
    """A VkDevice with one queue of the family, and all that is of use enabled. The caller destroys it."""
    vk = vulkan()
    ffi = vk.ffi
    features = feature_chain(device.extensions, device.vulkan_features)
    priority = ffi.new("float*", 1.0)
    queue = new("VkDeviceQueueCreateInfo")
    queue.queueFamilyIndex, queue.queueCount, queue.pQueuePriorities = family, 1, priority
    strings = [ffi.new("char[]", name.encode()) for name in sorted(device.extensions)]
    names = ffi.new("char*[]", strings)
    info = new("VkDeviceCreateInfo")
    info.pNext = ffi.cast("void*", features.head)
    info.queueCreateInfoCount, info.pQueueCreateInfos = 1, queue
    info.enabledExtensionCount, info.ppEnabledExtensionNames = len(strings), names
    out = ffi.new("VkDevice*")
    check(vk.lib.vkCreateDevice(device.handle, info, ffi.NULL, out), f"{device.name}: vkCreateDevice")
    return out[0]


def create_pipeline_layout(device: Any, capabilities: Capabilities) -> Any:
    """One layout for all kernels of a VkDevice: a push-constant range of its full size, no descriptor sets. The caller
    destroys it."""
    vk = vulkan()
    ffi = vk.ffi
    span = ffi.new("VkPushConstantRange*")
    span.stageFlags, span.offset, span.size = _COMPUTE_STAGE, 0, capabilities.push_constant_bytes
    info = new("VkPipelineLayoutCreateInfo")
    info.pushConstantRangeCount, info.pPushConstantRanges = 1, span
    out = ffi.new("VkPipelineLayout*")
    check(vk.lib.vkCreatePipelineLayout(device, info, ffi.NULL, out), "vkCreatePipelineLayout")
    return out[0]
