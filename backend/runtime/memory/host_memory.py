"""Host memory for devices that cannot read it in place: per-launch imports and staged copies."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

#: Device addresses keep their host address modulo this, so that alignment facts of the compiler hold.
PLACEMENT = 256
_SMALLEST_BUFFER = 1 << 16
_IDLE_BYTES = 1 << 30


@dataclass
class HostRange:
    """A range of host memory that pointer arguments lie in. ``written``: whether a kernel may have written it."""

    start: int
    end: int
    written: bool

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.end - self.start


def storage_of(argument: Any, address: int) -> tuple[int, int, bool]:
    """(address, bytes, writeable) of the memory that a tensor is a view of.

    A whole storage is taken, because a kernel may reach any element of it through strides of its own.
    Raises TypeError for an object that does not tell.
    """
    storage = getattr(argument, "storage", None)
    untyped = getattr(argument, "untyped_storage", None)
    memory: Any = untyped() if untyped is not None else None
    if hasattr(memory, "nbytes"):
        return memory.data_ptr(), memory.nbytes(), True
    if storage is not None:
        return storage()
    base = getattr(argument, "base", None)
    if base is not None:
        return storage_of(base, address)
    if hasattr(argument, "numel") and hasattr(argument, "element_size"):
        return address, argument.numel() * argument.element_size(), True
    raise TypeError(
        f"a {type(argument).__name__} does not give the size of its memory; pass a torch tensor or "
        "triton.backends.spirv.runtime.array(a NumPy array)"
    )


def tensor_of(argument: Any) -> Any:
    """The torch tensor that an argument is, or that it wraps as triton.reinterpret's does; None if there is none."""
    while argument is not None and not hasattr(argument, "untyped_storage"):
        argument = getattr(argument, "base", None)
    return argument


def memory_bytes(argument: Any) -> float:
    """Bytes of the whole memory that a tensor is a view of; infinity where it does not tell. Asked are its
    storage, else ``ptr_range()`` (upstream's protocol)."""
    untyped = getattr(argument, "untyped_storage", None)
    told = getattr(argument, "ptr_range", None) if untyped is None else getattr(untyped(), "nbytes", None)
    if told is not None:
        return told()
    try:
        return storage_of(argument, 0)[1]
    except TypeError:
        return math.inf


def merge(spans: Iterable[HostRange]) -> list[HostRange]:
    """The union of the ranges, in order of address. Ranges that share a byte become one."""
    merged: list[HostRange] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start < merged[-1].end:
            merged[-1].end = max(merged[-1].end, span.end)
            merged[-1].written |= span.written
        else:
            merged.append(HostRange(span.start, span.end, span.written))
    return merged


def find(spans: Sequence[HostRange], address: int) -> int | None:
    """Index of the range that holds the address; None if none does."""
    for index, span in enumerate(spans):
        if span.start <= address < span.end:
            return index
    return None


class Claims:
    """Ranges of memory that launches copy to a device and back. Thread-safe.

    What a launch may have written comes back whole, so that no other thread's launch may copy a byte of it meanwhile.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._claimed: list[tuple[int, HostRange]] = []

    @contextmanager
    def claim(self, spans: Sequence[HostRange]) -> Iterator[None]:
        """Holds the ranges in the block, once no other thread holds any that it must not. A signal's handler that
        launches while its own thread holds some is let through."""
        thread = threading.get_ident()
        claimed = [(thread, span) for span in spans]
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    not any(owner != thread and _collide(held, span) for owner, held in self._claimed for span in spans)
                )
            )
            self._claimed.extend(claimed)
        try:
            yield
        finally:
            with self._changed:
                for claim in claimed:
                    self._claimed.remove(claim)
                self._changed.notify_all()


def _collide(one: HostRange, other: HostRange) -> bool:
    return (one.written or other.written) and one.start < other.end and other.start < one.end


#: Of all devices.
CLAIMS = Claims()


def out_of_memory(error: RuntimeError) -> bool:
    """Whether a native call failed for want of memory, so that giving idle memory back may help."""
    return bool(getattr(error, "no_memory", False))


class BufferPool:
    """Idle buffers by size, to be used again. Thread-safe. ``allocate`` makes a buffer of so many bytes."""

    def __init__(self, allocate: Any, idle_bytes: int = _IDLE_BYTES) -> None:
        self._allocate = allocate
        self._idle: dict[int, list[Any]] = {}
        self._left = idle_bytes
        # A loan may be collected, and so give its buffers back, while this thread has it.
        self._lock = threading.RLock()

    def take(self, size: int) -> Any:
        """A buffer of at least ``size`` bytes, at most an eighth larger once past 64 KiB."""
        rounded = round_up(size)
        with self._lock:
            idle = self._idle.get(rounded)
            if idle:
                self._left += rounded
                return idle.pop()
        try:
            return self._allocate(rounded)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            self.clear()
        return self._allocate(rounded)

    def give(self, buffer: Any) -> None:
        """Take a buffer back; past the limit of idle bytes it is freed."""
        with self._lock:
            if buffer.bytes <= self._left:
                self._left -= buffer.bytes
                self._idle.setdefault(buffer.bytes, []).append(buffer)
                return
        buffer.free()

    def clear(self) -> None:
        """Free all idle buffers."""
        with self._lock:
            idle, self._idle = self._idle, {}
            buffers = [buffer for some in idle.values() for buffer in some]
            self._left += sum(buffer.bytes for buffer in buffers)
        for buffer in buffers:
            buffer.free()


class Loan:
    """What a launch uses apart from its arguments. It goes back with ``end()``, or when nothing refers to the loan."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: list[Callable[[], None]] = []

    def take(self, pool: BufferPool, size: int) -> Any:
        """A buffer of the pool."""
        buffer = pool.take(size)
        self._ends.append(partial(pool.give, buffer))
        return buffer

    def add(self, end: Callable[[], None]) -> None:
        """Call ``end`` at the end."""
        self._ends.append(end)

    def end(self) -> None:
        """Give everything back. A second call does nothing."""
        while self._ends:
            self._ends.pop()()

    def __del__(self) -> None:
        self.end()


def round_up(size: int) -> int:
    """``size`` rounded up to a multiple of an eighth of its power of two, so that sizes repeat."""
    size = max(size, _SMALLEST_BUFFER)
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step
