"""Running compiled kernels. Imports nothing of Triton, so it works without Triton.

``import triton`` imports this package: each name is imported from its module when it is first used. Other packages of
the backend may import its modules, except ``torch/``: this is the one door of torch's device to the runtime.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

#: Name for users → the module here that has it.
_MODULES = {
    "Array": "arrays",
    "Bundle": "compiled.bundle",
    "DeviceBuffer": "buffer",
    "Graph": "launches.graph",
    "IncompatibleModule": "compiled.kernel_file",
    "KernelRejected": "errors",
    "LoadedKernel": "compiled.ahead_of_time",
    "OutOfBounds": "reports.outside",
    "OutOfDeviceMemory": "memory.allocator",
    "ProgramRace": "reports.program_races",
    "SharedMemoryRace": "reports.races",
    "TensorDescriptor": "compiled.ahead_of_time",
    "ValidationError": "errors",
    "ValuesDiffer": "errors",
    "DeviceUnavailable": "errors",
    "array": "arrays",
    "empty": "buffer",
    "from_numpy": "buffer",
    "full": "buffer",
    "load": "compiled.ahead_of_time",
    "load_bundle": "compiled.bundle",
    "zeros": "buffer",
}
#: The same of what torch's device needs besides.
_FOR_TORCH = {
    "Context": "context",
    "DeviceInterface": "streams",
    "LaterLauncher": "reports.launchers",
    "NAME": "context",
    "PINNED": "memory.pinned",
    "Queue": "streams",
    "StreamContext": "streams",
    "capabilities_of": "measuring.measured",
    "capturing": "launches.graph",
    "cuda_index": "cuda",
    "current": "context",
    "current_device": "context",
    "device_index": "streams",
    "devices": "context",
    "make_event": "streams",
    "native": "native_module",
    "native_part": "native_module",
    "index_of_cuda": "context",
    "of_device": "context",
    "on_device": "context",
    "opened": "context",
    "raise_reports": "reports.launchers",
    "selected": "device_choice",
    "set_current_device": "context",
    "when_left": "context",
}

__all__ = [
    "Array",
    "Bundle",
    "Context",
    "DeviceBuffer",
    "DeviceInterface",
    "Graph",
    "IncompatibleModule",
    "KernelRejected",
    "LaterLauncher",
    "LoadedKernel",
    "NAME",
    "OutOfBounds",
    "OutOfDeviceMemory",
    "PINNED",
    "ProgramRace",
    "Queue",
    "StreamContext",
    "SharedMemoryRace",
    "TensorDescriptor",
    "ValidationError",
    "ValuesDiffer",
    "DeviceUnavailable",
    "array",
    "capabilities_of",
    "capturing",
    "cuda_index",
    "current",
    "current_device",
    "device_index",
    "devices",
    "empty",
    "from_numpy",
    "full",
    "load",
    "load_bundle",
    "make_event",
    "native",
    "native_part",
    "index_of_cuda",
    "of_device",
    "on_device",
    "opened",
    "raise_reports",
    "selected",
    "set_current_device",
    "when_left",
    "zeros",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name) or _FOR_TORCH.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
