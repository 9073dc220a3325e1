"""A device as Triton names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton.backends.compiler import GPUTarget

if TYPE_CHECKING:  # `import triton` imports this file
    from .capabilities import Capabilities

#: The name of this backend's targets.
BACKEND = "spirv"


def target_of(capabilities: Capabilities) -> GPUTarget:
    """The target of kernels for a device: all that the compiler may know of it, and so part of the cache key."""
    return GPUTarget(BACKEND, capabilities.arch(), capabilities.subgroup_size)
