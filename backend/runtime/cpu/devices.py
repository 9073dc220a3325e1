"""The processor of this machine, as a device that can be chosen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ... import settings
from ...capabilities import PROFILES, Capabilities
from ...cpu.host import level_of
from ...system import machine, memory, processor_name, usable_processors
from ..device_kind import ComputeUnits, DeviceInfo
from ..native_module import native
from ..once import once_a_process

#: What TRITON_SPIRV_DEVICE calls it.
NAME = "cpu"

#: Limits of a group of processes: of version 2, then of version 1. Each has a file of what is used.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def threads() -> int:
    """How many threads a launch may use: TRITON_SPIRV_CPU_THREADS, or one for each processor that this process may
    run on."""
    return settings.CPU_THREADS.get() or usable_processors()


@dataclass(frozen=True, eq=False)
class CpuDeviceInfo(DeviceInfo):
    """The processor. ``driver`` is ``cpu``; ``compute_units`` are the threads of a launch."""

    api: ClassVar[str] = "CPU"

    @property
    def interface(self) -> str:
        """Implements DeviceInfo.interface()."""
        return "machine code"

    def is_called(self, name: str) -> bool:
        """Implements DeviceInfo.is_called(). A part of the processor's name is none: ``radeon`` means a GPU."""
        return name.lower() == NAME

    def memory(self) -> tuple[int | None, int]:
        """Implements DeviceInfo.memory(): of the machine, or of the group of processes if that has less."""
        free, total = memory()
        for limit, used in _GROUPS:
            try:
                most, now = int(Path(limit).read_text()), int(Path(used).read_text())
            except (OSError, ValueError):  # there is no such group, or it has no limit
                continue
            if not total or most < total:
                total, free = most, min(most - now, most if free is None else free)
        return free, total


def capabilities() -> Capabilities | None:
    """What kernels may ask of this processor. None if it lacks instructions that are needed."""
    level = native().processor_level()
    profile = PROFILES.get(f"cpu-{level_of(level)[0]}")
    return None if profile is None else replace(profile, processor=level)


@once_a_process
def device() -> CpuDeviceInfo:
    """The processor of this machine."""
    found = capabilities()
    name = f"CPU ({processor_name() or machine()})"
    return CpuDeviceInfo(
        name=name,
        kind="cpu",
        uuid=hashlib.sha256(name.encode()).hexdigest()[:32],
        driver=NAME,
        lacks=() if found is not None else ("AVX2 and FMA",),
        capabilities=found,
        driver_version=native().processor_level(),
        compute_units=ComputeUnits(threads()),
    )
