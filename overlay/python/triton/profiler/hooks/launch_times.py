"""Launches with times from events of the active driver, instead of a vendor's library (driver_sessions.py).

A launch is a scope named as the kernel, with the metrics "time (ns)" and "count". Its time is known only when the device
is done with it, so that its scope stays open for metrics: exit_scope() leaves the innermost scope, and forgets the one
whose number it is given. A trace gets its kernels when its session ends.
"""
from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from triton._C.libproton import proton as libproton

from . import launch as launch_hook
from .hook import Hook, HookManager
from .launch import LaunchHook

#: Metrics of a scope that are the sum of those inside it.
_INCLUSIVE = re.compile(r"time \(ns\)|count|bytes|flops\d*")

#: Launches that may wait for their times; then the older half is read.
_MOST_PENDING = 1024


def _enter(scope: int, name: str) -> None:
    libproton.enter_scope(scope, name)


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> Callable[[int, str], None]:
    """_enter() by the name of a kernel: with context="python" a scope is called as the function that enters it."""
    return FunctionType(_enter.__code__.replace(co_name=name), globals())


class _Launches:
    """The launches of all sessions that are not read yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        #: Scope, name, the events before and after, and the anchor.
        self.pending: list[tuple[int, str, Any, Any, tuple[Any, int]]] = []
        self.here = threading.local()
        #: An event, and when the host recorded it (ns since 1970). A new one is taken when no launch is pending: the
        #: clocks of device and host drift apart.
        self.anchor: tuple[Any, int] | None = None

    def begin(self, name: str, event: Any) -> None:
        """Before a launch; `event` was just recorded."""
        scope = libproton.record_scope()
        _named(name)(scope, name)
        libproton.exit_scope(libproton.record_scope(), name)
        with self.lock:
            if self.anchor is None or not self.pending:
                self.anchor = event, time.time_ns()
            self.here.open = scope, name, event, self.anchor

    def end(self, event: Any) -> None:
        """After that launch."""
        (scope, name, begin, anchor), self.here.open = self.here.open, None
        with self.lock:
            self.pending.append((scope, name, begin, event, anchor))
            if len(self.pending) >= _MOST_PENDING:
                self._read(_MOST_PENDING // 2)

    def read(self) -> None:
        """Gives the sessions all times, waiting for the device."""
        with self.lock:
            self._read(len(self.pending))

    def _read(self, count: int) -> None:
        traces = [hook for hook in HookManager.active_hooks if isinstance(hook, LaunchTimes) and hook.is_trace]
        for scope, name, begin, end, (anchor, anchor_ns) in self.pending[:count]:
            milliseconds = begin.elapsed_time(end)
            libproton.add_metrics(scope, {"time (ns)": round(milliseconds * 1e6), "count": 1}, {})
            start = anchor_ns / 1e3 + anchor.elapsed_time(begin) * 1e3
            for hook in traces:
                hook.kernels.append((name, start, milliseconds * 1e3))
        del self.pending[:count]


_launches = _Launches()


class LaunchTimes(Hook):
    """The hook of a session. Of several, the first active one measures: libproton gives metrics to all sessions.

    `make_event`: makes an event of the device, as torch.cuda.Event. `name`: of the session, and of its file. `kernels` of
    a trace: name, start (µs since 1970) and duration (µs) of each.
    """

    priority = 0  # after LaunchHook, which names a launch and states its work

    def __init__(self, make_event: Any, name: str, is_trace: bool) -> None:
        self.make_event, self.name, self.is_trace = make_event, name, is_trace
        self.kernels: list[tuple[str, float, float]] = []

    def init_handle(self, module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
        """Nothing: only launches are measured."""

    def activate(self) -> None:
        """Before the session records (again): it does not know the launches until now."""
        _launches.read()

    def deactivate(self) -> None:
        """Before the session stops recording."""
        _launches.read()

    def enter(self, metadata: Any) -> None:
        """Before a launch."""
        measures = next(hook for hook in HookManager.active_hooks if isinstance(hook, LaunchTimes))
        if measures is not self or launch_hook.in_hook.get():
            return
        name = metadata.data["name"]
        if any(isinstance(hook, LaunchHook) for hook in HookManager.active_hooks):
            if not launch_hook.enabled.get():  # it leaves out this kernel
                return
            name = launch_hook.op_name.get()
        event = self.make_event(enable_timing=True)
        event.record()
        _launches.begin(name, event)

    def exit(self, metadata: Any) -> None:
        """After a launch."""
        if getattr(_launches.here, "open", None) is not None:
            event = self.make_event(enable_timing=True)
            event.record()
            _launches.end(event)

    def finish(self) -> None:
        """Adds to the file of the session what libproton does not know."""
        path = Path(f"{self.name}.{'chrome_trace' if self.is_trace else 'hatchet'}")
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            (self._add_kernels if self.is_trace else _mark_inclusive)(content)
            path.write_text(json.dumps(content, indent=None if self.is_trace else 4), encoding="utf-8")

    def _add_kernels(self, trace: dict[str, Any]) -> None:
        """The kernels on a track of their own."""
        base = trace.get("baseTimeNanoseconds", 0) / 1e3
        kernels = [{
            "cat": "kernel", "name": name, "ph": "X", "pid": "device", "tid": 0, "ts": start - base, "dur": duration
        } for name, start, duration in self.kernels]
        trace["traceEvents"] = [*(trace.get("traceEvents") or []), *kernels]


def _mark_inclusive(tree: list[dict[str, Any]]) -> None:
    """Metrics of the root are those that proton-viewer adds up along the tree."""
    found: set[str] = set()
    nodes = tree[:1]
    while nodes:
        node = nodes.pop()
        found |= node["metrics"].keys()
        nodes += node["children"]
    tree[0]["metrics"] |= {name: 0 for name in sorted(found) if _INCLUSIVE.fullmatch(name)}
