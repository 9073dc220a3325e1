"""SPIR-V modules as compute pipelines."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...patience import Meter, Part, TooLong, left_for_driver, what_helps
from ...spirv import opcodes as op
from ...spirv.decode import instruction_words, string
from ..context import Context
from ..errors import DamagedModule, KernelRejected, ValidationError
from ..vulkan.loader import check, handle, new, vulkan
from ..vulkan.pipeline_cache import cache_of
from .saved_modules import save_module
from .validate import validate_module

#: What helps where nothing is known of how the kernel was compiled.
_SMALLER = partial(what_helps, None, 0)

#: Seconds between looks whether a driver has compiled: at first, and at most.
_NAP, _LONGEST_NAP = 0.0002, 0.005

_MODULE_PROCESSED = 330
_REQUIRE_FULL_SUBGROUPS = 2  # of VkPipelineShaderStageCreateFlagBits; the vulkan package has it under the EXT name
_MODEL_GLCOMPUTE = 5
_SUBGROUP_SIZE_NOTE = "subgroup_size="


@dataclass(frozen=True)
class ModuleInfo:
    """What a kernel's SPIR-V says of itself.

    ``local_size``: the workgroup's invocations along x, y, z. ``subgroup_size``: what an
    ``OpModuleProcessed "subgroup_size=<n>"`` asks for, None if there is none.
    """

    entry_point: str
    local_size: tuple[int, int, int]
    subgroup_size: int | None

    @property
    def invocations(self) -> int:
        """Invocations of a workgroup."""
        x, y, z = self.local_size
        return x * y * z


def read_module(spirv: bytes) -> ModuleInfo:
    """The entry point, workgroup size and subgroup size of a module. Raises ValueError on a damaged one."""
    entry_point, local_size, subgroup_size = "", (0, 0, 0), None
    last = 0
    for opcode, words in instruction_words(spirv):
        last = opcode
        if opcode == op.EntryPoint and len(words) > 2 and words[0] == _MODEL_GLCOMPUTE:
            entry_point = string(words[2:])
        elif opcode == op.ExecutionMode and len(words) == 5 and words[1] == op.ExecutionMode_.LocalSize:
            local_size = (words[2], words[3], words[4])
        elif opcode == _MODULE_PROCESSED:
            note = string(words)
            if note.startswith(_SUBGROUP_SIZE_NOTE) and note[len(_SUBGROUP_SIZE_NOTE) :].isdecimal():
                subgroup_size = int(note[len(_SUBGROUP_SIZE_NOTE) :])
    if not entry_point or not all(local_size):
        raise ValueError("the SPIR-V module has no compute entry point with a LocalSize")
    if last != op.FunctionEnd:
        raise ValueError("the SPIR-V module is cut off: it does not end with OpFunctionEnd")
    return ModuleInfo(entry_point, local_size, subgroup_size)


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


class Kernel:
    """A kernel on a device. ``pipeline`` is its VkPipeline as an integer, which launches take.

    ``helps``: says what would make it compile sooner.

    Raises KernelRejected on a damaged module or one that the driver refuses; the module is saved and its path named.
    Raises TooLong if the driver's compiler takes longer than it may. It goes on, and a later Kernel of the module
    has what it makes.
    """

    def __init__(self, context: Context, name: str, spirv: bytes, helps: Callable[[], str] | None = None) -> None:
        self.context = context
        self.name = name
        self._module = self._pipeline = None
        with context.in_use():
            try:
                self.info = read_module(spirv)
            except ValueError as error:
                raise DamagedModule(f"kernel '{name}': {error}", save_module(name, spirv)) from None
            validate_module(spirv, name)
            try:
                self._create(spirv, helps or _SMALLER)
                context.raise_validation_errors()
            except TooLong:
                raise
            except (RuntimeError, ValidationError) as error:
                self.destroy()
                context.native.check_usable()  # a device that was closed meanwhile says so itself
                message = f"kernel '{name}' was refused by {context.device.name}: {error}"
                raise KernelRejected(message, save_module(name, spirv)) from error
            self.pipeline = handle(self._pipeline)
            context.add_kernel(self.pipeline, self)

    def _create(self, spirv: bytes, helps: Callable[[], str]) -> None:
        context = self.context
        part = Part(self.name, f"the driver's compiler ({context.device.name})", helps)
        self._module, self._pipeline = context.compilations.wait(
            spirv, partial(self._compiled, spirv), part, left_for_driver(self.name)
        )

    def _compiled(self, spirv: bytes, meter: Meter) -> tuple[Any, Any]:
        """The module and its pipeline. Raises RuntimeError if the driver refuses it. ``meter``: does not count the wait
        for what was launched before, where the driver compiles late."""
        context = self.context
        module, pipeline = create_module(context.handle, spirv), None
        try:
            with cache_of(context.handle, context.kept_pipelines, spirv) as cache:
                pipeline = create_pipeline(
                    context.handle,
                    context.pipeline_layout,
                    cache.handle,
                    module,
                    self.info,
                    context.capabilities.subgroup_size,
                    chooses_size=context.device.chooses_subgroup_size,
                )
            if context.capabilities.traits.compiles_late:
                meter.pause()
                launch = context.native.launch_nothing(handle(pipeline))
                self._await(launch - 1)
                meter.count(time.process_time)  # a thread of the driver's compiles
                self._await(launch)
        except RuntimeError:
            _destroy(context.handle, module, pipeline)
            raise
        return module, pipeline

    def _await(self, launch: int) -> None:
        nap = _NAP
        while not self.context.native.done(launch):
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    @property
    def loaded(self) -> bool:
        """Whether it is on the device."""
        return self._pipeline is not None

    @property
    def max_invocations(self) -> int:
        """The most invocations that a workgroup may have on the device at this subgroup size."""
        capabilities = self.context.capabilities
        subgroup_size = self.info.subgroup_size or capabilities.subgroup_size
        return min(capabilities.max_workgroup_invocations, self.context.device.max_subgroups * subgroup_size)

    def destroy(self) -> None:
        """Destroy the Vulkan objects. None of its launches may be running. Called by the context."""
        if self._pipeline is not None:
            self.context.native.forget(handle(self._pipeline))  # another kernel may get its handle
        _destroy(self.context.handle, self._module, self._pipeline)
        self._module = self._pipeline = None

    def unload(self) -> None:
        """Give the kernel back. A second call, or one after the context closed, does nothing."""
        self.context.remove_kernel(self.pipeline)


def _destroy(device: Any, module: Any, pipeline: Any) -> None:
    vk = vulkan()
    if pipeline is not None:
        vk.lib.vkDestroyPipeline(device, pipeline, vk.ffi.NULL)
    if module is not None:
        vk.lib.vkDestroyShaderModule(device, module, vk.ffi.NULL)
