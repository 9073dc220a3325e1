"""Emulated devices as a kind of device."""

from __future__ import annotations

from collections.abc import Sequence

from ... import settings
from ...system import HAS_EMULATED_DEVICES
from ..errors import DeviceUnavailable
from .devices import EmulatedDeviceInfo, emulated
from .open_device import OpenEmulatedDevice


class Emulated:
    """A DeviceKind: one device, if TRITON_SPIRV_DEVICE asks for it."""

    def devices(self) -> Sequence[EmulatedDeviceInfo]:
        """Implements DeviceKind.devices()."""
        name = settings.emulated_profile()
        if name is not None and not HAS_EMULATED_DEVICES:
            raise DeviceUnavailable("emulated devices do not run on Windows: use Linux, or WSL 2")
        return () if name is None else (emulated(name),)

    def open(self, device: EmulatedDeviceInfo, again: bool) -> OpenEmulatedDevice:
        """Implements DeviceKind.open()."""
        return OpenEmulatedDevice(device)

    def remedy(self) -> str:
        """Implements DeviceKind.remedy()."""
        return f"set TRITON_SPIRV_DEVICE={settings.EMULATE}PROFILE to emulate a GPU"
