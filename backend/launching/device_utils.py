"""Kernels on a device, and its limits, as Triton's CompiledKernel asks for them."""

from __future__ import annotations

import os
from typing import Any

from ..runtime import context as vulkan_context
from ..runtime.component_maps import capabilities_of
from ..runtime.errors import VulkanUnavailable
from ..runtime.pipeline import Kernel
from .compile_only import device_properties

#: Vector registers of a CPU's thread, each of which holds a value of every lane, so that a lane has as many.
HOST_REGISTERS = 16


class DeviceUtils:
    """Loading kernels, as CompiledKernel asks for it."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[Any, int, int | None, int | None, int]:
        """(module, function, registers, spills, most invocations of a workgroup). Raises KernelRejected.

        ``device``: its index. Registers are an invocation's. Vulkan does not tell them, nor spills, so that both are
        None; on a CPU they are those that there are.
        """
        context = vulkan_context.of_device(device)
        loaded = Kernel(context, name, kernel)
        registers = HOST_REGISTERS if context.device.kind == "cpu" else None
        return loaded, loaded.pipeline, registers, None, loaded.max_invocations

    def unload_module(self, module: Any) -> None:
        """Give a loaded kernel back."""
        module.unload()

    def get_device_properties(self, device: int | None = None) -> dict[str, Any]:
        """Limits of a device, the current one for None, in Triton's terms; ``max_shared_mem`` in bytes.

        ``multiprocessor_count`` and ``max_num_regs`` are there for a CPU: its threads, and the registers of a
        workgroup's invocations. Vulkan has no such numbers of a GPU, nor ``mem_clock_rate`` and ``mem_bus_width``.
        """
        info = vulkan_context.devices()[vulkan_context.current_device() if device is None else device]
        capabilities = capabilities_of(info)
        if capabilities is None:
            raise VulkanUnavailable(f"{info.describe()} cannot run Triton kernels")
        properties = device_properties(capabilities)
        if info.kind == "cpu":
            properties["multiprocessor_count"] = os.cpu_count() or 1
            properties["max_num_regs"] = HOST_REGISTERS * capabilities.max_workgroup_invocations
        return properties
