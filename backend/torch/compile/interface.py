"""The device interface that Dynamo and Inductor ask: devices, streams, properties."""

from __future__ import annotations

from typing import Any

import torch
from triton.runtime.driver import driver as config

from ... import runtime
from ...availability import is_active
from ...runtime import DeviceInterface as Vulkan
from ...runtime import Queue, device_index, make_event
from .broken import BROKEN
from .properties import InductorProperties, device_properties

_vulkan = Vulkan()

#: The device that a compile worker was given, and the properties that were read before it was forked.
_worker: dict[str, Any] = {"device": None, "properties": {}}


def why_unavailable() -> str | None:
    """Why Inductor cannot compile for the device, with what to do; None if it can."""
    if BROKEN:
        return "; ".join(BROKEN.values())
    if is_active():
        return None
    try:
        active = type(config.active).__name__
    except RuntimeError as error:
        return f"Triton has no driver for the device: {error}"
    return (
        f"Triton's active driver is {active}, which cannot launch kernels on '{runtime.NAME}' tensors: "
        "set TRITON_SPIRV_BACKEND=1 before triton is imported"
    )


def _index(device: Any) -> int:
    """The index among Vulkan's of a device of any type: a CPU tensor's kernels run on the current device."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device) and device.type != runtime.NAME:
        device = runtime.index_of_cuda(device.index) if device.type == "cuda" else None
    if device is None or (isinstance(device, torch.device) and device.index is None):
        return int(config.active.get_current_device())
    return device_index(device)


def properties_of(device: Any = None) -> InductorProperties:
    """The properties of a torch device, a string, an index, or the current one; as they were read before this process
    was forked, where it is a compile worker."""
    index = _index(device)
    known: dict[int, InductorProperties] = _worker["properties"]
    if index not in known:
        known[index] = device_properties(index)
    return known[index]


class _Worker:
    """What a compile worker may ask, which has no device."""

    @staticmethod
    def set_device(device: int) -> None:
        """The device to compile for."""
        _worker["device"] = device

    @staticmethod
    def current_device() -> int:
        """The device to compile for."""
        given = _worker["device"]
        return int(config.active.get_current_device()) if given is None else int(given)

    get_device_properties = staticmethod(properties_of)


class SPIRVInterface:
    """Methods of Dynamo's DeviceInterface: internals/ puts its class below."""

    Worker = _Worker
    Event = staticmethod(make_event)
    Stream = Queue
    device = staticmethod(_vulkan.device)
    set_device = staticmethod(_vulkan.set_device)
    synchronize = staticmethod(_vulkan.synchronize)
    stream = staticmethod(_vulkan.stream)
    current_stream = staticmethod(_vulkan.current_stream)
    get_device_properties = staticmethod(properties_of)

    @staticmethod
    def is_available() -> bool:
        """Whether Triton's kernels go to a device of this backend."""
        return is_active()

    @staticmethod
    def device_count() -> int:
        """Number of this process's GPUs, or of its devices where it has no GPU."""
        return _vulkan.device_count() if is_active() else 0

    @staticmethod
    def current_device() -> int:
        """Index of this thread's device: torch.cuda's number of it where a program works on CUDA tensors."""
        on_cuda = runtime.index_of_cuda(None) is not None
        return int(torch.cuda.current_device() if on_cuda else config.active.get_current_device())

    @staticmethod
    def exchange_device(device: int) -> int:
        """Makes a device the current one; the one before."""
        before = SPIRVInterface.current_device()
        if device != before:
            on_cuda = runtime.index_of_cuda(None) is not None
            (torch.cuda.set_device if on_cuda else config.active.set_current_device)(device)
        return before

    @staticmethod
    def maybe_exchange_device(device: int | None) -> int:
        """Does what exchange_device() does, and nothing but -1 for a negative index."""
        return -1 if device is None or device < 0 else SPIRVInterface.exchange_device(device)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        """What launches are given as their stream: a device has one queue."""
        return Queue.stream_id

    set_stream = staticmethod(_vulkan.set_stream)

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        """The device's capabilities as text, which is what Triton compiles for."""
        return properties_of(device).arch

    #: bfloat16 is computed in single precision on every device. Other types that one lacks are refused by name when
    #: a kernel is compiled.
    is_bf16_supported = is_dtype_supported = is_triton_capable = staticmethod(lambda *_, **__: True)

    @staticmethod
    def memory_allocated(device: Any = None) -> int:
        """Bytes in use by tensors."""
        return int(runtime.of_device(_index(device)).memory.pool.allocated)

    @staticmethod
    def raise_if_triton_unavailable(device: Any = None) -> None:
        """Raises RuntimeError if kernels for the device cannot be launched in this process."""
        reason = why_unavailable()
        if reason is not None:
            raise RuntimeError(reason)
