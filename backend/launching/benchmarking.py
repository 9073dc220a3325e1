"""Timing kernels without the host's part of a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton.testing import _summarize_statistics

from ..runtime import Graph
from ..runtime.streams import DeviceInterface

_RETURN_MODES = ("min", "max", "mean", "median", "all")
#: Replays that are timed, as upstream's do_bench_cudagraph does.
_REPLAYS = 10


def check_return_mode(return_mode: str) -> None:
    """Raises ValueError on one that do_bench does not know."""
    if return_mode not in _RETURN_MODES:
        raise ValueError(f"return_mode is one of {', '.join(_RETURN_MODES)}, not {return_mode!r}")


def do_bench_graph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds of a call of ``fn``, whose launches are captured and replayed: triton.testing.do_bench_cudagraph for
    this backend.

    ``rep``: milliseconds that a replay should take; ``fn`` is captured so many times. ``grad_to_none``: tensors whose
    gradients are dropped before each call. ``quantiles``, ``return_mode``: as of do_bench. Raises what Graph.capture
    raises, where ``fn`` does what cannot be captured, and ValueError on an unknown ``return_mode``.
    """
    check_return_mode(return_mode)
    interface = DeviceInterface()
    fn()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    for _ in range(5):
        fn()
    end.record()
    calls = max(1, int(rep / max(start.elapsed_time(end) / 5, 1e-3)))
    graph = Graph()
    with graph.capture():
        for _ in range(calls):
            for tensor in grad_to_none or ():
                tensor.grad = None
            fn()
    times = []
    for _ in range(_REPLAYS):
        start.record()
        graph.replay()
        end.record()
        times.append(start.elapsed_time(end) / calls)
    return _summarize_statistics(times, quantiles, return_mode)
