"""What a driver puts into a VkPipelineCache for one kernel: its own form of the program."""

from __future__ import annotations

from typing import Any

from ..vulkan.loader import vulkan
from ..vulkan.pipeline_cache import PipelineCache
from .pipeline import create_module, create_pipeline, read_module


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
