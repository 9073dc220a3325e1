"""``torch.spirv`` before the device is used: no import of triton; the first use registers the device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAME = "spirv"
PACKAGE = f"triton.backends.{NAME}"


def device_module(module: str) -> Any:
    """A module of ``torch/device/``, which this imports with triton."""
    return import_module(f"{PACKAGE}.torch.device.{module}")


class Placeholder:
    """``torch.spirv`` until something of it is used: then torch/device/registration.py puts its module in this
    place."""

    def is_available(self) -> bool:
        """Whether there is a Vulkan device that can run kernels: a question, and so no use."""
        return bool(device_module("spirv_module").MODULE.is_available())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._lazy_init()
        return getattr(device_module("registration").module(), name)

    def _lazy_init(self) -> None:
        """torch calls this before the first tensor is made."""
        device_module("registration").register()

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """What torch.manual_seed() calls, and programs. The device starts from torch's seed when it is first used."""
        import torch

        torch.default_generator.manual_seed(seed)


def is_used() -> bool:
    """Whether this process has used the device."""
    import torch

    return not isinstance(torch.spirv, Placeholder)  # type: ignore[attr-defined]
