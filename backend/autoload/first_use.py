"""First uses of the device that do not go through ``torch.spirv``: they register the device themselves.

Most of torch asks ``torch.spirv``. C++ code that does not (``torch.asarray``, ``torch.jit.load``) ends in an operation
that has no kernel yet. Storages and pinning do not ask either.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from .accelerator import accelerator
from .placeholder import NAME, is_used, part

#: The library that has the operation of all operations without a kernel: without it they had none.
_libraries: list[Any] = []


def register_at_first_operation() -> None:
    """Lets an operation on the device register it; operations that have no kernel then run on the CPU."""
    import torch

    def run(operation: Any, *args: Any, **kwargs: Any) -> Any:
        device = part("registration")
        if device.is_registered():
            return device.fallback(operation, *args, **kwargs)
        device.register()
        return operation(*args, **kwargs)

    library = torch.library.Library("_", "IMPL")
    library.fallback(run, "PrivateUse1")
    _libraries.append(library)


def make_storages() -> None:
    """Makes ``UntypedStorage`` make storages of this device, which registers it. Only here is decided whose a storage
    is."""
    import torch

    storages: Any = torch.UntypedStorage
    new = storages.__new__

    def new_storage(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not _names_us(kwargs.get("device")):
            return new(cls, *args, **kwargs)
        torch.spirv._lazy_init()  # type: ignore[attr-defined]
        return part("storages").new_storage(*args, **kwargs)

    storages.__new__ = staticmethod(new_storage)


def register_before_pinning() -> None:
    """Makes ``Tensor.pin_memory`` register the device, which changes what it does: for a call that names the device, or
    names none, which torch takes for this device even beside CUDA."""
    import torch

    tensors: Any = torch.Tensor
    pin_memory = tensors.pin_memory

    @wraps(pin_memory)
    def pin(self: Any, device: Any = None) -> Any:
        # torch asks the device from outside first.
        if not is_used() and _names_us(NAME if device is None else device):
            torch.spirv._lazy_init()  # type: ignore[attr-defined]
        return pin_memory(self, device)

    tensors.pin_memory = pin


def _names_us(device: Any) -> bool:
    import torch

    if isinstance(device, (str, torch.device)):
        return str(device).partition(":")[0] == NAME
    return type(device) is int and accelerator() == torch.device(NAME)
