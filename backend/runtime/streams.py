"""Events, streams and synchronisation in the terms of ``torch.cuda``, as triton.testing asks for them."""

from __future__ import annotations

import operator
import time
from typing import Any

from . import context as vulkan_context
from .native_module import native
from .reports.launchers import raise_reports
from .vendor_figures import WithoutVendorNames


class HostEvent:
    """A point in time on the host's clock."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._seconds: float | None = None

    def record(self, stream: Any = None) -> None:
        """Take the time now."""
        self._seconds = time.perf_counter()

    def synchronize(self) -> None:
        """It was reached when it was recorded."""

    def wait(self, stream: Any = None) -> None:
        """It was reached when it was recorded."""

    def query(self) -> bool:
        """Whether it has happened."""
        return self._seconds is not None

    def elapsed_time(self, end: HostEvent) -> float:
        """Milliseconds from here to ``end``. Raises RuntimeError if either was not recorded."""
        if self._seconds is None or end._seconds is None:
            raise RuntimeError("elapsed_time() needs two recorded events")
        return (end._seconds - self._seconds) * 1e3


class WaitingEvent(HostEvent):
    """A HostEvent for a device without timestamps: recording it waits for the device."""

    def record(self, stream: Any = None) -> None:
        """Wait for the stream's device, the current one for None, and take the time."""
        _context_of(stream).native.synchronize()
        super().record(stream)


class DeviceEvent:
    """A point on the timeline of the device that records it first; its time is a timestamp that the device takes."""

    __slots__ = ("_index", "_native", "_timing")

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._timing = enable_timing
        self._native: Any = None
        self._index = -1

    def record(self, stream: Any = None) -> None:
        """The point is reached when all is done that was submitted to the stream until now, to the current one for
        None. A second call moves it. Raises RuntimeError on another device than before."""
        context = _context_of(stream)
        if self._native is None:
            self._native, self._index = native().Event(context.native, self._timing), context.index
        elif self._index != context.index:
            raise RuntimeError(
                f"an event of '{vulkan_context.NAME}:{self._index}' cannot be recorded on "
                f"'{vulkan_context.NAME}:{context.index}': make another"
            )
        self._native.record(_native_of(context, stream))

    def synchronize(self) -> None:
        """Wait until it is reached."""
        if self._native is not None:
            self._native.synchronize()

    def wait(self, stream: Any = None) -> None:
        """Later work of the stream, the current one for None, begins after it; for another device this thread
        waits."""
        if self._index != device_index(stream):
            self.synchronize()
        elif self._native is not None:
            self._native.order(_native_of(_context_of(stream), stream))

    def query(self) -> bool:
        """Whether it was recorded and is reached."""
        return self._native is not None and bool(self._native.query())

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Milliseconds from here to ``end``, waiting for both. Raises RuntimeError if either has no time, or they
        are of two devices."""
        if self._native is None or end._native is None:
            raise RuntimeError("elapsed_time() needs two recorded events")
        return float(self._native.elapsed_ms(end._native))


def make_event(enable_timing: bool = False, **options: Any) -> Any:
    """An event, which takes its time from the device where the current one can."""
    if enable_timing and not vulkan_context.current().native.has_timestamps:
        return WaitingEvent(enable_timing)
    return DeviceEvent(enable_timing, **options)


class Queue:
    """A stream of a device. Kernels of all streams run in order, on one queue. Copies between pinned memory and the
    device run beside them, on the transfer queue, in all streams but the first one."""

    #: What launches are given as their stream.
    stream_id = 0

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device_index = device_index(device)
        #: None for the first stream.
        self.native: Any = native().Stream(_context_of(self).native)

    @classmethod
    def first(cls, device: Any = None) -> Queue:
        """The first stream of a device."""
        made = cls.__new__(cls)
        made.device_index, made.native = device_index(device), None
        return made

    @classmethod
    def current(cls, device: Any = None) -> Queue:
        """This thread's stream of a device."""
        made = cls.first(device)
        made.native = native().Stream.current(_context_of(made).native)
        return made

    def make_current(self) -> None:
        """Its device is the current one of this thread from now on, and what this thread does there goes to it."""
        native().Stream.make_current(_context_of(self).native, self.native)
        vulkan_context.set_current_device(self.device_index)

    def synchronize(self) -> None:
        """Wait for all that was submitted to it. Raises what kernels of torch's operations reported."""
        if self.native is None:
            _synchronize(self)
        else:
            self.record_event(DeviceEvent()).synchronize()
            raise_reports(_context_of(self))

    def query(self) -> bool:
        """Whether all that was submitted to it is done."""
        return bool(_context_of(self).native.stream_done(self.native))

    def record_event(self, event: Any = None) -> Any:
        """Record ``event``, or a new one; it."""
        event = make_event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Later work begins after it: this thread waits where it is another device's."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Later work begins after all that was submitted to ``stream``: this thread waits where it is another
        device's."""
        context = _context_of(stream)
        if context.index == self.device_index:
            context.native.order_streams(self.native, _native_of(context, stream))
        else:
            context.native.synchronize()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queue) and (other.device_index, other.native) == (self.device_index, self.native)

    def __hash__(self) -> int:
        return hash(("spirv stream", self.device_index, self.native))


