"""SPIRVDriver: how Triton's runtime sees the Vulkan device."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase, decompose_descriptor, wrap_handle_tensordesc_impl

from . import settings
from .abi.block import GRID, hidden_arguments
from .abi.launch import FIRST_ARGUMENT
from .abi.scalars import SCALARS, argument_type, triton_name
from .capabilities import Capabilities
from .launching.compile_only import (
    CompileOnlyLauncher,
    CompileOnlyUtils,
    call_once,
    compile_only,
    device_properties,
    target_capabilities,
)
from .launching.scratch_memory import ScratchLauncher
from .launching.signatures import argument_name, flat_signature, has_descriptor
from .launching.split_grid import PartsLauncher, SplitVariant
from .runtime import context as vulkan_context
from .runtime.buffer import DeviceBuffer, empty
from .runtime.component_maps import capabilities_of
from .runtime.devices import selected
from .runtime.errors import VulkanUnavailable
from .runtime.interface import DeviceInterface, IdleInterface
from .runtime.launch import Entry, make_launcher
from .runtime.pipeline import Kernel
from .runtime.reporting import ReportingLauncher
from .runtime.torch_registration import AT_REGISTRATION

#: Vector registers of a CPU's thread, each of which holds a value of every lane, so that a lane has as many.
HOST_REGISTERS = 16
#: Larger than the last-level cache of a host, and of a GPU.
_HOST_CACHE_BYTES, _DEVICE_CACHE_BYTES = 64 << 20, 256 << 20


def _enter_torch_operations() -> None:
    from .torch_ops import register  # needs torch

    register()


AT_REGISTRATION.append(_enter_torch_operations)


def unavailable_reason() -> str | None:
    """Why no kernel can be run, with what to do about it; None where one can."""
    if compile_only():
        return None
    try:
        selected()
        vulkan_context.native()
    except VulkanUnavailable as error:
        return str(error)
    return None


def _asked_for() -> bool:
    return settings.BACKEND.get() or os.environ.get("TRITON_DEFAULT_BACKEND") == "spirv"


def _gpu_driver_active() -> bool:
    """Whether the driver of a GPU vendor, as far as it is installed, has a device here."""
    from triton.backends import backends

    return any(name in backends and backends[name].driver.is_active() for name in ("nvidia", "amd"))


def chosen() -> bool:
    """Whether kernels go here as far as that is known without a look at the Vulkan devices."""
    return _asked_for() or not _gpu_driver_active()


def _make_tensordesc_arg(arg: Any, metadata: Any, _: Any) -> list[Any]:
    if metadata is not None:
        raise RuntimeError("hardware tensor descriptors are not known to the SPIR-V backend")
    return decompose_descriptor(arg)  # type: ignore[no-any-return]


def launcher(src: Any, metadata: Any) -> Callable[..., None]:
    """The callable that a CompiledKernel runs: ``make_launcher`` for the kernel's source and metadata.

    ``metadata.arguments``: [index into flat_signature, type] of each passed argument; without it all but the
    constexprs are passed. ``metadata.indirect_arguments``: the block goes into a buffer.
    ``metadata.written_arguments``: indices into the passed arguments of the pointers that may be written; None: any.
    ``metadata.global_scratch_size``, ``_align``: of a program's global scratch memory, where the kernel takes any.
    ``metadata.reports``: messages of a kernel that takes a report buffer.
    Raises ValueError where the metadata contradicts the signature.
    """
    if compile_only():
        return CompileOnlyLauncher(metadata.name)
    signature = dict(src.signature)
    tensordesc_meta = getattr(metadata, "tensordesc_meta", None)
    leaves = flat_signature([argument_name(src, key) for key in signature], list(signature.values()), tensordesc_meta)
    passed = getattr(metadata, "arguments", None)
    if passed is None:
        passed = [(index, type_) for index, (_, _, type_) in enumerate(leaves) if type_ != "constexpr"]
    if any(not 0 <= index < len(leaves) for index, _ in passed):
        raise ValueError(f"kernel '{metadata.name}': its metadata passes arguments that its signature does not have")
    entries = [(*leaves[index][:2], triton_name(type_)) for index, type_ in passed]
    reports = getattr(metadata, "reports", None)
    scratch_bytes = getattr(metadata, "global_scratch_size", 0)
    end = 1 + max((path[0] for path, _, _ in leaves), default=-1)
    hidden = hidden_arguments(bool(scratch_bytes), bool(reports))
    entries += [((end + index,), argument.name, argument.type) for index, argument in enumerate(hidden)]
    context = vulkan_context.current()
    if getattr(metadata, "split_grid", False):
        launch: Callable[..., None] = _parts_launcher(context, entries, end + len(hidden), metadata)
    else:
        parts = partial(_parts_launcher, context, entries, end + len(hidden))
        launch = _native_launcher(context, entries, metadata, SplitVariant(context, src, metadata, parts))
    if reports:
        launch = ReportingLauncher(context, metadata.name, launch, reports, entries)
    if scratch_bytes:
        launch = ScratchLauncher(metadata.name, launch, scratch_bytes, metadata.global_scratch_align)
    if not any(has_descriptor(type_) for type_ in signature.values()):
        return launch
    unpack = wrap_handle_tensordesc_impl(
        lambda *args: launch(*args[:-1], *args[-1]), signature, tensordesc_meta, _make_tensordesc_arg
    )
    return lambda *args: unpack(*args[:FIRST_ARGUMENT], args[FIRST_ARGUMENT:])


def _native_launcher(
    context: vulkan_context.Context, entries: list[Entry], metadata: Any, oversized: SplitVariant | None
) -> Any:
    written = getattr(metadata, "written_arguments", None)
    return make_launcher(
        context,
        metadata.name,
        entries,
        bool(getattr(metadata, "indirect_arguments", False)),
        None if written is None else {entries[index][1] for index in written},
        oversized,
    )


def _parts_launcher(context: vulkan_context.Context, entries: list[Entry], place: int, metadata: Any) -> PartsLauncher:
    """For the metadata of a kernel that takes GRID at ``place``, after the arguments in ``entries``."""
    grid = [((place + index,), argument.name, argument.type) for index, argument in enumerate(GRID)]
    launch = _native_launcher(context, [*entries, *grid], metadata, None)
    return PartsLauncher(launch, launch.grid_limits, place)


class DeviceUtils:
    """Loading kernels, as CompiledKernel asks for it."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[Any, int, int | None, int | None, int]:
        """(module, function, registers, spills, most invocations of a workgroup). Raises KernelRejected.

        ``device``: its index. Registers are an invocation's. Vulkan does not tell them, nor spills, so that both are
        None; on a CPU they are those that there are.
        """
        context = vulkan_context.of_device(device)
        loaded = Kernel(context, name, kernel)
        registers = HOST_REGISTERS if context.device.kind == "cpu" else None
        return loaded, loaded.pipeline, registers, None, loaded.max_invocations

    def unload_module(self, module: Any) -> None:
        """Give a loaded kernel back."""
        module.unload()

    def get_device_properties(self, device: int | None = None) -> dict[str, Any]:
        """Limits of a device, the current one for None, in Triton's terms; ``max_shared_mem`` in bytes.

        ``multiprocessor_count`` and ``max_num_regs`` are there for a CPU: its threads, and the registers of a
        workgroup's invocations. Vulkan has no such numbers of a GPU, nor ``mem_clock_rate`` and ``mem_bus_width``.
        """
        info = vulkan_context.devices()[vulkan_context.current_device() if device is None else device]
        capabilities = capabilities_of(info)
        if capabilities is None:
            raise VulkanUnavailable(f"{info.describe()} cannot run Triton kernels")
        properties = device_properties(capabilities)
        if info.kind == "cpu":
            properties["multiprocessor_count"] = os.cpu_count() or 1
            properties["max_num_regs"] = HOST_REGISTERS * capabilities.max_workgroup_invocations
        return properties


