"""The devices of this machine, of all kinds, and which of them a process uses."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .. import settings
from .cpu.devices import CpuDeviceInfo
from .cpu.kind import Cpu
from .device_kind import SORTS, DeviceInfo, DeviceKind, OpenDevice
from .emulated.devices import EmulatedDeviceInfo
from .emulated.kind import Emulated
from .errors import DeviceUnavailable
from .once import once_a_process
from .vulkan.kind import Vulkan
from .vulkan.presence import gpu_may_be_there

#: DeviceInfo.api → the kind of device.
KINDS: dict[str, DeviceKind] = {"Vulkan": Vulkan(), "CPU": Cpu(), "emulated": Emulated()}


class _Found:
    """The devices of this machine, best first, and why a kind has none, where something is not installed."""

    def __init__(self) -> None:
        self.devices: tuple[DeviceInfo, ...] = ()
        self.failed: list[DeviceUnavailable] = []
        for kind in KINDS.values():
            try:
                self.devices += tuple(kind.devices())
            except DeviceUnavailable as error:
                self.failed.append(error)
        self.devices = tuple(sorted(self.devices, key=_rank))


def _rank(device: DeviceInfo) -> tuple[bool, int, bool]:
    """Usable devices come first, then GPUs, then the processor itself, then drivers that run on it."""
    return bool(device.lacks), SORTS.index(device.kind), device.api != CpuDeviceInfo.api


_found = once_a_process(_Found)


def installed() -> tuple[DeviceInfo, ...]:
    """All devices that can be chosen, best first: usable ones, then by their sort. Raises DeviceUnavailable where there
    is none, and RuntimeError where the process is ending."""
    found = _found()
    if not found.devices and found.failed:
        raise found.failed[0]
    return found.devices


def devices() -> tuple[DeviceInfo, ...]:
    """The first of installed(), which this process chooses from: the processor alone where it is asked for, or where
    nothing else is and there is no GPU. No driver is looked for then. Raises as installed()."""
    if settings.emulated_profile() is not None:
        return tuple(KINDS[EmulatedDeviceInfo.api].devices())
    wanted = settings.DEVICE.get()
    processors = tuple(KINDS[CpuDeviceInfo.api].devices())
    if wanted:
        return tuple(one for one in processors if one.is_called(wanted)) or installed()
    usable = processors and not processors[0].lacks
    return processors if usable and not gpu_may_be_there() else installed()


def open_device(device: DeviceInfo, again: bool = False) -> OpenDevice:
    """Opens a device, as DeviceKind.open() says, whatever the device's kind."""
    return KINDS[device.api].open(device, again)


def select(found: Sequence[DeviceInfo], wanted: str | None = None) -> DeviceInfo:
    """The device to use: the first of ``found``, or the one that ``wanted`` (TRITON_SPIRV_DEVICE) names.

    ``wanted`` is an index into ``found`` (one or two digits), a UUID (with or without hyphens), ``cpu``, or a part of
    the name of a Vulkan device ("4090", say), in any case.
    Raises DeviceUnavailable if there is none, it is not there, or it lacks something required.
    """
    listing = "; ".join(f"{index}: {device.describe()}" for index, device in enumerate(found))
    if not found:
        raise DeviceUnavailable("no device was found; " + "; ".join(kind.remedy() for kind in KINDS.values()))
    chosen = found[0]
    if wanted:
        matching = _matching(found, wanted)
        if not matching:
            why = "".join(f"; {error}" for error in _found().failed)
            raise DeviceUnavailable(f"TRITON_SPIRV_DEVICE={wanted!r} matches no device; the devices are {listing}{why}")
        chosen = matching[0]
    if chosen.lacks:
        others = "; ".join(kind.remedy() for kind in KINDS.values() if kind is not KINDS[chosen.api])
        raise DeviceUnavailable(
            f"{chosen.describe()} cannot run Triton kernels: it lacks {', '.join(chosen.lacks)}; "
            f"the devices are {listing}; {others}"
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
    return by_uuid or [device for device in found if device.is_called(wanted)]


def is_chosen() -> bool:
    """Whether TRITON_SPIRV_DEVICE or LOCAL_RANK says which device this process uses."""
    return bool(settings.DEVICE.get() or os.environ.get("LOCAL_RANK"))


def choose(found: Sequence[DeviceInfo]) -> tuple[DeviceInfo, str]:
    """The device that this process uses, and why. Raises DeviceUnavailable, and ValueError on a wrong LOCAL_RANK.

    TRITON_SPIRV_DEVICE decides. Without it, where LOCAL_RANK is set (torchrun does so), the ranks share the devices of
    the best kind in turn; otherwise it is the best device.
    """
    wanted = settings.DEVICE.get()
    if wanted:
        return select(found, wanted), f"TRITON_SPIRV_DEVICE={wanted}"
    best = select(found)
    rank = os.environ.get("LOCAL_RANK", "")
    if not rank:
        return best, _why(best)
    if not rank.isdecimal():
        raise ValueError(f"LOCAL_RANK={rank!r} is not a number")
    alike = [device for device in found if _rank(device) == _rank(best)]
    return alike[int(rank) % len(alike)], f"LOCAL_RANK={rank}, of {len(alike)} {best.kind} device(s)"


def _why(best: DeviceInfo) -> str:
    if best.api != CpuDeviceInfo.api:
        return "the first of the best kind"
    failed = _found().failed if gpu_may_be_there() else []
    return "no GPU was found" + "".join(f": {error}" for error in failed)


def selected() -> DeviceInfo:
    """The device that this process uses. Raises DeviceUnavailable."""
    return choose(devices())[0]
