"""CUDA tensors of torch as kernel arguments, on NVIDIA's Vulkan driver.

Memory that CUDA made shareable is imported into Vulkan once and used in place; CUDA's stream and Vulkan's queue wait
for each other through semaphores that both know, so that neither host thread waits. What can be shared: tensors made in
``mem_pool()``, and those that lie within one chunk (2 MiB for small tensors, 20 MiB for others) of torch's expandable
segments.

    with torch.cuda.use_mem_pool(mem_pool()):
        x = torch.rand(1 << 20, device="cuda")

TRITON_SPIRV_CUDA says what happens to other CUDA tensors: ``share`` (the default) refuses them with an error that says
how to allocate them, ``staged`` copies them through host memory at every launch.
"""
from __future__ import annotations

import ctypes
import os
from bisect import bisect_right
from functools import cache
from typing import Any

from .context import Context, native

SHARE, STAGED = "share", "staged"
_POSIX_FD = 1
_TIMELINE_FD = 9

_HOW_TO_ALLOCATE = ("allocate it in 'with torch.cuda.use_mem_pool(triton.backends.spirv.runtime.cuda.mem_pool()):', or "
                    "set TRITON_SPIRV_CUDA=staged to have it copied through host memory at every launch")
_POOL_IGNORED = ("; where it was allocated in that pool, this torch ignores pools while expandable segments are on: "
                 "take expandable_segments out of PYTORCH_CUDA_ALLOC_CONF")


class NotShareable(ValueError):
    """A CUDA tensor whose memory Vulkan cannot import. The message says how to allocate it."""


class CudaError(RuntimeError):
    """A call of the CUDA driver that failed."""


def way() -> str:
    """SHARE or STAGED, as TRITON_SPIRV_CUDA says. Raises ValueError on anything else."""
    wanted = os.environ.get("TRITON_SPIRV_CUDA", "") or SHARE
    if wanted not in (SHARE, STAGED):
        raise ValueError(f"TRITON_SPIRV_CUDA={wanted!r} is neither {SHARE} nor {STAGED}")
    return wanted


@cache
def _libcuda() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *args: Any) -> None:
    result = getattr(_libcuda(), name)(*args)
    if result:
        raise CudaError(f"{name} failed: CUDA error {result}")


class _SemaphoreHandle(ctypes.Union):
    _fields_ = [("fd", ctypes.c_int), ("win32", ctypes.c_void_p * 2)]


class _SemaphoreDescription(ctypes.Structure):
    """CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC."""

    _fields_ = [("type", ctypes.c_int), ("handle", _SemaphoreHandle), ("flags", ctypes.c_uint),
                ("reserved", ctypes.c_uint * 16)]


class _SemaphoreParameters(ctypes.Structure):
    """CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and ..._WAIT_PARAMS: the value comes first in both."""

    _fields_ = [("value", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 17)]


@cache
def _allocator() -> Any:
    import torch
    # The native module is a library with the two functions that torch looks up by name.
    return torch.cuda.memory.CUDAPluggableAllocator(native().__file__, "triton_spirv_cuda_allocate",
                                                    "triton_spirv_cuda_free")


def mem_pool() -> Any:
    """A new ``torch.cuda.MemPool`` whose memory kernels of this backend can use in place."""
    import torch
    return torch.cuda.MemPool(_allocator().allocator())


