"""The processor of this machine, as a device that can be chosen."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ... import settings
from ...capabilities import PROFILES, Capabilities
from ...system import usable_processors
from ..device_kind import ComputeUnits, DeviceInfo
from ..native_module import native
from ..once import once_a_process

#: What TRITON_SPIRV_DEVICE calls it.
NAME = "cpu"

#: Memory that the system could give to this process without swapping, in kB, and all that there is.
_FREE, _TOTAL = "MemAvailable", "MemTotal"
#: Limits of a group of processes: of version 2, then of version 1. Each has a file of what is used.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def threads() -> int:
    """How many threads a launch may use: TRITON_SPIRV_CPU_THREADS, or one for each processor that this process may
    run on."""
    return settings.CPU_THREADS.get() or usable_processors()


def model() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.machine()


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
        values = {}
        try:
            for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
                key, _, value = line.partition(":")
                values[key] = int(value.split()[0]) * 1024
        except (OSError, ValueError, IndexError):
            pass
        free, total = values.get(_FREE), values.get(_TOTAL, 0)
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
    profile = PROFILES.get(f"cpu-{level}")
    return None if profile is None else replace(profile, processor=level)


@once_a_process
def device() -> CpuDeviceInfo:
    """The processor of this machine."""
    found = capabilities()
    name = f"CPU ({model()})"
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
