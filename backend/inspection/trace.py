"""What a script's threads and its device did, as a trace of the Trace Event Format (Google, 2016), which Perfetto,
chrome://tracing and the viewers of torch's profiler read."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..runtime.native_module import native
from .speed import PEAKS, module_digest

if TYPE_CHECKING:
    from .peaks import Peaks

#: Methods of a device that copy: what they do.
_COPIES = {"upload": "copy to the device", "download": "copy to the host", "copy": "copy on the device"}


@dataclass
class Launch:
    """One launch. ``begin`` and ``milliseconds``: on the device's clock, from the first launch. ``host_begin`` and
    ``host_seconds``: on the host's clock. ``flops`` and ``moved``: operations and bytes that its launch_metadata
    states, or as ``estimated`` from the kernel; ``distinct``: the bytes without what is read or written again.
    ``kernel``: the CompiledKernel, ``arguments``: the numbers among its arguments, and the extents of its tensors.
    ``on_stream``: it is a copy on a stream of its own, beside kernels."""

    name: str
    grid: tuple[int, ...]
    host_begin: float
    thread: int
    flops: float = 0.0
    moved: float = 0.0
    begin: float = 0.0
    milliseconds: float = 0.0
    estimated: bool = False
    kernel: Any = None
    arguments: tuple[object, ...] = ()
    distinct: float = 0.0
    host_seconds: float = 0.0
    on_stream: bool = False


@dataclass(frozen=True)
class HostSpan:
    """What a thread of the host did besides launches: ``kind`` is compile, cached, load or copy. ``begin`` and
    ``seconds`` are on the host's clock."""

    kind: str
    name: str
    begin: float
    seconds: float
    facts: dict[str, Any] = field(default_factory=dict)
    thread: int = field(default_factory=threading.get_ident)


@contextmanager
def timed(host: list[HostSpan], kind: str, name: str, **facts: Any) -> Iterator[None]:
    """Adds to ``host`` what is done meanwhile."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        host.append(HostSpan(kind, name, begin, time.perf_counter() - begin, facts))


@contextmanager
def host_recorded(host: list[HostSpan], around: Callable[[Launch], AbstractContextManager[None]]) -> Iterator[None]:
    """Adds to ``host`` what is compiled and copied meanwhile, on any thread. Copies that are part of a launch, of
    tensors that the device cannot use in place, are not among them. ``around``: the block for a copy on another stream
    than the device's first one."""
    from triton import knobs

    device, listener = native().Device, knobs.compilation.listener
    copies = {name: getattr(device, name) for name in _COPIES}

    def compiled(**told: Any) -> None:
        seconds = told["times"].total / 1e6
        stages = {stage: duration / 1e6 for stage, duration in told["times"].lowering_stages}
        kind = "cached" if told["cache_hit"] else "compile"
        host.append(HostSpan(kind, told["metadata"]["name"], time.perf_counter() - seconds, seconds, stages))
        if listener is not None:
            listener(**told)

    def copying(name: str) -> Any:
        def copied(self: Any, to: int, from_: int, bytes_: int) -> Any:
            on_stream = name == "copy" and self.has_timestamps and native().Stream.current(self) is not None
            copy = Launch(
                _COPIES[name], (), time.perf_counter(), threading.get_ident(), moved=bytes_, on_stream=on_stream
            )
            with timed(host, "copy", _COPIES[name], bytes=bytes_), around(copy) if on_stream else nullcontext():
                return copies[name](self, to, from_, bytes_)

        return copied

    knobs.compilation.listener = compiled
    for name in copies:
        setattr(device, name, copying(name))
    try:
        yield
    finally:
        knobs.compilation.listener = listener
        for name, method in copies.items():
            setattr(device, name, method)


def host_text(host: list[HostSpan]) -> str:
    """One line about them: how many of each kind, and how long they took."""
    words = {"compile": "compiled", "cached": "taken from the cache", "load": "loaded", "copy": "copies"}
    told = []
    for kind, word in words.items():
        spans = [span for span in host if span.kind == kind]
        bytes_ = f" of {sum(span.facts['bytes'] for span in spans) / 1e6:.1f} MB" if kind == "copy" and spans else ""
        told.append(f"{len(spans)} {word}{bytes_} in {sum(span.seconds for span in spans):.3f} s")
    return f"kernels: {', '.join(told[:3])}; {told[3]}"


def event_of(launch: Launch) -> dict[str, Any]:
    """The event on the device's track, its begin in microseconds from the first launch."""
    facts: dict[str, Any] = {"grid": list(launch.grid), "bytes": launch.moved, "flops": launch.flops}
    facts |= {"estimated": launch.estimated, "distinct": launch.distinct}
    if launch.kernel is not None:
        facts |= {"kernel": launch.kernel.name, "module": module_digest(launch.kernel.kernel)}
    times = {"ts": launch.begin * 1e3, "dur": launch.milliseconds * 1e3}
    kind = {"cat": "copy", "tid": 1} if launch.on_stream else {"cat": "kernel", "tid": 0}
    return {"ph": "X", "name": launch.name, "pid": 1, "args": facts} | kind | times


def chrome_trace(launches: list[Launch], host: list[HostSpan] | None = None, peaks: Peaks | None = None) -> str:
    """The launches, and what the host did, as JSON: a track for the device's kernels, one for copies on streams, one
    for each thread, and an arrow from where a launch was asked for to where it ran. ``triton-spirv inspect
    --launches`` reads it, too."""
    spans = host or []
    first = min((launch.host_begin for launch in launches), default=0.0)
    start = min([first if launches else float("inf"), *(span.begin for span in spans)], default=0.0)
    pid = os.getpid()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    events: list[dict[str, Any]] = [_named("process_name", 1, 0, "device"), _named("process_name", pid, 0, "host")]
    if any(launch.on_stream for launch in launches):
        events += [_named("thread_name", 1, 0, "kernels"), _named("thread_name", 1, 1, "copies on streams")]
    for thread in dict.fromkeys([*(span.thread for span in spans), *(launch.thread for launch in launches)]):
        events.append(_named("thread_name", pid, thread, names.get(thread, f"thread {thread}")))
    for number, launch in enumerate(launches):
        on_device = event_of(launch)
        on_device["ts"] += (first - start) * 1e6
        at = {"pid": pid, "tid": launch.thread, "ts": (launch.host_begin - start) * 1e6}
        asked = {"ph": "X", "name": launch.name, "cat": "launch", "dur": launch.host_seconds * 1e6} | at
        arrow = {"name": "launch", "cat": "launches", "id": number}
        events += [on_device, asked | {"args": on_device["args"]}, arrow | at | {"ph": "s"}]
        events.append(arrow | {"ph": "f", "bp": "e", "pid": 1, "tid": on_device["tid"], "ts": on_device["ts"]})
    for span in spans:
        at = {"pid": pid, "tid": span.thread, "ts": (span.begin - start) * 1e6, "dur": span.seconds * 1e6}
        events.append({"ph": "X", "name": span.name, "cat": span.kind, "args": span.facts} | at)
    other = {PEAKS: asdict(peaks)} if peaks is not None else {}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": other})


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
