"""The CPU as a kind of device."""

from __future__ import annotations

from collections.abc import Sequence

from .devices import NAME, CpuDeviceInfo, device
from .open_device import OpenCpuDevice


class Cpu:
    """A DeviceKind: the processor."""

    def devices(self) -> Sequence[CpuDeviceInfo]:
        """Implements DeviceKind.devices()."""
        return (device(),)

    def open(self, device: CpuDeviceInfo, again: bool) -> OpenCpuDevice:
        """Implements DeviceKind.open()."""
        return OpenCpuDevice(device)

    def remedy(self) -> str:
        """Implements DeviceKind.remedy()."""
        return f"TRITON_SPIRV_DEVICE={NAME} runs kernels on the processor itself"
