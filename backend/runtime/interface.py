"""Events, streams and synchronisation in the terms of ``torch.cuda``, as triton.testing asks for them."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import context as vulkan_context
from .context import native


class HostEvent:
    """A point in time on the host's clock, when all earlier work is done."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._seconds: float | None = None

    def record(self, stream: Any = None) -> None:
        """Take the time now."""
        self._wait()
        self._seconds = time.perf_counter()

    def _wait(self) -> None:
        """Nothing is in flight where nothing runs."""

    def synchronize(self) -> None:
        """It was reached when it was recorded."""

    def wait(self, stream: Any = None) -> None:
        """It was reached when it was recorded."""

    def query(self) -> bool:
        """Whether it has happened."""
        return self._seconds is not None

    def elapsed_time(self, end: HostEvent) -> float:
        """Milliseconds from here to ``end``. Raises RuntimeError where either was not recorded."""
        if self._seconds is None or end._seconds is None:
            raise RuntimeError("elapsed_time() needs two recorded events")
        return (end._seconds - self._seconds) * 1e3


class WaitingEvent(HostEvent):
    """A HostEvent for a device without timestamps: recording it waits for the device."""

    def _wait(self) -> None:
        vulkan_context.current().native.synchronize()


class DeviceEvent:
    """A point on the current device's timeline; its time is a timestamp that the device takes."""

    __slots__ = ("_native", "_recorded")

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._native = native().Event(vulkan_context.current().native, enable_timing)
        self._recorded = False

    def record(self, stream: Any = None) -> None:
        """The point is reached when all work submitted until now is done. A second call moves it."""
        self._native.record()
        self._recorded = True

    def synchronize(self) -> None:
        """Wait until it is reached."""
        self._native.synchronize()

    def wait(self, stream: Any = None) -> None:
        """Later work begins after it anyway: there is one queue, in order."""

    def query(self) -> bool:
        """Whether it was recorded and is reached."""
        return self._recorded and self._native.query()

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Milliseconds from here to ``end``, waiting for both. Raises RuntimeError where either has no time."""
        return float(self._native.elapsed_ms(end._native))


def make_event(enable_timing: bool = False, **options: Any) -> Any:
    """An event of the current device."""
    if enable_timing and not vulkan_context.current().native.has_timestamps:
        return WaitingEvent(enable_timing)
    return DeviceEvent(enable_timing, **options)


class Queue:
    """The queue of a device. There is one, and its work runs in order, so that all streams of a device are equal."""

    #: What launches are given as their stream.
    stream_id = 0

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device_index = _index(device)

    def synchronize(self) -> None:
        """Wait for all submitted work."""
        _context(self.device_index).native.synchronize()

    def query(self) -> bool:
        """Whether all submitted work is done."""
        device = _context(self.device_index).native
        return bool(device.done(device.submitted))

    def record_event(self, event: Any = None) -> Any:
        """Record ``event``, or a new one; it."""
        event = make_event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Later work begins after it anyway."""

    def wait_stream(self, stream: Any) -> None:
        """Later work begins after it anyway."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queue) and other.device_index == self.device_index

    def __hash__(self) -> int:
        return hash(("spirv stream", self.device_index))


def _index(device: Any) -> int:
    index = getattr(device, "index", device)
    return vulkan_context.current_device() if index is None or not isinstance(index, int) else index


def _context(device: Any) -> vulkan_context.Context:
    return vulkan_context.of_device(_index(device))


class DeviceInterface:
    """What triton.testing, and code written for ``torch.cuda``, asks of a device."""

    Event = staticmethod(make_event)
    Stream = Queue

    def current_device(self) -> int:
        """Index of the device that launches go to."""
        return vulkan_context.current_device()

    def set_device(self, device: Any) -> None:
        """Launch on another device from now on."""
        vulkan_context.set_current_device(_index(device))

    def device_count(self) -> int:
        """Number of Vulkan devices."""
        return len(vulkan_context.devices())

    @contextmanager
    def device(self, device: Any) -> Iterator[None]:
        """Make a device the current one for the block."""
        before = vulkan_context.current_device()
        vulkan_context.set_current_device(_index(device))
        try:
            yield
        finally:
            vulkan_context.set_current_device(before)

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work submitted to a device: the current one for None."""
        _context(device).native.synchronize()

    def current_stream(self, device: Any = None) -> Queue:
        """The device's queue."""
        return Queue(device)

    def default_stream(self, device: Any = None) -> Queue:
        """The device's queue."""
        return Queue(device)

    def ExternalStream(self, stream: int, device: Any = None) -> Queue:  # noqa: N802 (torch's name)
        """The device's queue, whatever the number."""
        return Queue(device)

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        """Launches go to the queue in any case."""
        yield


class IdleInterface:
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
