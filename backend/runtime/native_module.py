"""The C++ part of the runtime."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..abi.native_version import UNSAID, VERSION
from .errors import DeviceUnavailable

_BUILD = "cmake -S . -B build/native -G Ninja -DTRITON_SPIRV_IN_PLACE=ON && ninja -C build/native"


def native() -> Any:
    """The C++ module. Raises DeviceUnavailable if it was not built, or is of another version than the Python
    code."""
    return native_part("_native")


def native_part(name: str) -> Any:
    """A module that is built with native(), which it may use and which is loaded before. Raises as native()."""
    try:
        module = import_module(f"...{name}", __name__)
    except ImportError as error:
        raise DeviceUnavailable(
            f"the native module of the SPIR-V backend cannot be loaded ({error}); build it with: {_BUILD}"
        ) from error
    found = getattr(module, "ABI_VERSION", UNSAID)
    if found != VERSION:
        raise DeviceUnavailable(
            f"the native module of the SPIR-V backend is of ABI version {found}, the Python code of {VERSION}: install "
            f"the wheel again, or in a checkout rebuild it with: {_BUILD}"
        )
    return module
