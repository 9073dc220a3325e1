"""Vulkan's objects that every kernel of a device shares: the VkDevice and the layout of its pipelines."""

from __future__ import annotations

from typing import Any

from ...capabilities import Capabilities
from .device_features import feature_chain
from .devices import VulkanDeviceInfo
from .loader import check, new, used_before_fork, vulkan

_COMPUTE_STAGE = 0x20


def create_device(device: VulkanDeviceInfo, *families: int) -> Any:
    """A VkDevice with one queue of each family, and all that is of use enabled. The caller destroys it. Raises
    RuntimeError where the driver refuses, as NVIDIA's does in the child of a process that has asked for the devices."""
    vk = vulkan()
    ffi = vk.ffi
    features = feature_chain(device.extensions, device.vulkan_features)
    priority = ffi.new("float*", 1.0)
    wanted = sorted({*families})
    queues = ffi.new("VkDeviceQueueCreateInfo[]", len(wanted))
    for queue, family in zip(queues, wanted, strict=True):
        queue.sType = vk.VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO
        queue.queueFamilyIndex, queue.queueCount, queue.pQueuePriorities = family, 1, priority
    strings = [ffi.new("char[]", name.encode()) for name in sorted(device.extensions)]
    names = ffi.new("char*[]", strings)
    info = new("VkDeviceCreateInfo")
    info.pNext = ffi.cast("void*", features.head)
    info.queueCreateInfoCount, info.pQueueCreateInfos = len(wanted), queues
    info.enabledExtensionCount, info.ppEnabledExtensionNames = len(strings), names
    out = ffi.new("VkDevice*")
    result = vk.lib.vkCreateDevice(device.handle, info, ffi.NULL, out)
    if result != 0 and used_before_fork():
        raise RuntimeError(
            f"{device.name}: the driver opens no device in this process, which was forked after its parent had used "
            "Vulkan: start processes by spawn or forkserver, or fork before the first use of the device"
        )
    check(result, f"{device.name}: vkCreateDevice")
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
