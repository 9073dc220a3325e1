"""Running compiled kernels on Vulkan. Imports nothing of Triton, so that it works where Triton is not installed."""

from __future__ import annotations

from .ahead_of_time import LoadedKernel, TensorDescriptor, load
from .allocator import OutOfDeviceMemory
from .arrays import Array, array
from .buffer import DeviceBuffer, empty, from_numpy, full, zeros
from .errors import KernelRejected, OutOfBounds, ValidationError, VulkanUnavailable
from .graph import Graph
from .kernel_file import IncompatibleModule

__all__ = [
    "Array",
    "DeviceBuffer",
    "Graph",
    "IncompatibleModule",
    "KernelRejected",
    "LoadedKernel",
    "OutOfBounds",
    "OutOfDeviceMemory",
    "TensorDescriptor",
    "ValidationError",
    "VulkanUnavailable",
    "array",
    "empty",
    "from_numpy",
    "full",
    "load",
    "zeros",
]
