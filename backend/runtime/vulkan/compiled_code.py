"""What a driver makes of one kernel on a device that is opened for it alone, and its own form of the program: what it
puts into a VkPipelineCache."""

from __future__ import annotations

from typing import Any

from ..modules.module_info import read_module
from .devices import VulkanDeviceInfo, compute_queue_family
from .loader import vulkan
from .logical_device import create_device, create_pipeline_layout
from .pipeline import create_module, create_pipeline
from .pipeline_cache import PipelineCache
from .statistics import Executable, executables


def cached_program(device: Any, layout: Any, spirv: bytes, subgroup_size: int, chooses_size: bool = True) -> bytes:
    """The data of a VkPipelineCache that was empty before a module was compiled with it, as launches compile it: on a
    VkDevice, with subgroups of ``subgroup_size``. ``chooses_size``: DeviceInfo.chooses_subgroup_size.

    Raises ValueError on a damaged module, RuntimeError if the driver refuses it.
    """
    vk = vulkan()
    info = read_module(spirv)
    module = create_module(device, spirv)
    cache = PipelineCache(device)
    try:
        pipeline = create_pipeline(device, layout, cache.handle, module, info, subgroup_size, 0, chooses_size)
        vk.lib.vkDestroyPipeline(device, pipeline, vk.ffi.NULL)
        return cache.data()
    finally:
        cache.destroy()
        vk.lib.vkDestroyShaderModule(device, module, vk.ffi.NULL)


def driver_code(
    device: VulkanDeviceInfo, spirv: bytes, subgroup_size: int, caches: bool
) -> tuple[list[Executable], bytes]:
    """What the driver says of a module, which has statistics.FEATURE, and, where ``caches``, its cached_program().
    Raises as executables() and cached_program()."""
    assert device.capabilities is not None
    vk = vulkan()
    handle = create_device(device, compute_queue_family(device))
    layout = create_pipeline_layout(handle, device.capabilities)
    chooses = device.chooses_subgroup_size
    try:
        found = executables(handle, layout, spirv, subgroup_size, texts=True, chooses_size=chooses)
        return found, cached_program(handle, layout, spirv, subgroup_size, chooses) if caches else b""
    finally:
        vk.lib.vkDestroyPipelineLayout(handle, layout, vk.ffi.NULL)
        vk.lib.vkDestroyDevice(handle, vk.ffi.NULL)