class SPIRVDriver(DriverBase):
    """The driver of the SPIR-V backend: a Vulkan device, or none in compile-only mode."""

    def __init__(self) -> None:
        super().__init__()
        self.launcher_cls = launcher

    @staticmethod
    def is_active() -> bool:
        """Whether kernels go here: asked for by name, or no GPU vendor's own driver has a device; and usable."""
        return chosen() and unavailable_reason() is None

    #: Whether TRITON_SPIRV_BACKEND asks for this driver. Raises SettingError.
    is_requested = staticmethod(settings.BACKEND.get)
    unavailable_reason = staticmethod(unavailable_reason)
    #: Whether kernels are run, and not compiled only.
    can_launch = property(lambda self: not compile_only())

    def why_no_launch(self) -> str:
        """Why kernels are not run where ``can_launch`` is False."""
        return "TRITON_SPIRV_COMPILE_ONLY is set"

    @cached_property
    def utils(self) -> DeviceUtils | CompileOnlyUtils:
        """Loader of compiled kernels."""
        return CompileOnlyUtils() if compile_only() else DeviceUtils()

    def get_current_target(self) -> GPUTarget:
        """The device's capabilities as a target. Raises VulkanUnavailable."""
        if compile_only():
            capabilities: Capabilities | None = target_capabilities()
        else:
            capabilities = capabilities_of(vulkan_context.devices()[vulkan_context.current_device()])
        if capabilities is None:
            raise VulkanUnavailable("the current Vulkan device cannot run Triton kernels")
        return GPUTarget("spirv", capabilities.arch(), capabilities.subgroup_size)

    def get_current_device(self) -> int:
        """Index of the device that this thread's launches go to. Raises VulkanUnavailable."""
        chosen = vulkan_context.chosen_device()  # every launch asks: a look at the environment would show
        if chosen is not None:
            return chosen
        return 0 if compile_only() else vulkan_context.current_device()

    def set_current_device(self, device: int) -> None:
        """Launch on another device from now on, in this thread. Raises VulkanUnavailable where it is not usable."""
        if not compile_only():
            vulkan_context.set_current_device(device)

    def remember_launch(
        self, function: Any, device: int, key: str, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        """Keeps what a launch like this one needs (see launching/relaunch.py)."""
        if not compile_only():
            from .launching.relaunch import (
                remember_launch,  # needs Triton's JIT, which asks for drivers while it is imported
            )

            remember_launch(self, function, device, key, args, keywords)

    def get_current_stream(self, device: int | None = None) -> int:
        """There is one queue."""
        return 0

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take with no copy: ``cpu`` where host memory is device memory (and
        where nothing runs), otherwise ``spirv:<index>``, which is made known to torch."""
        import torch

        if compile_only() or vulkan_context.current().host_memory == vulkan_context.ZERO_COPY:
            return torch.device("cpu")
        from .runtime import torch_device

        torch_device.register()
        return torch.device(torch_device.NAME, vulkan_context.current_device())

    def get_device_interface(self) -> DeviceInterface | IdleInterface:
        """Events, streams and synchronisation, in the terms of ``torch.cuda``."""
        return IdleInterface() if compile_only() else DeviceInterface()

    def get_benchmarker(self) -> Any:
        """triton.testing.do_bench, which times with the events of get_device_interface()."""
        if compile_only():
            return call_once
        from triton.testing import do_bench

        return do_bench

    @property
    def do_bench_graph(self) -> Callable[..., Any]:
        """What triton.testing.do_bench_cudagraph is for this driver (patches/graph-benchmarks.patch)."""
        if compile_only():
            return call_once
        from .launching.benchmarking import do_bench_graph  # imports triton.testing, which imports drivers

        return do_bench_graph

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the last-level cache of the device, for clear_cache()."""
        if compile_only() or vulkan_context.current().device.kind == "cpu":
            return (ctypes.c_char * _HOST_CACHE_BYTES)()
        return empty(_DEVICE_CACHE_BYTES, "uint8")

    def clear_cache(self, cache: Any) -> None:
        """Push other data out of the caches by writing ``cache``."""
        if isinstance(cache, DeviceBuffer):
            cache.fill(0)
            return
        if not compile_only():
            vulkan_context.current().native.synchronize()
        ctypes.memset(cache, 0, len(cache))

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of an argument in the argument block. Raises ValueError on an unknown type."""
        try:
            return argument_type(ty).c_type
        except KeyError:
            raise ValueError(
                f"{ty} is not an argument type of the SPIR-V backend; known: {', '.join(SCALARS)} and pointers"
            ) from None
