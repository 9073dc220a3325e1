"""Running compiled kernels on Vulkan. Imports nothing of Triton, so that it works where Triton is not installed."""
from __future__ import annotations

from .allocator import OutOfDeviceMemory
from .arrays import Array, array
from .buffer import DeviceBuffer, empty, from_numpy, full, zeros
from .errors import KernelRejected, ValidationError, VulkanUnavailable

__all__ = ["Array", "DeviceBuffer", "KernelRejected", "OutOfDeviceMemory", "ValidationError", "VulkanUnavailable",
           "array", "empty", "from_numpy", "full", "zeros"]
