"""How long a submission may take on a device, before its driver ends it and the device is lost with it."""

from __future__ import annotations

from pathlib import Path

from ... import settings
from .device_info import VulkanDeviceInfo

#: Where amdgpu says after how many milliseconds it ends a job: one number, or those of graphics, compute, copies and
#: video; 0 and less: never (Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c, parameter lockup_timeout).
LOCKUP_TIMEOUT = Path("/sys/module/amdgpu/parameters/lockup_timeout")
_COMPUTE = 1
#: Drivers of GPUs that amdgpu runs.
ON_AMDGPU = frozenset({"amd_proprietary", "amd_open_source", "mesa_radv"})


def lockup_seconds(text: str) -> float | None:
    """What the parameter says of jobs of compute queues: seconds, infinity for no limit; None: the default."""
    parts = [part.strip() for part in text.split(",")]
    try:
        numbers = [int(part) for part in parts if part]
    except ValueError:
        return None
    if not numbers:
        return None
    milliseconds = numbers[_COMPUTE] if len(numbers) > _COMPUTE else numbers[0]
    return milliseconds / 1000 if milliseconds > 0 else float("inf")


def read_lockup_timeout(path: Path = LOCKUP_TIMEOUT) -> float | None:
    """The parameter of this machine's amdgpu; None if there is none, or it is the default."""
    try:
        return lockup_seconds(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def job_seconds(device: VulkanDeviceInfo, path: Path = LOCKUP_TIMEOUT) -> float | None:
    """How long a submission may take: TRITON_SPIRV_SUBMISSION_SECONDS, half of amdgpu's limit where that is set, or
    what field_reports.py says of the driver; None: any time."""
    asked = settings.SUBMISSION_SECONDS.get()
    if asked is not None:
        return asked
    limit = read_lockup_timeout(path) if device.driver in ON_AMDGPU else None
    if limit is None:
        return device.care.job_seconds
    return None if limit == float("inf") else limit / 2
