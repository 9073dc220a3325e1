"""The functions of CUDA's driver that sharing memory and semaphores with Vulkan takes."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

from ...system import CUDA_DRIVER, is_loaded

#: Of CUpointer_attribute, and of CUmemorytype.
_MEMORY_TYPE, _DEVICE_ORDINAL = 2, 9
#: Of CUdevice_attribute: the compute capability's parts.
_CAPABILITY = (75, 76)
_MEMORY_OF_A_DEVICE = 2

_POSIX_FD = 1
_NON_BLOCKING = 1
_TIMELINE_FD = 9


class CudaError(RuntimeError):
    """A call of the CUDA driver that failed."""


@cache
def _libcuda() -> ctypes.CDLL:
    return ctypes.CDLL(CUDA_DRIVER)


def _is_loaded() -> bool:
    """Whether this process has CUDA's driver already."""
    return is_loaded(CUDA_DRIVER)


def _call(name: str, *args: Any) -> None:
    result = getattr(_libcuda(), name)(*args)
    if result:
        raise CudaError(f"{name} failed: CUDA error {result}")


def compute_capability(uuid: str) -> tuple[int, int]:
    """The compute capability of the GPU with this UUID, 32 hexadecimal digits. Raises CudaError if CUDA has no such
    GPU, or is absent."""
    try:
        _call("cuInit", 0)
    except OSError as error:
        raise CudaError(f"CUDA's driver was not found: {error}") from None
    count = ctypes.c_int()
    _call("cuDeviceGetCount", ctypes.byref(count))
    for index in range(count.value):
        device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        _call("cuDeviceGet", ctypes.byref(device), index)
        _call("cuDeviceGetUuid", found, device)
        if bytes(found).hex() == uuid:
            parts = [ctypes.c_int() for _ in _CAPABILITY]
            for part, attribute in zip(parts, _CAPABILITY, strict=True):
                _call("cuDeviceGetAttribute", ctypes.byref(part), attribute, device)
            return parts[0].value, parts[1].value
    raise CudaError(f"CUDA has no GPU with the UUID {uuid}")


class _SemaphoreHandle(ctypes.Union):
    _fields_ = [("fd", ctypes.c_int), ("win32", ctypes.c_void_p * 2)]


class _SemaphoreDescription(ctypes.Structure):
    """CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle", _SemaphoreHandle),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 16),
    ]


class _SemaphoreParameters(ctypes.Structure):
    """CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and ..._WAIT_PARAMS: the value comes first in both."""

    _fields_ = [("value", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 17)]


class Semaphore:
    """A timeline semaphore of another API. The opaque file descriptor is taken over. CUDA's context must be current."""

    def __init__(self, fd: int) -> None:
        description = _SemaphoreDescription(type=_TIMELINE_FD, handle=_SemaphoreHandle(fd=fd))
        self._handle = ctypes.c_void_p()
        self._parameters = _SemaphoreParameters()
        try:
            _call("cuImportExternalSemaphore", ctypes.byref(self._handle), ctypes.byref(description))
        except CudaError:
            os.close(fd)
            raise

    def signal(self, stream: int, value: int) -> None:
        """Give it the value once ``stream`` has done what it was given until now."""
        self._enqueue("cuSignalExternalSemaphoresAsync", stream, value)

    def wait(self, stream: int, value: int) -> None:
        """Makes what ``stream`` is given from now on wait for the value."""
        self._enqueue("cuWaitExternalSemaphoresAsync", stream, value)

    def _enqueue(self, function: str, stream: int, value: int) -> None:
        self._parameters.value = value
        _call(function, ctypes.byref(self._handle), ctypes.byref(self._parameters), 1, ctypes.c_void_p(stream))


class DeviceContext:
    """CUDA's context that is current when this is made; ``with`` it, it is current again.

    A thread has none before it uses CUDA, and another one where it has chosen another GPU; stream 0 is the current
    context's. Raises CudaError if there is none.
    """

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()
        _call("cuCtxGetCurrent", ctypes.byref(self._handle))
        if not self._handle:
            raise CudaError("CUDA has no current context")

    def __enter__(self) -> None:
        _call("cuCtxPushCurrent_v2", self._handle)

    def __exit__(self, *_: object) -> None:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def new_stream() -> int:
    """A stream that waits for no other, in the current context, which keeps it until it ends."""
    stream = ctypes.c_void_p()
    _call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
    return stream.value or 0


def retain(address: int) -> int:
    """The handle of the allocation that is mapped at ``address``, to be given back with release(). Raises CudaError
    where it is memory of cudaMalloc, which has none."""
    handle = ctypes.c_uint64()
    _call("cuMemRetainAllocationHandle", ctypes.byref(handle), ctypes.c_void_p(address))
    return handle.value


def release(handle: int) -> None:
    """Give a handle back."""
    _call("cuMemRelease", ctypes.c_uint64(handle))


def allocation(address: int) -> tuple[int, int]:
    """Start and end of the allocation that is mapped at ``address``."""
    start, size = ctypes.c_uint64(), ctypes.c_size_t()
    _call("cuMemGetAddressRange_v2", ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address))
    return start.value, start.value + size.value


def device_of(address: int) -> int | None:
    """The number of the GPU whose memory is at ``address``; None for any other memory, and where nobody uses CUDA."""
    if not _is_loaded():
        return None
    kind, ordinal = ctypes.c_uint(), ctypes.c_int()
    try:
        _call("cuPointerGetAttribute", ctypes.byref(kind), _MEMORY_TYPE, ctypes.c_uint64(address))
        if kind.value != _MEMORY_OF_A_DEVICE:
            return None
        _call("cuPointerGetAttribute", ctypes.byref(ordinal), _DEVICE_ORDINAL, ctypes.c_uint64(address))
    except CudaError:  # memory that CUDA does not know, or a driver that was not initialised
        return None
    return ordinal.value


def export(handle: int) -> int:
    """The allocation as an opaque file descriptor, which is the caller's."""
    fd = ctypes.c_int(-1)
    _call("cuMemExportToShareableHandle", ctypes.byref(fd), ctypes.c_uint64(handle), _POSIX_FD, ctypes.c_ulonglong(0))
    return fd.value
