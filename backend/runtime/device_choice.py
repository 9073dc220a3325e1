"""The devices of this machine, of all kinds, and which of them a process uses."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .. import settings
from .cpu.kind import Cpu, is_asked_for
from .device_kind import SORTS, DeviceInfo, DeviceKind, OpenDevice
from .emulated.kind import Emulated
from .errors import VulkanUnavailable
from .once import once_a_process
from .vulkan.kind import Vulkan
from .vulkan.loader import INSTALL

#: DeviceInfo.api → the kind of device.
KINDS: dict[str, DeviceKind] = {"Vulkan": Vulkan(), "CPU": Cpu(), "emulated": Emulated()}


@once_a_process
def devices() -> tuple[DeviceInfo, ...]:
    """All devices, best first: usable ones, then by their sort. Raises VulkanUnavailable where no kind of device is
    installed, and RuntimeError where the process is ending."""
    found: list[DeviceInfo] = []
    failed: list[VulkanUnavailable] = []
    # The processor needs no driver, so none is looked for.
    alone = "emulated" if settings.emulated_profile() is not None else "CPU" if is_asked_for() else None
    for kind in KINDS.values() if alone is None else (KINDS[alone],):
        try:
            found += kind.devices()
        except VulkanUnavailable as error:
            failed.append(error)
    if not found and failed:
        raise failed[0]
    return tuple(sorted(found, key=lambda device: (bool(device.lacks), SORTS.index(device.kind))))


def open_device(device: DeviceInfo, again: bool = False) -> OpenDevice:
    """As DeviceKind.open(), whatever the device's kind."""
    return KINDS[device.api].open(device, again)


def select(found: Sequence[DeviceInfo], wanted: str | None = None) -> DeviceInfo:
    """The device to use: the first of ``found``, or the one that ``wanted`` (TRITON_SPIRV_DEVICE) names.

    ``wanted`` is an index into ``found`` (one or two digits), a UUID (with or without hyphens), or a part of the name
    ("4090", say), in any case.
    Raises VulkanUnavailable if there is none, it is not there, or it lacks something required.
    """
    listing = "; ".join(f"{index}: {device.describe()}" for index, device in enumerate(found))
    if not found:
        raise VulkanUnavailable("no Vulkan device was found; " + "; ".join(kind.remedy() for kind in KINDS.values()))
    chosen = found[0]
    if wanted:
        matching = _matching(found, wanted)
        if not matching:
            raise VulkanUnavailable(
                f"TRITON_SPIRV_DEVICE={wanted!r} matches no Vulkan device; the devices are {listing}"
            )
        chosen = matching[0]
    if chosen.lacks:
        raise VulkanUnavailable(
            f"{chosen.describe()} cannot run Triton kernels: it lacks {', '.join(chosen.lacks)}; "
            f"the Vulkan devices are {listing}; Mesa's CPU driver has all that is needed: "
            f"{INSTALL}"
        )
    return chosen


#: A longer number is a part of a name: no machine has a hundred devices.
_INDEX_DIGITS = 2


def _matching(found: Sequence[DeviceInfo], wanted: str) -> list[DeviceInfo]:
    if wanted.isdecimal() and len(wanted) <= _INDEX_DIGITS:
        return [found[int(wanted)]] if int(wanted) < len(found) else []
    if settings.emulated_profile() is not None:
        return list(found)
    plain = wanted.replace("-", "").lower()
    by_uuid = [device for device in found if device.uuid == plain]
    return by_uuid or [device for device in found if wanted.lower() in device.name.lower()]


def is_chosen() -> bool:
    """Whether TRITON_SPIRV_DEVICE or LOCAL_RANK says which device this process uses."""
    return bool(settings.DEVICE.get() or os.environ.get("LOCAL_RANK"))


def choose(found: Sequence[DeviceInfo]) -> tuple[DeviceInfo, str]:
    """The device that this process uses, and why. Raises VulkanUnavailable, and ValueError on a wrong LOCAL_RANK.

    TRITON_SPIRV_DEVICE decides. Without it, where LOCAL_RANK is set (torchrun does so), the ranks share the devices of
    the best kind in turn; otherwise it is the best device.
    """
    wanted = settings.DEVICE.get()
    if wanted:
        return select(found, wanted), f"TRITON_SPIRV_DEVICE={wanted}"
    best = select(found)
    rank = os.environ.get("LOCAL_RANK", "")
    if not rank:
        return best, "the first of the best kind"
    if not rank.isdecimal():
        raise ValueError(f"LOCAL_RANK={rank!r} is not a number")
    alike = [device for device in found if device.kind == best.kind and not device.lacks]
    return alike[int(rank) % len(alike)], f"LOCAL_RANK={rank}, of {len(alike)} {best.kind} device(s)"


def selected() -> DeviceInfo:
    """The device that this process uses. Raises VulkanUnavailable."""
    return choose(devices())[0]
