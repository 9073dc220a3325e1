"""An open Vulkan device: its VkDevice with its queues, the layout of its pipelines, and its compiler."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable

from ... import settings
from ...field_reports import RAN_HERE
from ...settings import IMPORTED, STAGED, ZERO_COPY
from ..device_kind import MachineModule
from ..files import kept_folder
from ..native_module import native
from .compilations import Compilations
from .device_features import SHARING_EXTENSIONS
from .devices import VulkanDeviceInfo, again, compute_queue_family, transfer_queue_family
from .job_limit import job_seconds
from .loader import handle, instance, vulkan
from .logical_device import create_device, create_pipeline_layout
from .memory_heaps import has_budget
from .pipeline import VulkanKernel, destroy
from .statistics import FEATURE, executables, registers_and_spills

_FOREVER = 2**64 - 1


def _timeout_ns() -> int:
    seconds = settings.TIMEOUT.get()
    return _FOREVER if seconds is None else int(seconds * 1e9)


class OpenVulkanDevice:
    """An OpenDevice. ``native`` is its _native.VulkanDevice, ``handle`` its VkDevice, ``kept_pipelines`` the folder of
    what the driver compiled for it."""

    def __init__(self, device: VulkanDeviceInfo, failed: bool) -> None:
        """Opens the device, as DeviceInfo.open() says."""
        self._instance, device = again(device) if failed else (instance(), device)
        assert device.capabilities is not None
        self.info = device
        self.shares_memory = device.driver == "nvidia_proprietary" and device.extensions.issuperset(SHARING_EXTENSIONS)
        module = native()
        self._messenger = module.Messenger(handle(self._instance.handle)) if self._instance.validation else None
        self.compilations = Compilations(device.care.one_pipeline)
        vk = vulkan()
        family = compute_queue_family(device)
        transfer_family = transfer_queue_family(device, family)
        self.handle = create_device(device, family, transfer_family)
        queues = vk.ffi.new("VkQueue[2]")
        for index, one in enumerate((family, transfer_family)):
            vk.lib.vkGetDeviceQueue(self.handle, one, 0, queues + index)
        self.pipeline_layout = create_pipeline_layout(self.handle, device.capabilities)
        key = hashlib.sha256(f"{device.driver_version}".encode()).hexdigest()[:8]
        self.kept_pipelines = kept_folder() / f"{device.driver}-{device.uuid}-{key}"
        self.native = module.VulkanDevice(
            instance=handle(self._instance.handle),
            physical_device=handle(device.handle),
            device=handle(self.handle),
            queue=handle(queues[0]),
            queue_family=family,
            transfer_queue=handle(queues[1]),
            transfer_family=transfer_family,
            pipeline_layout=handle(self.pipeline_layout),
            host_addresses=False,
            shares_semaphores=self.shares_memory,
            timeout_ns=_timeout_ns(),
            job_ns=int((job_seconds(device) or 0) * 1e9),
            drains=device.care.drains,
            holds_allocations=device.care.holds_allocations or device.driver not in RAN_HERE,
            asks_budget=device.care.asks_budget and has_budget(device.handle),
        )
        self.host_memory = self._choose_host_memory()
        self.native.set_host_addresses(self.host_memory == ZERO_COPY)

    def _choose_host_memory(self) -> str:
        best = ZERO_COPY if self._host_addresses_are_device_addresses() else STAGED
        wanted = settings.HOST_MEMORY.get() or best
        if wanted == ZERO_COPY != best:
            raise ValueError(
                f"TRITON_SPIRV_HOST_MEMORY={wanted!r}: host addresses are not device addresses on {self.info.name}"
            )
        if wanted == IMPORTED and not self.info.host_import_alignment:
            raise ValueError(f"TRITON_SPIRV_HOST_MEMORY={wanted!r}: {self.info.name} lacks VK_EXT_external_memory_host")
        return wanted

    def _host_addresses_are_device_addresses(self) -> bool:
        """Whether a page, imported, has its host address: then the driver runs in this process's address space."""
        alignment = self.info.host_import_alignment
        if self.info.kind != "cpu" or not alignment:
            return False
        with mmap.mmap(-1, 2 * max(alignment, mmap.PAGESIZE)) as page:
            view = vulkan().ffi.from_buffer(page)
            start = -(-int(vulkan().ffi.cast("uintptr_t", view)) // alignment) * alignment
            try:
                imported = self.native.import_host(start, alignment)
            except native().VulkanError:
                return False
            finally:
                del view
            same = imported.address == start
            imported.free()
        return same

    @property
    def validates(self) -> bool:
        """Whether the validation layer is on."""
        return self._messenger is not None

    def messages(self) -> list[str]:
        """Implements OpenDevice.messages()."""
        return list(self._messenger.take()) if self._messenger is not None else []

    def load(
        self, name: str, code: bytes, helps: Callable[[], str], refused: Callable[[BaseException], str] | None = None
    ) -> VulkanKernel:
        """Implements OpenDevice.load(). ``code``: SPIR-V."""
        kernel = VulkanKernel(self, name, code, helps, refused)
        if kernel.info.watch is not None:
            kernel.destroy()
            raise RuntimeError(
                "races between programs are looked for on the CPU device and on emulated ones alone: set "
                "TRITON_SPIRV_DEVICE=cpu, or emulate:PROFILE, with TRITON_SPIRV_CHECK_RACES=programs"
            )
        return kernel

    def load_machine_code(self, code: bytes, machine: MachineModule) -> VulkanKernel:
        """Implements OpenDevice.load_machine_code()."""
        raise RuntimeError("it is machine code, which runs on the CPU device: set TRITON_SPIRV_DEVICE=cpu")

    def statistics(self, code: bytes) -> tuple[int | None, int | None]:
        """Implements OpenDevice.statistics(), by the driver's statistics of a second pipeline."""
        device = self.info
        if FEATURE not in device.vulkan_features:
            return None, None
        assert device.capabilities is not None
        found = executables(
            self.handle,
            self.pipeline_layout,
            code,
            device.capabilities.subgroup_size,
            chooses_size=device.chooses_subgroup_size,
        )
        return registers_and_spills(device.driver, found)

    def compile_now(self, handle: int) -> None:
        """Implements OpenDevice.compile_now(): drivers of CPUs compile at the first launch."""
        self.native.launch_nothing(handle)
        self.native.synchronize()

    def waits_for_compiler(self) -> bool:
        """Implements OpenDevice.waits_for_compiler(): a driver that compiles late does so in its queue."""
        assert self.info.capabilities is not None
        return self.info.capabilities.traits.compiles_late and self.compilations.go_on

    def compiles(self) -> bool:
        """Implements OpenDevice.compiles()."""
        self.compilations.end()
        return self.compilations.go_on

    def close(self) -> None:
        """Implements OpenDevice.close()."""
        vk = vulkan()
        for module, pipeline in self.compilations.left() or ():
            destroy(self.handle, module, pipeline)
        vk.lib.vkDestroyPipelineLayout(self.handle, self.pipeline_layout, vk.ffi.NULL)
        vk.lib.vkDestroyDevice(self.handle, vk.ffi.NULL)
        self.handle = None
        if self._messenger is not None:
            self._messenger.close()
