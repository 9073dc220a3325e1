"""CUDA tensors of torch as kernel arguments, on NVIDIA's Vulkan driver.

Memory that CUDA made shareable is imported into Vulkan once and used in place; CUDA's stream and Vulkan's queue wait
for each other through semaphores that both know, so that neither host thread waits. What can be shared: tensors made in
``mem_pool()``, and torch's expandable segments.

    with torch.cuda.use_mem_pool(mem_pool()):
        x = torch.rand(1 << 20, device="cuda")

TRITON_SPIRV_CUDA says what happens to other CUDA tensors: ``share`` (the default) refuses them with an error that says
how to allocate them, ``staged`` copies them through host memory at every launch.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from ... import settings
from ..device_choice import installed
from ..device_kind import DeviceInfo
from ..errors import NotShareable
from ..memory.host_memory import storage_of
from ..native_module import native
from .cuda_driver import DeviceContext, Semaphore, new_stream
from .cuda_memory import ImportedMemory
from .current_gpu import cuda_index, uuid_of
from .stream_watch import LIMIT, StreamWatch


@cache
def _allocator() -> Any:
    import torch

    # The native module is a library with the two functions that torch looks up by name.
    return torch.cuda.memory.CUDAPluggableAllocator(
        native().__file__, "triton_spirv_cuda_allocate", "triton_spirv_cuda_free"
    )


def mem_pool() -> Any:
    """A new ``torch.cuda.MemPool`` whose memory kernels of this backend can use in place."""
    import torch

    return torch.cuda.MemPool(_allocator().allocator())


@dataclass
class _Incoming:
    """What one stream signals: the number that Vulkan knows it by, CUDA's side of it, and the last value."""

    number: int
    semaphore: Semaphore
    value: int = 0


class SharingDevice(Protocol):
    """What is needed of a Context (context.py)."""

    native: Any
    device: DeviceInfo
    shares_memory: bool
    left_by: int | None


class CudaSharing:
    """What of CUDA's memory a Vulkan device has imported, and the semaphores between the two."""

    def __init__(self, context: SharingDevice) -> None:
        self._context = context
        if not context.shares_memory:
            raise NotShareable(
                f"{context.device.name}: CUDA tensors can only be passed on NVIDIA's Vulkan driver; pass tensor.cpu()"
            )
        self._memory = ImportedMemory(context.native)
        self._current = self._device_context()
        with self._current:
            self._timeline = Semaphore(context.native.export_timeline())
        self._incoming: dict[int, _Incoming] = {}
        self._lock = threading.Lock()
        if settings.TIMEOUT.get() is None:
            context.native.limit_waits(int(LIMIT * 1e9))
        self._watch = StreamWatch(
            context.native, lambda: context.left_by not in (None, threading.get_ident()), self._release
        )

    def _device_context(self) -> DeviceContext:
        """CUDA's context of the Vulkan device's GPU."""
        import torch

        index = cuda_index(self._context.device.uuid)
        if index is None:
            raise NotShareable(
                f"CUDA does not show the Vulkan device {self._context.device.name}: see CUDA_VISIBLE_DEVICES"
            )
        with torch.cuda.device(index):
            torch.cuda.current_stream().synchronize()  # makes its context current in this thread
            return DeviceContext()

    def address(self, tensor: Any, address: int) -> int:
        """The Vulkan address of the CUDA address of ``tensor``, a tensor or a wrapper of one. Raises NotShareable, and
        TypeError for an object that does not tell the size of its memory."""
        self._check_device(tensor.device.index)
        start, size, _ = storage_of(tensor, address)
        with self._current:
            return self._memory.address(address, start, start + size)

    def _check_device(self, index: int) -> None:
        uuid = uuid_of(index)
        if uuid == self._context.device.uuid:
            return
        ours = next((number for number, device in enumerate(installed()) if device.uuid == uuid), None)
        if ours is None:
            known = ", ".join(f"{device.name} (UUID {device.uuid})" for device in installed())
            raise NotShareable(
                f"the tensor is on 'cuda:{index}' (UUID {uuid}), which is none of the Vulkan devices {known}: move the "
                "tensor, or set TRITON_SPIRV_CUDA=staged, which copies it at every launch"
            )
        raise NotShareable(
            f"the tensor is on 'cuda:{index}', and the kernel was launched on another GPU, "
            f"'cuda:{cuda_index(self._context.device.uuid)}' ({self._context.device.name}): launch it in "
            f"'with torch.cuda.device({index}):' (where torch has the device spirv: torch.spirv.device({ours})), "
            "without TRITON_SPIRV_DEVICE, or move the tensor"
        )

    def signal(self, stream: int) -> tuple[int, int]:
        """Makes CUDA's stream signal when it has done what it was given until now: the number of the semaphore and the
        value that a launch waits for. Each stream has its own, because a value that one has reached says nothing of
        another."""
        with self._lock:
            incoming = self._incoming.get(stream)
            with self._current:
                if incoming is None:
                    number, fd = self._context.native.make_incoming()
                    incoming = self._incoming[stream] = _Incoming(number, Semaphore(fd))
                incoming.value += 1
                incoming.semaphore.signal(stream, incoming.value)
            return incoming.number, incoming.value

    def wait(self, stream: int, submission: int) -> None:
        """Makes CUDA's stream wait until a submission to Vulkan is done."""
        with self._lock, self._current:
            self._timeline.wait(stream, submission)
        self._watch.expect(submission)

    def close(self) -> None:
        """To be called once all work of the device is done."""
        self._watch.end()

    def _release(self, submission: int) -> None:
        """Lets streams go on that wait for a submission, or one before it, that will never be done."""
        with self._current:
            self._timeline.signal(new_stream(), submission)
