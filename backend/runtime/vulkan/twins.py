"""One GPU that several drivers list is one device: RADV beside AMDVLK, Dozen beside a native driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...field_reports import RAN_HERE
from .device_info import VulkanDeviceInfo


def without_twins(found: Sequence[VulkanDeviceInfo]) -> tuple[VulkanDeviceInfo, ...]:
    """The devices, each GPU once, in their order. ``also_listed_by`` names the drivers whose device was dropped.

    Two are one GPU where other drivers give it the same UUID or LUID, as ggml-vulkan takes it. One driver's devices are
    never twins: all of a CPU driver's have one UUID.
    """
    left: list[VulkanDeviceInfo] = []
    for device in found:
        twin = next((one for one in left if _are_one(one, device)), None)
        if twin is None:
            left.append(device)
            continue
        better, worse = sorted((twin, device), key=_rank)
        listed = (*twin.also_listed_by, *device.also_listed_by, worse.driver)
        left[left.index(twin)] = replace(better, also_listed_by=listed)
    return tuple(left)


def _are_one(one: VulkanDeviceInfo, other: VulkanDeviceInfo) -> bool:
    if other.driver in (one.driver, *one.also_listed_by):
        return False
    return bool((one.uuid and one.uuid == other.uuid) or (one.luid and one.luid == other.luid))


def _rank(device: VulkanDeviceInfo) -> tuple[bool, ...]:
    """Usable before not, what ran here before others, Mesa's before vendors' own: Mesa's compilers were tried."""
    return bool(device.lacks), device.care.last, device.driver not in RAN_HERE, not device.driver.startswith("mesa_")
