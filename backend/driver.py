"""SPIRVDriver: how Triton's runtime sees the device.

``import triton`` imports this file. What needs Vulkan is imported when a driver is made, or asked whether one can be.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .availability import chosen, compile_only, other_is_active, requested, unavailable_reason

if TYPE_CHECKING:
    from .launching.compile_only import CompileOnlyUtils
    from .launching.device_utils import DeviceUtils
    from .runtime.streams import DeviceInterface, IdleInterface

# From here on finalizers have their place among exit handlers: see _close_at_end() in runtime/context.py.
weakref.finalize(DriverBase, int)

#: Larger than the last-level cache of a host, and of a GPU.
_HOST_CACHE_BYTES, _DEVICE_CACHE_BYTES = 64 << 20, 256 << 20


def _complete_cpu() -> None:
    """Give torch.cpu the one function of a device's module that it lacks: programs call it of the device that they are
    given. A CPU has one stream."""
    import torch

    module: Any = torch.cpu
    if not hasattr(module, "set_stream"):
        module.set_stream = lambda stream: None


class SPIRVDriver(DriverBase):
    """The driver of the SPIR-V backend: a device, or none in compile-only mode."""

    #: By which availability.is_active() knows it.
    backend_name = "spirv"

    def __init__(self) -> None:
        super().__init__()
        from .launching.launcher import launcher
        from .runtime import context

        self.launcher_cls = launcher
        self._vulkan = context

    @staticmethod
    def is_active() -> bool:
        """Whether kernels go here: asked for by name, or no GPU vendor's own driver has a device; and usable."""
        return chosen() and unavailable_reason() is None

    is_requested = staticmethod(requested)
    unavailable_reason = staticmethod(unavailable_reason)
    other_is_active = staticmethod(other_is_active)
    #: Whether kernels are run, and not compiled only.
    can_launch = property(lambda self: not compile_only())

    def why_no_launch(self) -> str:
        """Why kernels are not run where ``can_launch`` is False."""
        return "TRITON_SPIRV_COMPILE_ONLY is set"

    @cached_property
    def utils(self) -> DeviceUtils | CompileOnlyUtils:
        """Loader of compiled kernels."""
        if compile_only():
            from .launching.compile_only import CompileOnlyUtils

            return CompileOnlyUtils()
        from .launching.device_utils import DeviceUtils

        return DeviceUtils()

    @property
    def autotune_store(self) -> Any:
        """Choices of autotuning: those of the file of TRITON_SPIRV_TUNED, and which are of the same code."""
        from .launching.tuned_choices import CHOICES

        return None if compile_only() else CHOICES

    def get_current_target(self) -> GPUTarget:
        """The device's capabilities as a target. Raises DeviceUnavailable."""
        from .launching.compile_only import target_capabilities
        from .runtime.errors import DeviceUnavailable
        from .runtime.measuring.measured import capabilities_of
        from .target import target_of

        capabilities = (
            target_capabilities()
            if compile_only()
            else capabilities_of(self._vulkan.devices()[self._vulkan.current_device()])
        )
        if capabilities is None:
            raise DeviceUnavailable("the current device cannot run Triton kernels")
        return target_of(capabilities)

    def get_current_device(self) -> int:
        """Index of the device that this thread's launches go to. Raises DeviceUnavailable."""
        known = self._vulkan.known_device()  # every launch asks: a look at the environment would show
        if known is not None:
            return known
        return 0 if compile_only() else self._vulkan.current_device()

    def set_current_device(self, device: int) -> None:
        """Launch on another device from now on, in this thread. Raises DeviceUnavailable if it is not usable."""
        if not compile_only():
            self._vulkan.set_current_device(device)

    def remember_launch(
        self, function: Any, device: int, key: str, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        """Keeps what a launch like this one needs (see launching/repeated_launches.py)."""
        if not compile_only():
            from .launching.repeated_launches import (
                remember_launch,  # needs Triton's JIT, which asks for drivers while it is imported
            )

            remember_launch(self, function, device, key, args, keywords)

    def get_current_stream(self, device: int | None = None) -> int:
        """There is one queue."""
        return 0

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take with no copy (torch/active.py); ``cpu`` where nothing
        runs."""
        if compile_only():
            import torch

            device = torch.device("cpu")
        else:
            from .extension_points import given

            device = given("active_device")()
        if device.type == "cpu":
            _complete_cpu()
        return device

    def get_device_interface(self) -> DeviceInterface | IdleInterface:
        """Events, streams and synchronisation, in the terms of ``torch.cuda``."""
        from .runtime.streams import DeviceInterface, IdleInterface

        return IdleInterface() if compile_only() else DeviceInterface()

    def get_benchmarker(self) -> Any:
        """triton.testing.do_bench, which times with the events of get_device_interface()."""
        if compile_only():
            from .launching.compile_only import call_once

            return call_once
        from triton.testing import do_bench

        return do_bench

    @property
    def do_bench_graph(self) -> Callable[..., Any]:
        """What triton.testing.do_bench_cudagraph is for this driver (patches/graph-benchmarks.patch)."""
        if compile_only():
            from .launching.compile_only import call_once

            return call_once
        from .launching.benchmarking import do_bench_graph  # imports triton.testing, which imports drivers

        return do_bench_graph

    def __getattr__(self, name: str) -> NoReturn:
        """What drivers of CUDA have and this one does not: the error says what to use instead."""
        from .runtime.vendor_figures import missing_attribute

        raise missing_attribute(self, name)

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the last-level cache of the device, for clear_cache()."""
        if compile_only() or self._vulkan.current().device.kind == "cpu":
            return (ctypes.c_char * _HOST_CACHE_BYTES)()
        from .runtime.buffer import empty

        return empty(_DEVICE_CACHE_BYTES, "uint8")

    def clear_cache(self, cache: Any) -> None:
        """Push other data out of the caches by writing ``cache``."""
        from .runtime.buffer import DeviceBuffer

        if isinstance(cache, DeviceBuffer):
            cache.fill(0)
            return
        if not compile_only():
            self._vulkan.current().native.synchronize()
        ctypes.memset(cache, 0, len(cache))

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of an argument in the argument block. Raises ValueError on an unknown type."""
        from .abi.scalars import SCALARS, argument_type

        try:
            return argument_type(ty).c_type
        except KeyError:
            raise ValueError(
                f"{ty} is not an argument type of the SPIR-V backend; known: {', '.join(SCALARS)} and pointers"
            ) from None
