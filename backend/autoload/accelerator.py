"""What torch expects a device to write in C++: this device has it in Python, replacing torch's functions.

``torch.accelerator`` means this device once a program has used it, or at once if it is a GPU or was asked for by name.
A CPU driver is slower than torch's own CPU code, so programs do not get it unasked.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from glob import glob
from typing import Any

from .placeholder import NAME, is_used, part

#: Class of torch → the module that has it for this device.
_CLASSES = {"Event": "torch_streams", "Stream": "torch_streams", "Generator": "random_state"}
#: The same for functions of ``torch._C``, which torch.accelerator calls: how their names begin, and the module.
_FUNCTIONS, _FUNCTIONS_MODULE = "_accelerator_", "accelerator_functions"
#: What there is where Linux, or its host, has a GPU.
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl*", "/dev/mali*")


def put_in_place() -> None:
    """Makes torch's classes and functions know this device."""
    import torch

    for name in _CLASSES:
        setattr(torch, name, _with_ours(name))
    for name in dir(torch._C):
        if name.startswith(_FUNCTIONS):
            setattr(torch._C, name, _ours(name, getattr(torch._C, name)))
    torch._C._accelerator_getAccelerator = accelerator


def accelerator() -> Any:
    """The device that torch.accelerator stands for: this one, or None."""
    import torch

    wanted = is_used() or (_may_be_wanted() and part(_FUNCTIONS_MODULE).is_wanted())
    return torch.device(NAME) if wanted else None


@cache
def _may_be_wanted() -> bool:
    """False if torch.accelerator cannot stand for this device, found without an import: optimizers ask it."""
    if any(name.startswith(("TRITON_SPIRV_", "TRITON_DEFAULT_")) for name in os.environ) or sys.platform != "linux":
        return True
    return any(glob(pattern) for pattern in _GPU_NODES)


def _with_ours(name: str) -> Any:
    """A class in the place of torch's own, which makes that of this device where a call names the device, or names none
    and torch.accelerator stands for it."""
    import torch

    own: Any = getattr(torch, name)

    class Meta(type(own)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is not both:
                return super().__call__(*args, **kwargs)
            if _is_for_us(name, args, kwargs):
                return getattr(part(_CLASSES[name]), name)(*args, **kwargs)
            return own(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, own) if cls is both else super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, own) if cls is both else super().__subclasscheck__(subclass)

    both: Any = Meta(name, (own,), {"__doc__": own.__doc__, "__module__": "torch"})
    return both


def _is_for_us(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    import torch

    device = args[0] if args else kwargs.get("device")
    if device is None and "stream_id" not in kwargs and name != "Generator":
        return accelerator() == torch.device(NAME)
    if isinstance(device, int) and not isinstance(device, bool):
        return accelerator() == torch.device(NAME)
    return getattr(device, "type", str(device).partition(":")[0]) == NAME


def _ours(name: str, own: Any) -> Any:
    """The device's own function, called instead of torch's."""

    def function(*args: Any) -> Any:
        if accelerator() is None:
            raise RuntimeError(
                f"torch.accelerator has no device: a device on the CPU becomes one once '{NAME}' is used, or "
                "with TRITON_SPIRV_BACKEND=1"
            )
        return part(_FUNCTIONS_MODULE).FUNCTIONS.get(name.removeprefix(_FUNCTIONS), own)(*args)

    return function
