"""Pinned memory: host memory that devices copy from and to by themselves (VK_EXT_external_memory_host)."""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from typing import Any, Protocol

from ..native_module import native
from .host_memory import BufferPool, Loan

#: Blocks begin at pages and are whole ones; devices import at multiples of at most so many bytes.
_LARGEST_ALIGNMENT = 1 << 16


class Importer(Protocol):
    """What is needed of a Context (context.py)."""

    native: Any
    device: Any


class PinnedBlock:
    """Memory of this process that devices import when they first copy from or to it. A forked child has the same
    memory, so that no page is exchanged under a device."""

    def __init__(self, bytes_: int) -> None:
        self.bytes = bytes_
        self._whole = -(-bytes_ // _LARGEST_ALIGNMENT) * _LARGEST_ALIGNMENT
        self._memory = mmap.mmap(-1, self._whole + _LARGEST_ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.address = -(-start // _LARGEST_ALIGNMENT) * _LARGEST_ALIGNMENT
        self._imported: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def device_address(self, context: Importer) -> int | None:
        """Where a device has it; None where it cannot import it."""
        with self._lock:
            if context not in self._imported:
                self._imported[context] = self._import(context)
            buffer = self._imported[context]
        return None if buffer is None else int(buffer.address)

    def _import(self, context: Importer) -> Any:
        alignment = context.device.host_import_alignment
        if not alignment or _LARGEST_ALIGNMENT % alignment:
            return None
        try:
            return context.native.import_host(self.address, self._whole)
        except native().DeviceError:
            return None

    def users(self) -> list[Importer]:
        """The contexts that may be copying from or to it."""
        with self._lock:
            return [context for context, buffer in self._imported.items() if buffer is not None]

    def free(self) -> None:
        """Gives the memory back. No device may be using it."""
        with self._lock:
            for buffer in self._imported.values():
                if buffer is not None:
                    buffer.free()
            self._imported.clear()


class PinnedMemory:
    """The pinned memory of this process. Thread-safe."""

    def __init__(self) -> None:
        self._pool = BufferPool(PinnedBlock)
        self._live: dict[int, PinnedBlock] = {}

    def take(self, bytes_: int) -> Any:
        """An object with so many bytes, by the buffer protocol. When nothing refers to it, and devices are done with
        what they were given until then, its memory is taken again."""
        block = self._pool.take(bytes_)
        memory = (ctypes.c_char * block.bytes).from_address(block.address)
        self._live[block.address] = block
        weakref.finalize(memory, self._give, block).atexit = False
        return memory

    def block_of(self, address: int) -> PinnedBlock | None:
        """The block that begins at a host address, which is in use; None for other memory."""
        return self._live.get(address)

    def _give(self, block: PinnedBlock) -> None:
        del self._live[block.address]
        loan = Loan()
        loan.add(lambda: self._pool.give(block))
        for context in block.users():
            context.native.keep(loan)

    def clear(self) -> None:
        """Gives idle memory back."""
        self._pool.clear()


PINNED = PinnedMemory()
