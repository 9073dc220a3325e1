"""``torch.Stream`` and ``torch.Event`` of the device ``spirv``: torch's own classes ask a part of a device that is
written in C++, so that each of their operations is done here."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from ...runtime import NAME, Queue, StreamContext, device_index, make_event

_C: Any = torch._C


class Stream(_C.Stream):
    """A stream of a device. Copies of pinned memory overlap with kernels in all but the first one (runtime's Queue).

    ``device``: an index, "spirv:1", a torch.device; the current one for None. ``priority`` has no effect.
    """

    def __new__(cls, device: Any = None, priority: int = 0, *, queue: Queue | None = None, **_: Any) -> Stream:
        """A new stream of the device, or that of a ``queue``. Raises DeviceUnavailable if it is not there."""
        queue = queue or Queue(device)
        made: Stream = super().__new__(cls, device=f"{NAME}:{queue.device_index}")
        made._queue = queue  # torch counts one device: what it keeps of the index may be another
        made._context = StreamContext(queue)
        made.priority, made.cuda_stream = priority, 0
        return made

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority: all streams have the same."""
        return 0, 0

    @classmethod
    def current(cls, device: Any = None) -> Stream:
        """This thread's stream of the device."""
        return cls(queue=Queue.current(device))

    @property
    def device_index(self) -> int:
        """The device's."""
        return self._queue.device_index

    @property
    def device(self) -> torch.device:
        """The device."""
        return torch.device(NAME, self.device_index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._queue == self._queue

    def __ne__(self, other: object) -> bool:
        return not self == other  # torch's own compares what it keeps in C++

    def __hash__(self) -> int:
        return hash(self._queue)

    def __repr__(self) -> str:
        return f"torch.Stream device={self.device}"

    def synchronize(self) -> None:
        """Wait for all that was submitted to it."""
        self._queue.synchronize()

    def query(self) -> bool:
        """Whether all that was submitted to it is done."""
        return self._queue.query()

    def record_event(self, event: Any = None) -> Any:
        """Record ``event``, or a new one; it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Later work begins after it: this thread waits where it is another device's."""
        self._queue.wait_event(event)

    def wait_stream(self, stream: Any) -> None:
        """Later work begins after all that was submitted to ``stream``: this thread waits where it is another
        device's."""
        if stream.device.type == NAME:
            self._queue.wait_stream(stream)
        else:
            stream.synchronize()

    def __enter__(self) -> Stream:
        """It is the current stream in the block, and its device the current one."""
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__()


class Event(_C.Event):
    """A point on the timeline of a device; with ``enable_timing``, a timestamp that the device takes.

    ``device``: that it is made for.
    """

    def __new__(
        cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        """Raises NotImplementedError with ``interprocess``."""
        if interprocess:
            raise NotImplementedError(f"an event of '{NAME}' cannot be shared between processes (interprocess)")
        place = torch.device(NAME, device_index(device))
        made: Event = super().__new__(cls, device=place, enable_timing=enable_timing)
        made._device = place
        made._point = make_event(enable_timing)
        made._timing, made._recorded = enable_timing, False
        return made

    @property
    def device(self) -> torch.device:
        """The device that it was made for."""
        return self._device

    def record(self, stream: Any = None) -> None:
        """The point is reached when all is done that was submitted to the stream until now, to the current one of
        its device for None. A second call moves it. Raises RuntimeError on another device than before."""
        self._point.record(self._device if stream is None else stream)
        self._recorded = True

    def wait(self, stream: Any = None) -> None:
        """Later work of the stream begins after it; for another device's, this thread waits."""
        if self._recorded:
            self._point.wait(stream)

    def synchronize(self) -> None:
        """Wait until it is reached."""
        if self._recorded:
            self._point.synchronize()

    def query(self) -> bool:
        """Whether it is reached: True before it is recorded, as with CUDA."""
        return not self._recorded or bool(self._point.query())

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from here to ``end_event``, waiting for both. Raises RuntimeError if either was not recorded,
        or was made without ``enable_timing``, or they are of two devices."""
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time() needs an event of '{NAME}', not {type(end_event).__name__}")
        if not (self._timing and end_event._timing):
            raise RuntimeError("elapsed_time() needs two events that were made with enable_timing=True")
        return float(self._point.elapsed_time(end_event._point))

    def ipc_handle(self) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"an event of '{NAME}' cannot be shared between processes")
