"""What the Python code that Inductor writes around kernels says of the device, and what it cannot be in place of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime.context import NAME


def raw_stream(_: int) -> int:
    """What launches are given as their stream: a device has one queue."""
    return 0


class DeviceCode:
    """Methods of Inductor's DeviceOpOverrides: internals.py puts its class below."""

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
    """In place of Inductor's generator of C++ around kernels."""

    supports_caching = True  # asked of every generator, whether or not it is used

    @staticmethod
    def create(*_: Any, **__: Any) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            f"cpp_wrapper and AOTInductor are not supported for '{NAME}' tensors: their C++ code calls a device's "
            "allocator and launcher in C++, and this device's are reached from Python; use torch.compile without "
            "cpp_wrapper, and `triton-spirv compile` for kernels that run without Python"
        )


def bench(
    _: Any,
    function: Callable[[], Any],
    *,
    warmup: float = 5,
    rep: float = 20,
    return_mode: str = "min",
    grad_to_none: Any = None,
    **__: Any,
) -> float:
    """Milliseconds of a call by the device's timestamps, as Inductor's benchmarkers give them."""
    from triton.testing import do_bench

    return float(do_bench(function, warmup=warmup, rep=rep, return_mode=return_mode, grad_to_none=grad_to_none))
