"""Running compiled kernels on Vulkan. Imports nothing of Triton, so that it works where Triton is not installed.

``import triton`` imports this package: each name is imported from its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ahead_of_time import LoadedKernel, TensorDescriptor, load
    from .allocator import OutOfDeviceMemory
    from .arrays import Array, array
    from .buffer import DeviceBuffer, empty, from_numpy, full, zeros
    from .bundle import Bundle, load_bundle
    from .errors import KernelRejected, ValidationError, VulkanUnavailable
    from .graph import Graph
    from .kernel_file import IncompatibleModule
    from .reports.outside import OutOfBounds
    from .reports.races import SharedMemoryRace

#: Name → the module here that has it.
_MODULES = {
    "Array": "arrays",
    "Bundle": "bundle",
    "DeviceBuffer": "buffer",
    "Graph": "graph",
    "IncompatibleModule": "kernel_file",
    "KernelRejected": "errors",
    "LoadedKernel": "ahead_of_time",
    "OutOfBounds": "reports.outside",
    "OutOfDeviceMemory": "allocator",
    "SharedMemoryRace": "reports.races",
    "TensorDescriptor": "ahead_of_time",
    "ValidationError": "errors",
    "VulkanUnavailable": "errors",
    "array": "arrays",
    "empty": "buffer",
    "from_numpy": "buffer",
    "full": "buffer",
    "load": "ahead_of_time",
    "load_bundle": "bundle",
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
