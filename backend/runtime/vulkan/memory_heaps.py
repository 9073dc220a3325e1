"""How much memory a device has, and how much of it is free."""

from __future__ import annotations

from typing import Any

from ..ending import ENDING
from .device_features import device_extensions
from .loader import Chain, vulkan

_BUDGET = "VkPhysicalDeviceMemoryBudgetPropertiesEXT"
_DEVICE_LOCAL = 1  # VK_MEMORY_HEAP_DEVICE_LOCAL_BIT


def device_memory(physical: Any) -> tuple[int | None, int]:
    """(bytes that this process may still allocate, bytes that there are) in the heaps of a VkPhysicalDevice's own.

    The first is None if the driver does not tell it (VK_EXT_memory_budget). Raises RuntimeError if the process is
    ending.
    """
    properties = "VkPhysicalDeviceMemoryProperties2"
    with ENDING.awaited():
        has_budget = "VK_EXT_memory_budget" in device_extensions(physical)
        chain = Chain((properties, _BUDGET) if has_budget else (properties,))
        vulkan().lib.vkGetPhysicalDeviceMemoryProperties2(physical, chain.head)
    memory = chain[properties].memoryProperties
    own = [index for index in range(memory.memoryHeapCount) if memory.memoryHeaps[index].flags & _DEVICE_LOCAL]
    total = sum(memory.memoryHeaps[index].size for index in own)
    if not has_budget:
        return None, total
    budget = chain[_BUDGET]
    return sum(max(0, budget.heapBudget[index] - budget.heapUsage[index]) for index in own), total
