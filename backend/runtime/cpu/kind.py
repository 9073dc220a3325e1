"""The CPU as a kind of device."""

from __future__ import annotations

from collections.abc import Sequence

from ... import settings
from .devices import CpuDeviceInfo, device
from .open_device import OpenCpuDevice

#: What TRITON_SPIRV_DEVICE calls it.
NAME = "cpu"


def is_asked_for() -> bool:
    """Whether TRITON_SPIRV_DEVICE names it."""
    return (settings.DEVICE.get() or "").lower() == NAME


class Cpu:
    """A DeviceKind: the processor, which is there if TRITON_SPIRV_DEVICE names it."""

    def devices(self) -> Sequence[CpuDeviceInfo]:
        """As DeviceKind's."""
        return (device(),) if is_asked_for() else ()

    def open(self, device: CpuDeviceInfo, again: bool) -> OpenCpuDevice:
        """As DeviceKind's."""
        return OpenCpuDevice(device)

    def remedy(self) -> str:
        """As DeviceKind's."""
        return f"set TRITON_SPIRV_DEVICE={NAME} to use the processor"
