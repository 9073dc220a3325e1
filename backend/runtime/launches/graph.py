"""Graphs: launches that are captured once and replayed with one submission, as CUDA graphs are.

::

    graph = Graph()
    with graph.capture():
        first[(64,)](x, y, size)
        second[(64,)](y, out, size)
    graph.replay()

A captured launch does not run. It keeps its arguments: a replay works on the same memory, with the same grid and the
same numbers. Launch hooks are called at the capture. Work between launches on the host is not part of the graph. A
graph holds its tensors and kernels: a kernel that is unloaded stays on the device for as long.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from .. import context as vulkan_context
from ..context import Context
from ..errors import raise_first
from ..native_module import native


class _Capturing(threading.local):
    graph: Graph | None = None


_capturing = _Capturing()


def capturing(context: Context) -> Graph | None:
    """The graph that this thread's launches on ``context`` are captured into, if any."""
    graph = _capturing.graph
    return graph if graph is not None and graph.context is context else None


class Graph:
    """Launches of one device, captured by one thread. Replays may come from any thread.

    ``device``: the index of the device; the current one for None.
    """

    #: What is told the index of the device after each replay.
    AFTER_REPLAYS: ClassVar[list[Callable[[int], None]]] = []

    def __init__(self, device: int | None = None) -> None:
        self.context = vulkan_context.current() if device is None else vulkan_context.of_device(device)
        self._recording = native().Recording(self.context.native)
        self._reports: list[tuple[Callable[[], None], Callable[[], Callable[[], None]]]] = []
        # Held while one replay has the report buffers. A signal's handler may replay in the thread that has it.
        self._lock = threading.RLock()
        #: Tensors that were passed, with the addresses that they had then.
        self._tensors: list[tuple[Any, int]] = []
        self.context.add_graph(self)

    @property
    def tensors(self) -> list[tuple[Any, int]]:
        """Tensors that were passed, which the graph keeps, with the addresses that they had then."""
        return self._tensors

    @property
    def launches(self) -> int:
        """How many launches were captured."""
        return int(self._recording.launches)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """Capture what this thread launches on the graph's device in the block, with the backward passes of torch that
        it begins there. An error in the block leaves a graph that cannot be replayed.

        Refused in the block: launches whose arguments are copied (host tensors on a GPU, CUDA tensors), copies and
        fills of device memory, events, waits (``synchronize()``) and so benchmarks (autotune before). Raises
        RuntimeError where this thread is capturing already, or the graph was captured before.
        """
        if _capturing.graph is not None:
            raise RuntimeError("this thread is capturing a graph already: end that capture first")
        self._recording.begin()
        _capturing.graph = self
        ended = False
        torch: Any = sys.modules.get("torch")
        try:
            # Else they run on a thread of torch's.
            with nullcontext() if torch is None else torch.autograd.set_multithreading_enabled(False):
                yield self
            passed = {(id(tensor), address): (tensor, address) for tensor, address in self._recording.tensors}
            self._tensors = [entry for entry in passed.values() if hasattr(entry[0], "data_ptr")]
            ended = True
        finally:
            _capturing.graph = None
            self._recording.end(ended)

    @staticmethod
    @contextmanager
    def uncaptured() -> Iterator[None]:
        """What this thread does in the block is done at once, though it captures a graph: what is made there is the
        same in each replay, and may be used by launches that are not captured."""
        graph = _capturing.graph
        if graph is None:
            yield
            return
        _capturing.graph = None
        graph._recording.pause()
        try:
            yield
        finally:
            graph._recording.go_on()
            _capturing.graph = graph

    def replay(self) -> None:
        """Run the launches in their order, behind all earlier work. Returns once they are submitted where all tensors
        are in device memory and no kernel reports, otherwise when they are done.

        Raises what launches of kernels that report raise (device_assert, checked bounds, watched loops), after the
        whole graph has run: the first failure, with the others as its notes. RuntimeError where it was not captured to
        its end, or a tensor of it was freed or resized.
        """
        for tensor, address in self._tensors:
            if tensor.data_ptr() != address:
                raise RuntimeError("a tensor of this graph was resized after the capture; capture a new graph")
        try:
            if self._reports:
                self._replay_with_reports()
            else:
                self._recording.replay()
        finally:
            for told in self.AFTER_REPLAYS:
                told(self.context.index)
        self.context.raise_validation_errors()

    def _replay_with_reports(self) -> None:
        with self._lock:
            self._recording.wait()  # for a replay whose own wait was interrupted
            for reset, _ in self._reports:
                reset()
            self._recording.replay()
            self._recording.wait()
            told = [read() for _, read in self._reports]
        raise_first(told)

    def keep(self, used: Any) -> None:
        """Keep an object, such as a tensor whose address a captured launch reads, for as long as the graph, or a replay
        of it that still runs."""
        self._recording.keep(used)

    def has_kernel(self, handle: int) -> bool:
        """Whether the kernel of that handle was captured."""
        return handle in self._recording.kernels

    def add_report(self, reset: Callable[[], None], read: Callable[[], Callable[[], None]]) -> None:
        """For a captured launch that reports: ``reset`` is called before each replay, ``read`` after it; what ``read``
        gives is called then, and raises what was reported."""
        self._reports.append((reset, read))
