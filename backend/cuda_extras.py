"""``tl.extra.cuda`` for this backend: kernels that were written for CUDA name it.

``libdevice`` is upstream's module, whose ``__nv_*`` symbols lowering/externs.py computes. ``globaltimer`` and ``smid``
are not PTX here but reads of what Vulkan shows, and refused on a device that does not show it.
"""

from __future__ import annotations

from typing import Any

from triton.language import core
from triton.language.extra.cuda import (
    convert_custom_float8_sm70,
    convert_custom_float8_sm80,
    gdc_launch_dependents,
    gdc_wait,
    libdevice,
    num_warps,
)


def _read(symbol: str, type_: core.dtype, semantic: Any) -> Any:
    return core.extern_elementwise("", "", [], {(): (symbol, type_)}, is_pure=False, _semantic=semantic)


@core.extern
def globaltimer(_semantic: Any = None) -> Any:
    """A 64-bit counter of the device that only grows: nanoseconds on NVIDIA, elsewhere the unit is the device's own."""
    return _read("__spirv_device_clock", core.int64, _semantic)


@core.extern
def smid(_semantic: Any = None) -> Any:
    """The number of the multiprocessor that runs the program."""
    return _read("__spirv_multiprocessor", core.int32, _semantic)


@core.builtin
def num_threads(_semantic: Any = None) -> Any:
    """``num_warps`` times the device's subgroup size, as a constexpr. A workgroup may have more invocations where tiles
    are large, and fewer where they are small (docs/internals/performance.md)."""
    options = _semantic.builder.options
    return core.constexpr(options.num_warps * options.warp_size)


__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
