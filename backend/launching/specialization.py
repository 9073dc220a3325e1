"""What kernels are compiled for of each tensor: whether its address is aligned, and its memory small."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..abi.argument_properties import POINTER_RANGE, properties
from ..runtime.errors import DeviceUnavailable
from ..runtime.memory.host_memory import memory_bytes
from ..runtime.native_module import native


def tensor_specialization(arg: Any, align: bool = False) -> str:
    """The letters of a tensor's properties (abi/argument_properties.py); the address counts where ``align`` is set."""
    return properties(arg.data_ptr() if align else 0, memory_bytes(arg), align)


@functools.cache
def fast_tensor_specialization() -> Callable[..., str]:
    """The function from the native module, where it was built: a compile-only install has none."""
    try:
        native_specialization = native().tensor_specialization
    except DeviceUnavailable:
        return tensor_specialization
    return native_specialization(tensor_specialization, POINTER_RANGE)
