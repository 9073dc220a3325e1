"""Device memory for tensors: small ones share buffers, and what was freed is used again."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any

from .host_memory import out_of_memory, round_up

#: Allocations up to this many bytes are cut from slabs: drivers allow a few thousand buffers with memory of their own.
LARGEST_SHARED = 1 << 20
_SLAB_BYTES = 4 << 20
#: Every address is a multiple of this.
ALIGNMENT = 512

#: What sizes are counted in, less a sign.
_MOST_BYTES = 2**63 - 1


class OutOfDeviceMemory(MemoryError):
    """The device has no room left for an allocation, with everything idle given back."""


class Allocation:
    """Device memory at ``address``; given back by ``free()``, or when nothing refers to it.

    Work that was submitted before it is given back may still use it: later work on it comes after that.
    """

    __slots__ = ("_allocator", "_cell", "_size", "address", "bytes")

    def __init__(self, allocator: DeviceAllocator, address: int, size: int, cell: Any, bytes_: int) -> None:
        self._allocator: DeviceAllocator | None = allocator
        self._cell = cell
        self._size = size
        self.address = address
        self.bytes = bytes_

    def free(self) -> None:
        """Give the memory back. A second call does nothing."""
        allocator, self._allocator = self._allocator, None
        if allocator is not None:
            allocator.give_back(self._size, self.address, self._cell)
            self.address = 0

    def __del__(self) -> None:
        self.free()


class DeviceAllocator:
    """Allocates device memory through ``allocate`` (bytes → a native buffer). Thread-safe.

    ``allocated`` and ``reserved``: bytes in use, and bytes taken from the device; ``peak_allocated`` and
    ``peak_reserved``: the most that they were since reset_peaks(). ``allocations``: how many were made.
    """

    def __init__(self, allocate: Any) -> None:
        self._allocate = allocate
        # A signal's handler may allocate, or free, while this thread has it: every call leaves the tables right.
        self._lock = threading.RLock()
        self._idle: dict[int, list[tuple[int, Any]]] = {}  # size → (address, its buffer)
        self._slabs: dict[Any, list[int]] = {}  # buffer → [cells, idle cells]
        # What was freed, until the next allocation: a tensor may be collected while the lock is held.
        self._returned: deque[tuple[int, int, Any]] = deque()
        self._releasing = False
        self.allocated = self.peak_allocated = 0
        self.reserved = self.peak_reserved = 0
        self.allocations = 0
        _allocators.add(self)

    def allocate(self, bytes_: int) -> Allocation:
        """At least ``bytes_`` bytes, aligned to ALIGNMENT. Raises OutOfDeviceMemory and ValueError."""
        if bytes_ < 0:
            raise ValueError(f"an allocation of {bytes_} bytes")
        if bytes_ > _MOST_BYTES:
            raise OutOfDeviceMemory(f"the device has no room for {bytes_} bytes: they cannot be counted in 64 bits")
        # The smallest sizes are the most frequent: round_up() leaves them multiples of ALIGNMENT, too.
        size = ALIGNMENT if bytes_ <= ALIGNMENT else round_up(bytes_, ALIGNMENT)
        with self._lock:
            if self._returned:
                self._take_back()
            while not (idle := self._idle.get(size)):
                self._grow(size)
            address, buffer = idle.pop()
            if size <= LARGEST_SHARED:
                self._slabs[buffer][1] -= 1
            self.allocated += size
            self.allocations += 1
            if self.allocated > self.peak_allocated:
                self.peak_allocated = self.allocated
        return Allocation(self, address, size, buffer, bytes_)

    def give_back(self, size: int, address: int, buffer: Any) -> None:
        """Called by Allocation.free()."""
        self._returned.append((size, address, buffer))

    def release_idle(self) -> None:
        """Give all memory that is not in use back to the device, once submitted work is done."""
        with self._lock:
            self._take_back()
            self._release_idle()

    def reset_peaks(self) -> None:
        """The peaks are what is in use and reserved now."""
        with self._lock:
            self._take_back()
            self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def collect(self) -> None:
        """Count what was freed since the last allocation as free."""
        with self._lock:
            self._take_back()

    def _take_back(self) -> None:
        while self._returned:
            size, address, buffer = self._returned.popleft()
            self._idle.setdefault(size, []).append((address, buffer))
            if size <= LARGEST_SHARED:
                self._slabs[buffer][1] += 1
            self.allocated -= size

    def _grow(self, size: int) -> None:
        if size > LARGEST_SHARED:
            buffer = self._buffer(size)
            self._idle.setdefault(size, []).append((buffer.address, buffer))
            return
        cells = _SLAB_BYTES // size
        buffer = self._buffer(cells * size)
        self._slabs[buffer] = [cells, cells]
        # The list is popped from its end: addresses are handed out in rising order.
        addresses = range(buffer.address + (cells - 1) * size, buffer.address - 1, -size)
        self._idle.setdefault(size, []).extend((address, buffer) for address in addresses)

    def _buffer(self, bytes_: int) -> Any:
        try:
            buffer = self._allocate(bytes_)
        except RuntimeError as first:
            if not out_of_memory(first):
                raise
            self._release_idle()
            try:
                buffer = self._allocate(bytes_)
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                raise OutOfDeviceMemory(
                    f"the device has no room for {bytes_} bytes: {self.allocated} bytes are in use by tensors, "
                    f"{self.reserved} are reserved; free tensors, or use smaller ones ({error})"
                ) from error
        self.reserved += buffer.bytes
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return buffer

    def _release_idle(self) -> None:
        if self._releasing:  # in a signal's handler
            return
        self._releasing = True
        freed: dict[Any, bool] = {}
        try:
            for size in list(self._idle):
                cells = self._idle.pop(size, [])
                for _, buffer in cells:
                    if buffer not in freed:
                        freed[buffer] = size > LARGEST_SHARED or self._slabs[buffer][0] == self._slabs[buffer][1]
                kept = [(address, buffer) for address, buffer in cells if not freed[buffer]]
                if kept:
                    self._idle.setdefault(size, []).extend(kept)
        finally:
            self._releasing = False
        buffers = [buffer for buffer, whole in freed.items() if whole]
        for buffer in buffers:
            self._slabs.pop(buffer, None)
            self.reserved -= buffer.bytes
        for buffer in buffers:  # which waits for the device
            buffer.free()

    def forget_threads(self) -> None:
        """In a forked child: the lock may be held by a thread that stayed in the parent."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Forget everything: the device is being closed. What is in use stays allocated until it is."""
        with self._lock:
            self._take_back()
            self._release_idle()
            self._idle.clear()


_allocators: weakref.WeakSet[DeviceAllocator] = weakref.WeakSet()


def _after_fork() -> None:
    for allocator in _allocators:
        allocator.forget_threads()


os.register_at_fork(after_in_child=_after_fork)