def device_index(device: Any) -> int:
    """The index that a device stands for: the current one's for None, and where it names none.

    ``device``: an index, "spirv:1", an object with ``index`` or ``device_index`` (a torch.device, a stream). Raises
    ValueError on another string, TypeError on another object.
    """
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind != vulkan_context.NAME or (colon and not number.isdecimal()):
            raise ValueError(
                f"{device!r} is no device of this backend: '{vulkan_context.NAME}' or '{vulkan_context.NAME}:1'"
            )
        device = int(number) if colon else None
    index = getattr(device, "device_index", getattr(device, "index", device))
    return vulkan_context.current_device() if index is None else operator.index(index)


def _native_of(context: vulkan_context.Context, stream: Any) -> Any:
    """What the native module has of a stream: None for the first one. This thread's where ``stream`` is none."""
    queue = getattr(stream, "_queue", stream)
    return queue.native if isinstance(queue, Queue) else native().Stream.current(context.native)


def _synchronize(device: Any) -> None:
    context = vulkan_context.current() if device is None else _context_of(device)
    context.native.synchronize()
    if context.unread_reports:
        raise_reports(context)


def _context_of(device: Any) -> vulkan_context.Context:
    return vulkan_context.of_device(device_index(device))


class OnDevice:
    """A device is the current one of this thread for a block, as with ``torch.cuda.device``. ``idx``: its index; a
    negative one changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = vulkan_context.current_device()
            vulkan_context.set_current_device(self.idx)

    def __exit__(self, *_: object) -> None:
        if self.idx >= 0:
            vulkan_context.set_current_device(self.prev_idx)


class OnDeviceOf(OnDevice):
    """The device of a tensor or storage is the current one for a block; another kind of device changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == vulkan_context.NAME else -1)


class StreamContext:
    """A stream is the current one of this thread in a block, and its device the current one; nothing for None, nor for
    one that has no queue, as torch's compiler makes them: its work is the current stream's."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        queue = getattr(stream, "_queue", stream)
        self._queue: Any = queue if hasattr(queue, "make_current") else None
        self._before: list[tuple[int, Queue]] = []

    def __enter__(self) -> Any:
        if self._queue is not None:
            self._before.append((vulkan_context.current_device(), Queue.current(self._queue)))
            self._queue.make_current()
        return self.stream

    def __exit__(self, *_: object) -> None:
        if self._queue is not None:
            device, stream = self._before.pop()
            stream.make_current()
            vulkan_context.set_current_device(device)


class DeviceInterface(WithoutVendorNames):
    """What triton.testing, and code written for ``torch.cuda``, asks of a device."""

    Event = staticmethod(make_event)
    Stream = Queue
    device = OnDevice
    device_of = OnDeviceOf

    def current_device(self) -> int:
        """Index of the device that this thread's launches go to."""
        return vulkan_context.current_device()

    def set_device(self, device: Any) -> None:
        """Launch on another device from now on, in this thread."""
        vulkan_context.set_current_device(device_index(device))

    def device_count(self) -> int:
        """Number of this process's GPUs, or of its devices where it has no GPU."""
        return vulkan_context.device_count()

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work submitted to a device: the current one for None. Raises what kernels of torch's operations
        reported."""
        _synchronize(device)

    def current_stream(self, device: Any = None) -> Queue:
        """This thread's stream."""
        return Queue.current(device)

    def default_stream(self, device: Any = None) -> Queue:
        """The device's first stream."""
        return Queue.first(device)

    def ExternalStream(self, stream: int, device: Any = None) -> Queue:
        """The device's first stream, whatever the number."""
        return Queue.first(device)

    def set_stream(self, stream: Any) -> None:
        """The stream becomes this thread's, and its device the current one, as with CUDA."""
        if stream is not None:
            getattr(stream, "_queue", stream).make_current()

    stream = StreamContext


class IdleInterface(WithoutVendorNames):
    """A DeviceInterface where kernels are compiled and not run."""

    Event = HostEvent

    def current_device(self) -> int:
        """There is one target."""
        return 0

    def set_device(self, device: Any) -> None:
        """There is one target."""

    def device_count(self) -> int:
        """There is one target."""
        return 1

    def synchronize(self, device: Any = None) -> None:
        """Nothing runs."""
