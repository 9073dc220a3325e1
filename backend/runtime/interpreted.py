"""Buffers as arguments of kernels that Triton's interpreter runs.

The interpreter copies the memory that its arguments are views of to the host, runs the kernel there, and copies the
memory back. What it asks of an argument has the names of torch's tensors. All buffers in one memory have one copy, so
that arguments that overlap still do.
"""

from __future__ import annotations

from typing import Any


class _HostCopy:
    """The bytes of a memory on the host."""

    def __init__(self, size: int) -> None:
        import numpy

        self.bytes = numpy.empty(size, "uint8")

    def data_ptr(self) -> int:
        return int(self.bytes.__array_interface__["data"][0])


class _Storage:
    """The memory that a buffer is a view of."""

    def __init__(self, buffer: Any) -> None:
        buffer.data_ptr()  # which raises RuntimeError if it was freed
        self._native = buffer._context.native
        self._address, self._size, _ = buffer.storage()

    def data_ptr(self) -> int:
        return int(self._address)

    def cpu(self) -> _HostCopy:
        copy = _HostCopy(self._size)
        if self._size:
            self._native.download(copy.data_ptr(), self._address, self._size)
        return copy

    def copy_(self, copy: _HostCopy) -> None:
        if self._size:
            self._native.upload(self._address, copy.data_ptr(), self._size)


class InterpretedBuffer:
    """A DeviceBuffer as the interpreter sees it, or, once ``set_`` was called, its copy on the host. Other attributes
    are the buffer's."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self._storage: Any = _Storage(buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)

    def untyped_storage(self) -> Any:
        return self._storage

    def storage_offset(self) -> int:
        """In bytes, unlike a tensor's: only ``set_`` reads it."""
        return int(self._buffer.data_ptr()) - int(self._buffer.storage()[0])

    def size(self) -> tuple[int, ...]:
        return tuple(self._buffer.shape)

    def new_empty(self, *_: Any, device: str) -> InterpretedBuffer:
        return InterpretedBuffer(self._buffer)

    def set_(self, storage: _HostCopy, offset: int, *_: Any) -> None:
        self._storage = storage

    def data_ptr(self) -> int:
        return int(self._storage.data_ptr()) + self.storage_offset()
