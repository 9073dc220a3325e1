"""Errors for figures that code for NVIDIA's GPUs wants and Vulkan does not report: what is missing, and what to use."""

from __future__ import annotations

from typing import NoReturn

_TARGET = "what kernels are compiled for is triton.runtime.driver.active.get_current_target().arch"
_MONITORED = "Vulkan does not report it: use the vendor's tool"
_GRAPHS = 'use triton.backends.spirv.runtime.Graph, or torch.compile(mode="reduce-overhead")'
_MEMORY = "the device has one pool, without a limit of its own: torch.spirv.empty_cache() gives idle memory back"
_STATISTICS = "use torch.spirv.memory_stats() and reset_peak_memory_stats()"
#: Names that drivers of CUDA, their device interfaces and modules of torch's other devices have → what to use instead.
_NAMES = {
    "get_device_capability": "compute capabilities are NVIDIA's. What a device can do is in "
    "triton.runtime.driver.active.get_current_target().arch",
    "get_device_properties": "the limits of a device are in "
    "triton.runtime.driver.active.utils.get_device_properties(0)",
    **dict.fromkeys(("get_arch_list", "get_gencode_flags"), _TARGET),
    **dict.fromkeys(("clock_rate", "power_draw", "temperature", "utilization", "memory_usage"), _MONITORED),
    "list_gpu_processes": _MONITORED,
    "device_memory_used": "torch.spirv.mem_get_info() has what is free and what there is",
    **dict.fromkeys(("graph", "graph_pool_handle", "make_graphed_callables"), _GRAPHS),
    **dict.fromkeys(("MemPool", "use_mem_pool", "change_current_allocator"), _MEMORY),
    **dict.fromkeys(("get_per_process_memory_fraction", "set_per_process_memory_fraction"), _MEMORY),
    **dict.fromkeys(("memory_stats_as_nested_dict", "reset_accumulated_memory_stats"), _STATISTICS),
    **dict.fromkeys(("StreamContext", "streams"), "use torch.spirv.stream(s) and torch.Stream"),
    "get_stream_from_external": "a device has one queue: use torch.spirv.current_stream()",
    "device_of": "use torch.spirv.device(x.device)",
    "is_tf32_supported": "TF32 is NVIDIA's. Products of float32 are computed in float32",
}


def missing_attribute(owner: object, name: str) -> AttributeError:
    """The error for a name that ``owner``, a driver or device interface, does not have."""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{text}: {_NAMES[name]}" if name in _NAMES else text, name=name, obj=owner)


class WithoutVendorNames:
    """A class whose objects say what to use instead of what only CUDA's have; ``hasattr`` is False for that."""

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(self, name)
