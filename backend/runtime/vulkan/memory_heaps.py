"""How much memory a device has, and how much of it is free."""

from __future__ import annotations

from typing import Any

from ..ending import ENDING
from .device_features import device_extensions
from .loader import Chain, vulkan

_BUDGET = "VkPhysicalDeviceMemoryBudgetPropertiesEXT"
_DEVICE_LOCAL = 1  # VK_MEMORY_HEAP_DEVICE_LOCAL_BIT


def has_budget(physical: Any) -> bool:
    """Whether the driver tells how much of its memory a process may use."""
    return "VK_EXT_memory_budget" in device_extensions(physical)


def device_memory(physical: Any, integrated: bool = False) -> tuple[int | None, int]:
    """(bytes that this process may still allocate, bytes that there are) in the heaps of a VkPhysicalDevice's own. Of
    an ``integrated`` GPU all heaps are.

    The first is None if the driver does not tell it (VK_EXT_memory_budget). Raises RuntimeError if the process is
    ending.
    """
    properties = "VkPhysicalDeviceMemoryProperties2"
    with ENDING.awaited():
        told = has_budget(physical)
        chain = Chain((properties, _BUDGET) if told else (properties,))
        vulkan().lib.vkGetPhysicalDeviceMemoryProperties2(physical, chain.head)
    memory = chain[properties].memoryProperties
    heaps = range(memory.memoryHeapCount)
    own = [index for index in heaps if integrated or memory.memoryHeaps[index].flags & _DEVICE_LOCAL]
    total = sum(memory.memoryHeaps[index].size for index in own)
    if not told:
        return None, total
    budget = chain[_BUDGET]
    return sum(max(0, budget.heapBudget[index] - budget.heapUsage[index]) for index in own), total
