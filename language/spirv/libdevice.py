"""The functions of triton.language.extra.libdevice as this backend has them. docs/internals/math.md has their bounds.

They are looked up when a kernel names one: this module is imported while triton is.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from triton.backends.spirv import libdevice

    try:
        return getattr(libdevice, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    from triton.backends.spirv import libdevice

    return list(libdevice.__all__)
