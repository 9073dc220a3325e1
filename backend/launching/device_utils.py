"""Kernels on a device, and its limits, as Triton's CompiledKernel asks for them."""

from __future__ import annotations

import contextlib
import gc
import glob
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from triton import knobs
from triton.runtime.errors import OutOfResources

from .. import settings
from ..capabilities import Capabilities
from ..compile_time import TooLong, what_helps
from ..planning.matrix_unit_choice import matrix_units
from ..resources import CompilesTooLong
from ..runtime import context as vulkan_context
from ..runtime.device_kind import DeviceInfo
from ..runtime.errors import DamagedModule, DeviceUnavailable, RefusedModule
from ..runtime.kernel import Kernel
from ..runtime.measuring.measured import capabilities_of
from .compile_only import device_properties

#: Vector registers of a CPU's thread, each of which holds a value of every lane, so that a lane has as many.
HOST_REGISTERS = 16


def cache_folders(name: str, spirv: bytes) -> list[str]:
    """The entries of Triton's cache that hold this module under that name."""
    files = sorted(Path(knobs.cache.dir).glob(f"*/{glob.escape(name)}.spv"))
    return [str(file.parent) for file in files if file.read_bytes() == spirv]


def _what_helps(capabilities: Capabilities, name: str, spirv: bytes) -> str:
    """What makes the driver compile a kernel sooner. Its ``num_warps`` is read from Triton's cache."""
    found = None
    for folder in cache_folders(name, spirv):
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8")).get("num_warps")
    return what_helps(found, capabilities.most_subgroups)


def _unload(contexts: list[vulkan_context.Context]) -> None:
    """Kernels that are loaded in contexts that were left are loaded again by their next launch. Triton has no list of
    those that it compiled."""
    from triton.compiler import CompiledKernel  # asks for drivers while it is imported

    for one in gc.get_objects():
        if type(one) is CompiledKernel and isinstance(one.module, Kernel) and one.module.context in contexts:
            one.module = one.function = one._run = None


vulkan_context.when_left(_unload)


def matrix_types(device: DeviceInfo) -> frozenset[str]:
    """The component types (keys of matrices.COMPONENTS) of products that kernels compute on a device's matrix units, as
    TRITON_SPIRV_MATRIX_UNITS has it."""
    capabilities = capabilities_of(device)
    if capabilities is None:
        return frozenset()
    return frozenset(one.a for one in matrix_units(str(settings.MATRIX_UNITS.get()), capabilities))


class RefusedByDriver(RefusedModule, OutOfResources):
    """A kernel that the driver's compiler refuses, as NVIDIA's does with too many values at a time. Autotuning leaves
    it out."""

    def __str__(self) -> str:
        return str(self.args[0])


class DeviceUtils:
    """Loading kernels, as CompiledKernel asks for it."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int, refused: Callable[[], None] | None = None
    ) -> tuple[Any, int, int | None, int | None, int]:
        """(module, function, registers, spills, most invocations of a workgroup). Raises KernelRejected, and
        RefusedByDriver and CompilesTooLong, which autotuning leaves out.

        ``device``: its index. ``refused``: as Kernel has it. Registers are an invocation's. They and the spills are
        None unless TRITON_SPIRV_STATISTICS asks the driver for them and it has such figures; on a CPU the registers are
        those that there are.
        """
        context = vulkan_context.of_device(device)
        try:
            helps = partial(_what_helps, context.capabilities, name, kernel)
            loaded = Kernel(context, name, kernel, helps, refused=refused)
        except TooLong as error:
            raise CompilesTooLong(error) from None
        except RefusedModule as error:
            raise RefusedByDriver(error.reason, error.path) from error.__cause__
        except DamagedModule as error:
            folders = cache_folders(name, kernel)
            if not folders:
                raise
            advice = f"it comes from Triton's cache: delete {' and '.join(folders)}, and the kernel is compiled again"
            raise DamagedModule(f"{error.reason}; {advice}", error.path) from None
        registers = spills = None
        if settings.STATISTICS.get():
            with context.in_use():
                registers, spills = context.opened.statistics(kernel)
        if registers is None and context.device.kind == "cpu":
            registers = HOST_REGISTERS
        # On a processor a workgroup is one subgroup, however many warps the kernel asks for.
        most = sys.maxsize if context.capabilities.processor else loaded.max_invocations
        return loaded, loaded.handle, registers, spills, most

    def unload_module(self, module: Any) -> None:
        """Give a loaded kernel back."""
        module.unload()

    def get_device_properties(self, device: int | None = None) -> dict[str, Any]:
        """Limits of a device, the current one for None, in Triton's terms; ``max_shared_mem`` in bytes.

        Of a CPU ``max_num_regs`` are the registers of a workgroup's invocations.
        """
        info = vulkan_context.devices()[vulkan_context.current_device() if device is None else device]
        capabilities = capabilities_of(info)
        if capabilities is None:
            raise DeviceUnavailable(f"{info.describe()} cannot run Triton kernels")
        properties = device_properties(capabilities, info.compute_units)
        properties["name"] = info.name
        if info.kind == "cpu":
            properties["max_num_regs"] = HOST_REGISTERS * capabilities.max_workgroup_invocations
        return properties
