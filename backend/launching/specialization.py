"""What kernels are compiled for of each tensor: whether its address is aligned, and its memory small."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..runtime.errors import DeviceUnavailable
from ..runtime.memory.host_memory import memory_bytes
from ..runtime.native_module import native

#: Memory of at most so many bytes is reached from any address in it by signed 32-bit offsets.
POINTER_RANGE = (1 << 31) - 1


def tensor_specialization(arg: Any, align: bool = False) -> str:
    """``D``: the address is a multiple of 16. ``S``: the tensor's allocation is smaller than 2 GiB."""
    if hasattr(arg, "untyped_storage"):
        size = arg.untyped_storage().nbytes()
    else:
        size = memory_bytes(arg)
    small = size <= POINTER_RANGE
    if align and not arg.data_ptr() & 15:
        return "DS" if small else "D"
    return "S" if small else ""


@functools.cache
def fast_tensor_specialization() -> Callable[..., str]:
    """The same from the native module, where it was built: a compile-only install has none."""
    try:
        native_specialization = native().tensor_specialization
    except DeviceUnavailable:
        return tensor_specialization
    return native_specialization(tensor_specialization, POINTER_RANGE)  # type: ignore[no-any-return]
