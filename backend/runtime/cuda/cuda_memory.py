"""CUDA allocations that a Vulkan device has imported, by their CUDA addresses."""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from ..errors import NotShareable
from . import cuda_driver
from .cuda_driver import CudaError

HOW_TO_ALLOCATE = (
    "allocate it in 'with torch.cuda.use_mem_pool(triton.backends.spirv.runtime.cuda.mem_pool()):', set "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before torch is imported, or "
    "set TRITON_SPIRV_CUDA=staged to have it copied through host memory at every launch"
)


@dataclass(frozen=True)
class _Chunk:
    """One allocation: where CUDA has it, its handle, which is held until it is forgotten, and Vulkan's buffer."""

    start: int
    end: int
    handle: int
    buffer: Any


class ImportedMemory:
    """What ``device`` (a _native.Device) has imported, each allocation once.

    A tensor in torch's expandable segments lies in several allocations, chunks, which CUDA maps consecutively.
    Vulkan would place each anywhere: the chunks of a tensor are bound to one sparse buffer, in their order.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._starts: list[int] = []
        self._chunks: list[_Chunk] = []
        self._joined: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()

    def address(self, address: int, start: int, end: int) -> int:
        """The Vulkan address of the CUDA address ``address``, in memory [start, end). Raises NotShareable."""
        with self._lock:
            chunk = self._chunk(start)
            if end <= chunk.end:
                return int(chunk.buffer.address) + address - chunk.start
            chunks = [chunk]
            while chunks[-1].end < end:
                chunks.append(self._chunk(chunks[-1].end))
            return int(self._join(chunks).address) + address - chunk.start

    def _chunk(self, address: int) -> _Chunk:
        try:
            handle = cuda_driver.retain(address)
        except CudaError:
            raise NotShareable(
                "the CUDA tensor's memory was allocated by cudaMalloc, which Vulkan cannot use; " + HOW_TO_ALLOCATE
            ) from None
        position = bisect_right(self._starts, address) - 1
        if position >= 0 and address < self._chunks[position].end:
            known = self._chunks[position]
            if known.handle == handle:
                # It is held since the import, so that no later memory can have the same.
                cuda_driver.release(handle)
                return known
            self._forget(position)
        return self._import(address, handle)

    def _import(self, address: int, handle: int) -> _Chunk:
        try:
            start, end = cuda_driver.allocation(address)
            buffer = self._device.import_fd(cuda_driver.export(handle), end - start)
        except (CudaError, RuntimeError) as error:
            cuda_driver.release(handle)
            raise NotShareable(
                f"the CUDA tensor's memory cannot be imported into Vulkan ({error}); " + HOW_TO_ALLOCATE
            ) from error
        chunk = _Chunk(start, end, handle, buffer)
        self._forget_unmapped()
        position = bisect_right(self._starts, start)
        self._starts.insert(position, start)
        self._chunks.insert(position, chunk)
        return chunk

    def _join(self, chunks: list[_Chunk]) -> Any:
        place = chunks[0].start, chunks[-1].end
        if place not in self._joined:
            try:
                self._joined[place] = self._device.join([chunk.buffer for chunk in chunks])
            except RuntimeError as error:
                raise NotShareable(
                    f"the CUDA tensor lies in {len(chunks)} chunks of an expandable segment of torch, "
                    f"which Vulkan cannot map at consecutive addresses ({error}); take expandable_segments "
                    f"out of PYTORCH_CUDA_ALLOC_CONF and {HOW_TO_ALLOCATE}"
                ) from error
        return self._joined[place]

    def _forget_unmapped(self) -> None:
        """Lets go of every chunk that CUDA has unmapped: its memory stays taken for as long as it is imported, and it
        would hide a later chunk that its address lies in."""
        for position in reversed(range(len(self._chunks))):
            chunk = self._chunks[position]
            try:
                handle = cuda_driver.retain(chunk.start)
            except CudaError:
                self._forget(position)
                continue
            cuda_driver.release(handle)
            if handle != chunk.handle:
                self._forget(position)

    def _forget(self, position: int) -> None:
        """CUDA has unmapped this chunk, and may have put other memory in its place."""
        chunk = self._chunks[position]
        for place in [place for place in self._joined if place[0] <= chunk.start < place[1]]:
            self._joined[place].free()  # which waits: an interrupt leaves it to the next call
            del self._joined[place]
        chunk.buffer.free()
        del self._chunks[position], self._starts[position]
        cuda_driver.release(chunk.handle)
