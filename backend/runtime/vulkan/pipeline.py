"""SPIR-V modules as compute pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ...compile_time import CompilingPart, Meter, left_for_driver
from ..errors import DamagedModule
from ..modules.module_info import ModuleInfo, read_module
from ..modules.saved_modules import save_module
from ..modules.validate import validate_module
from ..native_module import native
from .compilations import Compilations
from .devices import VulkanDeviceInfo
from .loader import check, handle, new, vulkan
from .pipeline_cache import cache_of

#: Seconds between looks whether a driver has compiled: at first, and at most.
_NAP, _LONGEST_NAP = 0.0002, 0.005

_REQUIRE_FULL_SUBGROUPS = 2  # of VkPipelineShaderStageCreateFlagBits; the vulkan package has it under the EXT name


def create_module(device: Any, spirv: bytes) -> Any:
    """A VkShaderModule of a VkDevice. Raises RuntimeError if the driver refuses it. The caller destroys it."""
    vk = vulkan()
    ffi = vk.ffi
    info = new("VkShaderModuleCreateInfo")
    info.codeSize, info.pCode = len(spirv), ffi.cast("uint32_t*", ffi.from_buffer(spirv))
    module = ffi.new("VkShaderModule*")
    check(vk.lib.vkCreateShaderModule(device, info, ffi.NULL, module), "vkCreateShaderModule")
    return module[0]


def create_pipeline(
    device: Any,
    layout: Any,
    cache: Any,
    module: Any,
    info: ModuleInfo,
    subgroup_size: int,
    flags: int = 0,
    chooses_size: bool = True,
) -> Any:
    """A VkPipeline of a VkShaderModule, with subgroups of ``subgroup_size`` where the module asks for no other.
    ``flags``: VkPipelineCreateFlags. ``chooses_size``: of the device, whose only size it must be else. Raises
    RuntimeError where the driver refuses it. The caller destroys it."""
    vk = vulkan()
    ffi = vk.ffi
    subgroup = new("VkPipelineShaderStageRequiredSubgroupSizeCreateInfo")
    subgroup.requiredSubgroupSize = info.subgroup_size or subgroup_size
    entry_point = ffi.new("char[]", info.entry_point.encode())
    stage = new("VkPipelineShaderStageCreateInfo")
    if chooses_size:
        stage.pNext = ffi.cast("void*", subgroup)
    stage.stage, stage.module, stage.pName = vk.VK_SHADER_STAGE_COMPUTE_BIT, module, entry_point
    if info.local_size[0] % subgroup.requiredSubgroupSize == 0:
        stage.flags = _REQUIRE_FULL_SUBGROUPS
    create = new("VkComputePipelineCreateInfo")
    create.flags, create.stage, create.layout = flags, stage[0], layout
    pipeline = ffi.new("VkPipeline*")
    check(vk.lib.vkCreateComputePipelines(device, cache, 1, create, ffi.NULL, pipeline), "vkCreateComputePipelines")
    return pipeline[0]


class PipelineDevice(Protocol):
    """What a pipeline needs of an open device (open_device.py)."""

    info: VulkanDeviceInfo
    native: Any
    handle: Any
    pipeline_layout: Any
    kept_pipelines: Path
    compilations: Compilations


class VulkanKernel:
    """A VkPipeline, and the VkShaderModule that it is made of."""

    def __init__(
        self,
        driver: PipelineDevice,
        name: str,
        spirv: bytes,
        helps: Callable[[], str],
        refused: Callable[[BaseException], str] | None = None,
    ) -> None:
        """Loads the kernel, as OpenDevice.load() says."""
        self._driver = driver
        try:
            self.info = read_module(spirv)
        except ValueError as error:
            raise DamagedModule(f"kernel '{name}': {error}", save_module(name, spirv)) from None
        validate_module(spirv, name)
        part = CompilingPart(name, f"the driver's compiler ({driver.info.name})", helps)
        self._native: Any = native().VulkanPipeline(driver.native)
        self.handle: int = self._native.handle
        self._made: tuple[Any, Any] = None, None
        wait = partial(driver.compilations.wait, spirv, part=part, most=left_for_driver(name))
        self._loading: Future[None] | None = None
        if refused is None or not driver.compilations.many:
            self._take(wait(make=partial(self._compiled, spirv)))
        else:
            compiled = partial(self._compiled, spirv, late=False)
            self._loading = driver.compilations.later(partial(self._load, partial(wait, make=compiled), refused))

    def _take(self, made: tuple[Any, Any]) -> None:
        self._made = made
        self._native.make(handle(made[1]))

    def _load(self, wait: Callable[[], tuple[Any, Any]], refused: Callable[[BaseException], str]) -> None:
        try:
            self._take(wait())
        except BaseException as error:
            self._native.refuse(refused(error))

    def _compiled(self, spirv: bytes, meter: Meter, late: bool = True) -> tuple[Any, Any]:
        """The module and its pipeline. Raises RuntimeError if the driver refuses it. ``meter``: does not count the wait
        for what was launched before, where the driver compiles late, which is waited for if ``late``."""
        driver = self._driver
        assert driver.info.capabilities is not None
        module, pipeline = create_module(driver.handle, spirv), None
        try:
            with cache_of(driver.handle, driver.kept_pipelines, spirv) as cache:
                pipeline = create_pipeline(
                    driver.handle,
                    driver.pipeline_layout,
                    cache.handle,
                    module,
                    self.info,
                    driver.info.capabilities.subgroup_size,
                    chooses_size=driver.info.chooses_subgroup_size,
                )
            if late and driver.info.capabilities.traits.compiles_late:
                meter.pause()
                self._native.make(handle(pipeline))
                launch = driver.native.launch_nothing(self.handle)
                self._await(launch - 1)
                meter.count(time.process_time)  # a thread of the driver's compiles
                self._await(launch)
        except RuntimeError:
            destroy(driver.handle, module, pipeline)
            raise
        return module, pipeline

    def _await(self, launch: int) -> None:
        nap = _NAP
        while not self._driver.native.done(launch):
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    @property
    def max_invocations(self) -> int:
        """The most invocations that a workgroup may have on the device at this subgroup size."""
        device = self._driver.info
        assert device.capabilities is not None
        subgroup_size = self.info.subgroup_size or device.capabilities.subgroup_size
        return min(device.capabilities.max_workgroup_invocations, device.max_subgroups * subgroup_size)

    def destroy(self) -> None:
        """Destroy the Vulkan objects, once they are made. None of its launches may be running."""
        if self._loading is None:
            self._destroy()
        else:
            self._loading.add_done_callback(lambda _: self._destroy())

    def _destroy(self) -> None:
        self._driver.native.forget(self.handle)  # another kernel may get its handle
        destroy(self._driver.handle, *self._made)


def destroy(device: Any, module: Any, pipeline: Any) -> None:
    """Destroy a module and a pipeline of a VkDevice, each if it is not None."""
    vk = vulkan()
    if pipeline is not None:
        vk.lib.vkDestroyPipeline(device, pipeline, vk.ffi.NULL)
    if module is not None:
        vk.lib.vkDestroyShaderModule(device, module, vk.ffi.NULL)
