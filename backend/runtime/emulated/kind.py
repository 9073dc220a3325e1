"""Emulated devices as a kind of device."""

from __future__ import annotations

from collections.abc import Sequence

from ... import settings
from .devices import EmulatedDeviceInfo, emulated
from .open_device import OpenEmulatedDevice

#: What TRITON_SPIRV_DEVICE begins with to name one.
PREFIX = "emulate:"


def wanted() -> str | None:
    """The profile that TRITON_SPIRV_DEVICE names to be emulated; None if it names something else."""
    named = settings.DEVICE.get() or ""
    return named[len(PREFIX) :] if named.lower().startswith(PREFIX) else None


class Emulated:
    """A DeviceKind: one device, if TRITON_SPIRV_DEVICE asks for it."""

    def devices(self) -> Sequence[EmulatedDeviceInfo]:
        """As DeviceKind's."""
        name = wanted()
        return () if name is None else (emulated(name),)

    def open(self, device: EmulatedDeviceInfo, again: bool) -> OpenEmulatedDevice:
        """As DeviceKind's."""
        return OpenEmulatedDevice(device)

    def remedy(self) -> str:
        """As DeviceKind's."""
        return f"set TRITON_SPIRV_DEVICE={PREFIX}PROFILE to emulate a GPU"
