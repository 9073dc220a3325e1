"""torch's part of the C++ code: prepared calls, views, casts and DLPack (native/torch/)."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...runtime import native, native_part


@cache
def torch_native() -> Any:
    """The C++ module. Raises DeviceUnavailable as the runtime's native()."""
    native()  # whose devices and launchers it takes
    return native_part("_native_torch")
