"""Device memory for tensors: they share buffers, and what was freed is used again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..native_module import native
from .host_memory import out_of_memory

#: What sizes are counted in, less a sign.
_MOST_BYTES = 2**63 - 1

#: How much may be reserved, relative to what has been in use.
_MOST_RESERVED = 1.5


class OutOfDeviceMemory(MemoryError):
    """The device has no room left for an allocation, with everything idle given back."""


class _OverLimit(RuntimeError):
    """What was set as the most has no room, as if the device had none."""

    no_memory = True


class DeviceAllocator:
    """Allocates device memory through ``allocate``: (bytes, whether the host reads it often) → a native buffer.
    Thread-safe. ``device``: the native device, whose streams wait for what earlier owners of their memory submitted to
    others.

    ``pool``: the _native.MemoryPool that has the idle memory, and counts what is in use.
    """

    def __init__(self, allocate: Callable[[int, bool], Any], device: Any = None) -> None:
        self._allocate = allocate
        #: Bytes that may be reserved at most, how often idle memory was given back for want of room, and in vain.
        self.limit: int | None = None
        self.retries = self.failures = 0
        self.pool = native().MemoryPool(device)

    def allocate(self, bytes_: int) -> Any:
        """An _native.Allocation of at least ``bytes_`` bytes, aligned to MemoryPool.ALIGNMENT. Raises OutOfDeviceMemory
        and ValueError."""
        if bytes_ < 0:
            raise ValueError(f"an allocation of {bytes_} bytes")
        if bytes_ > _MOST_BYTES:
            raise OutOfDeviceMemory(f"the device has no room for {bytes_} bytes: they cannot be counted in 64 bits")
        while (found := self.pool.take(bytes_)) is None:
            few = self.pool.is_few(bytes_)
            buffer = self._buffer(bytes_, few)
            self.pool.add(buffer, buffer.address, buffer.bytes, few)
        return found

    def release_idle(self) -> None:
        """Give all memory that is not in use back to the device, once submitted work is done."""
        for buffer in self.pool.release():  # which waits for the device
            buffer.free()

    def close(self) -> None:
        """The device is being closed: allocating raises what it says. What is in use stays allocated until it is."""
        self.pool.close()
        self.release_idle()

    def _buffer(self, bytes_: int, few: bool) -> Any:
        """A buffer with room for an allocation. Where idle buffers, of which none has room, would be much beside what
        has been in use, they are given back first."""
        pool = self.pool
        size, least = pool.buffer_for(bytes_), pool.size_of(bytes_)
        needed = max(pool.peak_allocated, pool.allocated + least)
        if pool.reserved + size > _MOST_RESERVED * needed and pool.reserved > pool.LARGEST_BUFFER:
            self.release_idle()
        if self.limit is None or pool.reserved + size <= self.limit:
            try:
                return self._allocate(size, few)
            except RuntimeError as first:
                if not out_of_memory(first):
                    raise
        self.retries += 1
        self.release_idle()
        try:
            if self.limit is not None and pool.reserved + least > self.limit:
                raise _OverLimit(f"set_per_process_memory_fraction() allows {self.limit}")
            return self._allocate(least, few)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            self.failures += 1
            raise OutOfDeviceMemory(
                f"the device has no room for {least} bytes: {pool.allocated} bytes are in use by tensors, "
                f"{pool.reserved} are reserved; free tensors, or use smaller ones ({error})"
            ) from error
