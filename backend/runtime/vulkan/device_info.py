"""A Vulkan device as probed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ...field_reports import NO_CARE, Care, Facts, rows_for
from ..device_kind import DeviceInfo
from .memory_heaps import device_memory


@dataclass(frozen=True, eq=False, repr=False)
class VulkanDeviceInfo(DeviceInfo):
    """A Vulkan device as probed.

    ``handle`` is its VkPhysicalDevice. ``max_subgroups`` is maxComputeWorkgroupSubgroups. ``chooses_subgroup_size``:
    pipelines may name the size of their subgroups; where they may not, there is one size only. ``facts`` and ``care``:
    what is asked about its driver in field_reports.py, and what follows. ``luid``: its locally unique identifier, "" if
    it has none. ``also_listed_by``: other drivers that have the same GPU (twins.py).
    """

    api: ClassVar[str] = "Vulkan"

    handle: Any = None
    api_version: tuple[int, int] = (0, 0)
    vulkan_features: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    max_subgroups: int = 0
    chooses_subgroup_size: bool = True
    facts: Facts | None = None
    care: Care = NO_CARE
    luid: str = ""
    also_listed_by: tuple[str, ...] = ()

    @property
    def interface(self) -> str:
        """Such as ``Vulkan 1.3``."""
        return f"{self.api} {self.api_version[0]}.{self.api_version[1]}"

    def details(self) -> dict[str, Any]:
        """Implements DeviceInfo.details(): the version of Vulkan, the extensions that are used, other drivers that list
        the GPU, and which rows of field_reports.py hold for it."""
        return {
            "vulkan": self.interface.removeprefix(f"{self.api} "),
            "extensions": sorted(self.extensions),
            "also_listed_by": list(self.also_listed_by),
            "reports": [row.number for row in rows_for(self.facts)] if self.facts is not None else [],
        }

    def memory(self) -> tuple[int | None, int]:
        """Implements DeviceInfo.memory(), by VK_EXT_memory_budget."""
        return device_memory(self.handle, self.kind == "integrated")
