"""Running compiled kernels on Vulkan. Imports nothing of Triton, so it works without Triton.

``import triton`` imports this package: each name is imported from its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arrays import Array, array
    from .buffer import DeviceBuffer, empty, from_numpy, full, zeros
    from .compiled.ahead_of_time import LoadedKernel, TensorDescriptor, load
    from .compiled.bundle import Bundle, load_bundle
    from .compiled.kernel_file import IncompatibleModule
    from .errors import KernelRejected, ValidationError, VulkanUnavailable
    from .launches.graph import Graph
    from .memory.allocator import OutOfDeviceMemory
    from .reports.outside import OutOfBounds
    from .reports.races import SharedMemoryRace

#: Name → the module here that has it.
_MODULES = {
    "Array": "arrays",
    "Bundle": "compiled.bundle",
    "DeviceBuffer": "buffer",
    "Graph": "launches.graph",
    "IncompatibleModule": "compiled.kernel_file",
    "KernelRejected": "errors",
    "LoadedKernel": "compiled.ahead_of_time",
    "OutOfBounds": "reports.outside",
    "OutOfDeviceMemory": "memory.allocator",
    "SharedMemoryRace": "reports.races",
    "TensorDescriptor": "compiled.ahead_of_time",
    "ValidationError": "errors",
    "VulkanUnavailable": "errors",
    "array": "arrays",
    "empty": "buffer",
    "from_numpy": "buffer",
    "full": "buffer",
    "load": "compiled.ahead_of_time",
    "load_bundle": "compiled.bundle",
    "zeros": "buffer",
}

__all__ = [
    "Array",
    "Bundle",
    "DeviceBuffer",
    "Graph",
    "IncompatibleModule",
    "KernelRejected",
    "LoadedKernel",
    "OutOfBounds",
    "OutOfDeviceMemory",
    "SharedMemoryRace",
    "TensorDescriptor",
    "ValidationError",
    "VulkanUnavailable",
    "array",
    "empty",
    "from_numpy",
    "full",
    "load",
    "load_bundle",
    "zeros",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
