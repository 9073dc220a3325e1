"""The C++ part of the runtime."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import VulkanUnavailable


def native() -> Any:
    """The C++ module. Raises VulkanUnavailable where it was not built."""
    try:
        return import_module("..._native", __name__)
    except ImportError as error:
        raise VulkanUnavailable(
            f"the native module of the SPIR-V backend cannot be loaded ({error}); build it with: "
            "cmake -S . -B build/native -G Ninja -DTRITON_SPIRV_IN_PLACE=ON && "
            "ninja -C build/native"
        ) from error
