"""TRITON_SPIRV_COMPILE_ONLY: kernels are compiled for TRITON_SPIRV_TARGET, and not run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .. import settings
from ..capabilities import Capabilities
from ..runtime.device_kind import ComputeUnits

_log = logging.getLogger(__name__)


def target_capabilities() -> Capabilities:
    """The profile, or arch string, that TRITON_SPIRV_TARGET names."""
    return Capabilities.parse(settings.TARGET.get())


class UnreportedProperty(KeyError):
    """A device property that upstream's backends have and Vulkan does not report."""

    def __str__(self) -> str:
        """Which one, and what to do."""
        return (
            f"Vulkan does not report the device property '{self.args[0]}', so that helpers such as "
            "triton.testing.get_dram_gbps have no figure for this device: measure it with triton.testing.do_bench, or "
            "take it from the vendor's data sheet"
        )


class DeviceLimits(dict[str, Any]):
    """A device's limits in Triton's terms. Raises UnreportedProperty for what Vulkan does not report."""

    def __missing__(self, name: str) -> Any:
        raise UnreportedProperty(name)


def device_properties(capabilities: Capabilities, units: ComputeUnits) -> DeviceLimits:
    """A device's limits in Triton's terms; ``max_shared_mem`` in bytes.

    ``multiprocessor_count``: the compute units, or the estimate of runtime/vulkan/compute_units.py where the driver
    does not tell them. ``max_num_regs``: the 32-bit registers of one, where something tells them. ``mem_clock_rate``
    and ``mem_bus_width`` are not there: nothing tells them.
    """
    known = {} if units.registers is None else {"max_num_regs": units.registers}
    return DeviceLimits(
        known,
        multiprocessor_count=units.count_or_estimate,
        max_shared_mem=capabilities.shared_bytes,
        warpSize=capabilities.subgroup_size,
        max_threads_per_block=capabilities.max_workgroup_invocations,
        arch=capabilities.arch(),
    )


class CompileOnlyLauncher:
    """A launch that returns without running, and says so once per process."""

    said = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any) -> None:
        """Does nothing."""
        if not CompileOnlyLauncher.said:
            CompileOnlyLauncher.said = True
            _log.warning(
                "kernel '%s' was compiled but not run: TRITON_SPIRV_COMPILE_ONLY is set; further launches "
                "are skipped without a message",
                self.name,
            )


class CompileOnlyUtils:
    """Kernels that are compiled and not loaded."""

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, int, None, None, int]:
        """Implements DeviceUtils.load_binary(), with the target's limit and nothing loaded."""
        return kernel, 0, None, None, target_capabilities().max_workgroup_invocations

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""

    def get_device_properties(self, device: int | None = None) -> dict[str, Any]:
        """The target's limits, in Triton's terms."""
        target = target_capabilities()
        return device_properties(target, ComputeUnits(registers=target.traits.unit_registers))


def call_once(
    fn: Callable[[], Any], quantiles: Sequence[float] | None = None, return_mode: str = "mean", **_: Any
) -> float | list[float]:
    """Stands for do_bench where kernels are compiled and not run: zeros after one call."""
    from .benchmarking import check_return_mode

    check_return_mode(return_mode)
    fn()
    if quantiles is not None:
        return [0.0] * len(quantiles)
    return [0.0] if return_mode == "all" else 0.0
