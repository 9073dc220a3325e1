"""What ``torch.accelerator`` asks of the device ``spirv``: functions of ``torch._C`` by the end of their names, which
autoload/accelerator.py puts in the place of torch's own (``torch._C._accelerator_…``). Those ask a device's part
in C++."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ... import runtime, settings
from ...runtime import NAME, DeviceUnavailable, selected
from .spirv_module import MODULE
from .torch_streams import Stream


@cache
def is_wanted() -> bool:
    """Whether torch.accelerator stands for this device before a program has used it: where Vulkan was asked for by
    name, or there is a GPU. Mesa's CPU driver is slower than torch's own CPU code: it has to be asked for."""
    try:
        kind = selected().kind
    except DeviceUnavailable:
        return False
    asked = settings.BACKEND.get() or os.environ.get("TRITON_DEFAULT_BACKEND") == NAME or settings.DEVICE.get()
    return bool(asked) or kind != "cpu"


def _exchange(index: int) -> int:
    before = runtime.current_device()
    runtime.set_current_device(index)
    return before


def _maybe_exchange(index: int) -> int:
    return -1 if index < 0 else _exchange(index)


def _capability(index: int) -> dict[str, Any]:
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32)
    more = (torch.int64, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2)
    doubles = (torch.float64,) if "float64" in runtime.of_device(index).capabilities.features else ()
    return {"supported_dtypes": {*kinds, *more, *doubles}}


def _nothing(*_: Any) -> None:
    pass


#: By the end of their names in ``torch._C``.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "emptyCache": MODULE.empty_cache,
    "emptyHostCache": _nothing,
    "exchangeDevice": _exchange,
    "maybeExchangeDevice": _maybe_exchange,
    "getDeviceCapability": _capability,
    "getDeviceIndex": runtime.current_device,
    "setDeviceIndex": runtime.set_current_device,
    "getDeviceStats": MODULE.memory_stats,
    "resetPeakStats": MODULE.reset_peak_memory_stats,
    "resetAccumulatedStats": _nothing,
    "getMemoryInfo": MODULE.mem_get_info,
    "isAllocatorInitialized": lambda: True,
    "getStream": Stream.current,
    "setStream": MODULE.set_stream,
    "synchronizeDevice": MODULE.synchronize,
}
