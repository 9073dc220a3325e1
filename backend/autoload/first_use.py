"""Functions of torch that do not ask ``torch.spirv`` before they use the device, and that registering the device
changes: with the placeholder in place they register it first. Modules then keep shared parameters shared
(runtime/torch_modules.py), and storages have an allocator (runtime/torch_device.py).
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from .accelerator import accelerator
from .placeholder import NAME, is_used


def register_first() -> None:
    """Wrap them."""
    import torch

    modules: Any = torch.nn.Module
    modules.to, modules.to_empty = _method(modules.to), _method(modules.to_empty)
    setattr(modules, NAME, _method(getattr(modules, NAME), of_device=True))
    storages: Any = torch.UntypedStorage
    new = storages.__new__

    def new_storage(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if _registered(kwargs.get("device")):
            return cls(*args, **kwargs)  # registering has put another function in this one's place
        return new(cls, *args, **kwargs)

    storages.__new__ = staticmethod(new_storage)


def _method(original: Any, of_device: bool = False) -> Any:
    @wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        _registered(NAME if of_device else kwargs.get("device", args[0] if args else None))
        return original(self, *args, **kwargs)

    return run


def _registered(device: Any) -> bool:
    """Whether this has registered the device, as the first use of it."""
    import torch

    if is_used() or not _names_us(device):
        return False
    torch.spirv._lazy_init()  # type: ignore[attr-defined]
    return True


def _names_us(device: Any) -> bool:
    import torch

    if isinstance(device, (str, torch.device)):
        return str(device).partition(":")[0] == NAME
    return type(device) is int and accelerator() == torch.device(NAME)
