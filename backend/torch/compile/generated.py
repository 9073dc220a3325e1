"""How the Python code that Inductor writes around kernels refers to the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import fmean, median
from typing import Any

from triton.runtime.driver import driver as config

from ...runtime import NAME


def raw_stream(_: int) -> int:
    """What launches are given as their stream: a device has one queue."""
    return 0


class DeviceCode:
    """Methods of Inductor's DeviceOpOverrides: internals/ puts its class below."""

    def import_get_raw_stream_as(self, name: str) -> str:
        """A statement of one line: Inductor indents it."""
        return f"from {__name__} import raw_stream as {name}"

    def set_device(self, device_idx: int) -> str:
        """A statement."""
        return f"torch.{NAME}.set_device({device_idx})"

    def synchronize(self) -> str:
        """A statement."""
        return f"torch.{NAME}.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        """A context manager."""
        return f"torch.{NAME}.device({device_idx})"

    def current_stream(self) -> str:
        """An expression."""
        return f"torch.{NAME}.current_stream()"

    def stream_handle(self, stream_name: str) -> str:
        """An expression: what launches are given."""
        return "0"


class NoCppWrapper:
    """Instead of Inductor's generator of C++ around kernels."""

    supports_caching = True  # asked of every generator, whether or not it is used

    @staticmethod
    def create(*_: Any, **__: Any) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            f"cpp_wrapper and AOTInductor are not supported for '{NAME}' tensors: their C++ code calls a device's "
            "allocator and launcher in C++, and this device has them in Python; use torch.compile without "
            "cpp_wrapper, and `triton-spirv compile` for kernels that run without Python"
        )


#: Timed calls of a benchmark, whatever the time allowed for them.
_FEWEST_CALLS, _MOST_CALLS = 3, 50


def bench(
    _: Any,
    function: Callable[[], Any],
    *,
    warmup: float = 5,
    rep: float = 20,
    return_mode: str = "min",
    grad_to_none: Iterable[Any] | None = None,
    **__: Any,
) -> float:
    """Milliseconds of a call by the device's timestamps, as Inductor's benchmarkers give them.

    ``warmup``, ``rep``: milliseconds of the host's clock to spend before, and on, the timed calls. Caches are not
    cleared in between, as triton.testing.do_bench does: on a CPU that takes a thousand times as long as a small kernel.
    ``return_mode``: "min", "mean" or "median". Raises ValueError on another.
    """
    summaries: dict[str, Callable[[list[float]], float]] = {"min": min, "mean": fmean, "median": median}
    if return_mode not in summaries:
        raise ValueError(f"return_mode must be {', '.join(summaries)}, not {return_mode!r}")
    interface = config.active.get_device_interface()
    tensors = list(grad_to_none or ())
    function()
    interface.synchronize()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < _MOST_CALLS:
        spent = (time.perf_counter() - begin) * 1e3
        if len(times) >= _FEWEST_CALLS and spent > warmup + rep:
            break
        for tensor in tensors:
            tensor.grad = None
        start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        elapsed = float(start.elapsed_time(end))  # waits
        if spent >= warmup or not times:
            times.append(elapsed)
    return float(summaries[return_mode](times))
