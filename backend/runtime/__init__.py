"""Running compiled kernels on Vulkan. Imports nothing of Triton, so that it works where Triton is not installed."""
from __future__ import annotations

from .arrays import Array, array
from .errors import KernelRejected, ValidationError, VulkanUnavailable

__all__ = ["Array", "KernelRejected", "ValidationError", "VulkanUnavailable", "array"]
