"""Vulkan as a kind of device."""

from __future__ import annotations

from .devices import VulkanDeviceInfo, devices
from .loader import remedy
from .open_device import OpenVulkanDevice


class Vulkan:
    """A DeviceKind: the devices of all Vulkan drivers that are installed."""

    def devices(self) -> tuple[VulkanDeviceInfo, ...]:
        """Implements DeviceKind.devices()."""
        return devices()

    def open(self, device: VulkanDeviceInfo, again: bool) -> OpenVulkanDevice:
        """Implements DeviceKind.open()."""
        return OpenVulkanDevice(device, again)

    def remedy(self) -> str:
        """Implements DeviceKind.remedy()."""
        return remedy("install Mesa's CPU driver")