class CudaSharing:
    """What of CUDA's memory a Vulkan device has imported, and the semaphores between the two."""

    def __init__(self, context: Context) -> None:
        self._context = context
        if not context.shares_memory:
            raise NotShareable(f"{context.device.name}: CUDA tensors can only be passed on NVIDIA's Vulkan driver; "
                               "pass tensor.cpu()")
        self._starts: list[int] = []
        self._imported: list[tuple[int, int, int, Any]] = []  # start, end, CUDA's handle, Vulkan's buffer
        self._devices: dict[int, bool] = {}
        self._incoming = self._import_semaphore(context.native.export_incoming())
        self._timeline = self._import_semaphore(context.native.export_timeline())
        self._signalled = 0
        self._parameters = _SemaphoreParameters()

    def _import_semaphore(self, fd: int) -> ctypes.c_void_p:
        import torch
        torch.cuda.current_stream().synchronize()  # makes CUDA's context current in this thread
        description = _SemaphoreDescription(type=_TIMELINE_FD, handle=_SemaphoreHandle(fd=fd))
        semaphore = ctypes.c_void_p()
        try:
            _call("cuImportExternalSemaphore", ctypes.byref(semaphore), ctypes.byref(description))
        except CudaError:
            os.close(fd)
            raise
        return semaphore

    def address(self, tensor: Any, address: int) -> int:
        """The Vulkan address of the CUDA address of ``tensor``. Raises NotShareable."""
        self._check_device(tensor.device.index)
        handle = ctypes.c_uint64()
        if _libcuda().cuMemRetainAllocationHandle(ctypes.byref(handle), ctypes.c_void_p(address)):
            raise NotShareable("the CUDA tensor's memory was made by cudaMalloc, which Vulkan cannot use; "
                               + _HOW_TO_ALLOCATE)
        position = bisect_right(self._starts, address) - 1
        if position >= 0:
            start, end, known, buffer = self._imported[position]
            if address < end:
                if known == handle.value:
                    # The handle is held since the import, so that no later memory can have the same.
                    _call("cuMemRelease", handle)
                    self._check_end(tensor, end)
                    return int(buffer.address) + address - start
                self._forget(position)
        start, end, buffer = self._import(address, handle)
        position = bisect_right(self._starts, start)
        self._starts.insert(position, start)
        self._imported.insert(position, (start, end, handle.value, buffer))
        self._check_end(tensor, end)
        return int(buffer.address) + address - start

    def _check_end(self, tensor: Any, end: int) -> None:
        storage = tensor.untyped_storage()
        if storage.data_ptr() + storage.nbytes() > end:
            raise NotShareable(f"the CUDA tensor's {storage.nbytes()} bytes lie in several chunks of an expandable "
                               "segment of torch, each an allocation of its own; in Vulkan they would not follow each "
                               "other in memory: " + _HOW_TO_ALLOCATE + _POOL_IGNORED)

    def _check_device(self, index: int) -> None:
        if index not in self._devices:
            import torch
            uuid = str(torch.cuda.get_device_properties(index).uuid).replace("-", "").lower()
            self._devices[index] = uuid.removeprefix("gpu") == self._context.device.uuid
        if not self._devices[index]:
            raise NotShareable(f"the tensor is on 'cuda:{index}', which is another GPU than the Vulkan device "
                               f"{self._context.device.name} that the kernel was launched on: set TRITON_SPIRV_DEVICE "
                               "to its UUID, or move the tensor")

    def _import(self, address: int, handle: ctypes.c_uint64) -> tuple[int, int, Any]:
        start, size, fd = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_int(-1)
        try:
            _call("cuMemGetAddressRange_v2", ctypes.byref(start), ctypes.byref(size), ctypes.c_uint64(address))
            _call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, _POSIX_FD, ctypes.c_ulonglong(0))
            buffer = self._context.native.import_fd(fd.value, size.value)
        except (CudaError, native().VulkanError) as error:
            _libcuda().cuMemRelease(handle)
            raise NotShareable(f"the CUDA tensor's memory cannot be imported into Vulkan ({error}); "
                               + _HOW_TO_ALLOCATE) from error
        return start.value, start.value + size.value, buffer

    def _forget(self, position: int) -> None:
        """CUDA has unmapped this memory and put other in its place."""
        _, _, handle, buffer = self._imported.pop(position)
        del self._starts[position]
        buffer.free()
        _libcuda().cuMemRelease(ctypes.c_uint64(handle))

    def signal(self, stream: int) -> int:
        """Have CUDA's stream signal when it has done what it was given until now; the value that launches wait for."""
        self._signalled += 1
        self._parameters.value = self._signalled
        _call("cuSignalExternalSemaphoresAsync", ctypes.byref(self._incoming), ctypes.byref(self._parameters), 1,
              ctypes.c_void_p(stream))
        return self._signalled

    def wait(self, stream: int, submission: int) -> None:
        """Have CUDA's stream wait until a submission to Vulkan is done."""
        self._parameters.value = submission
        _call("cuWaitExternalSemaphoresAsync", ctypes.byref(self._timeline), ctypes.byref(self._parameters), 1,
              ctypes.c_void_p(stream))
