"""The devices that can be emulated: those of the profiles, and of files of profiles."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...capabilities import Profile, profiles, read_profile
from ...settings import EMULATE
from ..cpu.devices import CpuDeviceInfo, threads
from ..cpu.devices import capabilities as processor_capabilities
from ..device_kind import ComputeUnits
from ..errors import DeviceUnavailable

_FILE = ".json"


@dataclass(frozen=True, eq=False)
class EmulatedDeviceInfo(CpuDeviceInfo):
    """A device that the processor stands in for. Its memory is the processor's."""

    api: ClassVar[str] = "emulated"
    documented: ClassVar[bool] = True

    @property
    def interface(self) -> str:
        """Implements DeviceInfo.interface()."""
        return "emulated"


def emulated(name: str) -> EmulatedDeviceInfo:
    """The device of a profile's name, or of a file that holds a profile (``*.json``). Raises DeviceUnavailable where
    there is none."""
    profile = _profile(name)
    if profile.capabilities.processor:
        raise DeviceUnavailable(
            f"TRITON_SPIRV_DEVICE={EMULATE}{name} is the profile of a processor, not of a GPU; "
            "TRITON_SPIRV_DEVICE=cpu is the processor itself"
        )
    host = processor_capabilities()
    title = f"{profile.name}, emulated"
    return EmulatedDeviceInfo(
        name=title,
        kind="other",
        uuid=hashlib.sha256(title.encode()).hexdigest()[:32],
        driver="emulated",
        lacks=() if host is not None else ("AVX2 and FMA of the processor",),
        capabilities=None if host is None else profile.capabilities,
        compute_units=ComputeUnits(threads()),
    )


def _profile(name: str) -> Profile:
    if name.endswith(_FILE):
        try:
            return read_profile(Path(name))
        except (OSError, ValueError) as error:
            raise DeviceUnavailable(f"TRITON_SPIRV_DEVICE={EMULATE}{name}: {error}") from None
    found = {one: profile for one, profile in profiles().items() if not profile.capabilities.processor}
    if name not in found:
        raise DeviceUnavailable(
            f"TRITON_SPIRV_DEVICE={EMULATE}{name} names no GPU's profile; use one of {', '.join(found)}, or the path "
            "of a profile's file"
        )
    return found[name]
