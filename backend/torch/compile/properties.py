"""A Vulkan device's figures under the names that torch gives them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from triton.runtime.driver import driver as config

from ... import runtime
from ...availability import compile_only
from ...compiler import sources_digest


@dataclass(frozen=True)
class InductorProperties:
    """What Inductor reads of a device. It goes to compile workers, by pickling.

    ``arch``: the device's capabilities, as text: GPUTarget.arch. ``multi_processor_count``: compute units, or an
    estimate of them (runtime/vulkan/compute_units.py); ``shared_memory_per_block`` in bytes.
    """

    name: str
    arch: str
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    shared_memory_per_block: int
    total_memory: int
    #: CUDA's compute capability, and figures of occupancy that are derived from it: Vulkan has none.
    major: None = None
    regs_per_multiprocessor: None = None
    max_threads_per_multi_processor: None = None


@cache
def device_properties(index: int) -> InductorProperties:
    """The properties of the device with that index. Raises DeviceUnavailable if it cannot run kernels."""
    driver = config.active
    known = driver.utils.get_device_properties(index)
    return InductorProperties(
        name=known.get("name", "spirv"),
        arch=known["arch"],
        multi_processor_count=known["multiprocessor_count"],
        warp_size=known["warpSize"],
        max_threads_per_block=known["max_threads_per_block"],
        shared_memory_per_block=known["max_shared_mem"],
        total_memory=known.get("total_memory", 0),
    )


def _devices() -> list[str]:
    """What generated code may depend on of each Vulkan device; the same text in each process."""
    if compile_only():
        return [str(config.active.get_current_target().arch)]
    return [
        f"{device.uuid} {device.driver_version} {device.capabilities and device.capabilities.arch()} {device.matrices} "
        f"{device.compute_units}"
        for device in runtime.devices()
    ]


def cache_key(others: str) -> str:
    """The key of what Inductor generates: ``others`` with this backend's sources and the Vulkan devices in their order,
    because generated code names a device by its number."""
    return hashlib.sha256("\n".join([others, sources_digest(), *_devices()]).encode()).hexdigest()
