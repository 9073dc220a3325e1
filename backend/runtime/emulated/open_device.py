"""An emulated device, open."""

from __future__ import annotations

from dataclasses import replace

from ... import settings
from ...cpu.emulation import Emulation
from ...cpu.objects import MachineCode
from ...settings import STAGED
from ..cpu.devices import capabilities as processor_capabilities
from ..cpu.open_device import OpenCpuDevice
from ..native_module import native
from .counting import counts_now
from .devices import EmulatedDeviceInfo


class OpenEmulatedDevice(OpenCpuDevice):
    """An OpenDevice. Host memory is copied, as for a GPU: kernels may access nothing else than the device's memory.

    TRITON_SPIRV_DISORDER has the subgroups of a workgroup run in another order between two barriers."""

    emulates = True

    def __init__(self, device: EmulatedDeviceInfo) -> None:
        """Opens the device, as DeviceKind.open() says."""
        super().__init__(device)
        assert device.capabilities is not None
        host = processor_capabilities()
        assert host is not None, "a device of such a processor lacks something"
        self._processor = host.processor
        self._emulation = Emulation(device.capabilities.matrices)
        native().set_subgroup_order(settings.DISORDER.get() or 0)

    def _host_memory(self, device: EmulatedDeviceInfo) -> str:
        asked = settings.HOST_MEMORY.get() or STAGED
        if asked != STAGED:
            raise ValueError(f"TRITON_SPIRV_HOST_MEMORY={asked!r}: {device.name} has memory of its own")
        return STAGED

    def _machine_code(self, spirv: bytes, subgroup: int) -> MachineCode:
        from ...cpu.objects import machine_code

        emulation = replace(self._emulation, counts=counts_now())
        return machine_code(spirv, subgroup, self._processor, emulation=emulation)
