"""Running compiled kernels. Imports nothing of Triton, so it works without Triton.

``import triton`` imports this package: each name is imported from its module when it is first used. Other packages of
the backend may import its modules, except ``torch/``: this is the one door of torch's device to the runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

# ruff: noqa: F401 - these imports are for type checkers; __getattr__ makes them by the tables below.
if TYPE_CHECKING:
    from .arrays import Array, array
    from .buffer import DeviceBuffer, empty, from_numpy, full, zeros
    from .compiled.ahead_of_time import LoadedKernel, TensorDescriptor, load
    from .compiled.bundle import Bundle, load_bundle
    from .compiled.kernel_file import IncompatibleModule
    from .context import (
        NAME,
        Context,
        current,
        current_device,
        devices,
        index_of_cuda,
        of_device,
        on_device,
        opened,
        set_current_device,
        when_left,
    )
    from .cuda import cuda_index
    from .device_choice import selected
    from .errors import DeviceUnavailable, KernelRejected, ValidationError, ValuesDiffer
    from .launches.graph import Graph, capturing
    from .measuring.measured import capabilities_of
    from .memory.allocator import OutOfDeviceMemory
    from .memory.pinned import PINNED
    from .native_module import native, native_part
    from .reports.launchers import LaterLauncher, raise_reports
    from .reports.outside import OutOfBounds
    from .reports.program_races import ProgramRace
    from .reports.races import SharedMemoryRace
    from .streams import DeviceInterface, Queue, StreamContext, device_index, make_event


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    return {name: module for module, text in names.items() for name in text.split()}


#: Name for users → the module here that has it.
_MODULES = _by_name(
    {
        "arrays": "Array array",
        "compiled.bundle": "Bundle load_bundle",
        "buffer": "DeviceBuffer empty from_numpy full zeros",
        "launches.graph": "Graph",
        "compiled.kernel_file": "IncompatibleModule",
        "errors": "KernelRejected ValidationError ValuesDiffer DeviceUnavailable",
        "compiled.ahead_of_time": "LoadedKernel TensorDescriptor load",
        "reports.outside": "OutOfBounds",
        "memory.allocator": "OutOfDeviceMemory",
        "reports.program_races": "ProgramRace",
        "reports.races": "SharedMemoryRace",
    }
)
#: The same of what torch's device needs besides.
_FOR_TORCH = _by_name(
    {
        "context": "Context NAME current current_device devices index_of_cuda of_device on_device opened "
        "set_current_device when_left",
        "streams": "DeviceInterface Queue StreamContext device_index make_event",
        "reports.launchers": "LaterLauncher raise_reports",
        "memory.pinned": "PINNED",
        "measuring.measured": "capabilities_of",
        "launches.graph": "capturing",
        "cuda": "cuda_index",
        "native_module": "native native_part",
        "device_choice": "selected",
    }
)

__all__ = [*_MODULES, *_FOR_TORCH]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name) or _FOR_TORCH.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
