"""Graphs: launches that are captured once and replayed with one submission, as CUDA graphs are.

::

    graph = Graph()
    with graph.capture():
        first[(64,)](x, y, size)
        second[(64,)](y, out, size)
    graph.replay()

A captured launch does not run. It keeps its arguments: a replay works on the same memory, with the same grid and the
same numbers. Launch hooks are called at the capture. Work between launches on the host is not part of the graph.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import context as vulkan_context
from .context import Context, native


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


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

    def __init__(self, device: int | None = None) -> None:
        self.context = vulkan_context.current() if device is None else vulkan_context.of_device(device)
        self._recording = native().Recording(self.context.native)
        self._reports: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._unloads = self.context.unloads
        #: Tensors that were passed, with their addresses.
        self._tensors: list[tuple[Any, int]] = []

    @property
    def launches(self) -> int:
        """How many launches were captured."""
        return int(self._recording.launches)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """Capture what this thread launches on the graph's device in the block. An error in the block leaves a graph
        that cannot be replayed.

        Refused in the block: launches whose arguments are copied (host tensors on a GPU, CUDA tensors), copies and
        fills of device memory, events and so benchmarks (autotune before). Raises RuntimeError where this thread is
        capturing already, or the graph was captured before.
        """
        if _capturing.graph is not None:
            raise RuntimeError("this thread is capturing a graph already: end that capture first")
        self._recording.begin()
        _capturing.graph = self
        ended = False
        try:
            yield self
            ended = True
        finally:
            _capturing.graph = None
            self._recording.end(ended)
        self._unloads = self.context.unloads
        passed = {id(leaf): leaf for arguments in self._recording.arguments for leaf in _leaves(arguments)}
        self._tensors = [(tensor, tensor.data_ptr()) for tensor in passed.values() if hasattr(tensor, "data_ptr")]

    def replay(self) -> None:
        """Run the launches in their order, behind all earlier work. Returns once they are submitted where all tensors
        are in device memory and no kernel reports, otherwise when they are done.

        Raises what launches of kernels that report raise (device_assert, checked bounds, watched loops), after the
        whole graph has run; RuntimeError where it was not captured to its end, a kernel of it was unloaded, or a tensor
        of it was freed or resized.
        """
        if self._unloads != self.context.unloads:
            if not all(map(self.context.has_kernel, self._recording.pipelines)):
                raise RuntimeError("a kernel of this graph was unloaded: keep what its launch returned for as long as "
                                   "the graph")
            self._unloads = self.context.unloads
        for tensor, address in self._tensors:
            if tensor.data_ptr() != address:
                raise RuntimeError("a tensor of this graph has other memory than at the capture: it was resized; "
                                   "capture a new graph")
        for reset, _ in self._reports:
            reset()
        self._recording.replay()
        if self._reports:
            self.context.native.synchronize()
            self._raise_reports()
        self.context.raise_validation_errors()

    def _raise_reports(self) -> None:
        first: BaseException | None = None
        for _, read in self._reports:
            try:
                read()
            except RuntimeError as error:
                first = first or error
        if first is not None:
            raise first

    def add_report(self, reset: Callable[[], None], read: Callable[[], None]) -> None:
        """For a captured launch that reports: ``reset`` is called before each replay, ``read`` after it."""
        self._reports.append((reset, read))
