"""``torch.spirv`` before the device is used: no import of triton; the first use registers the device."""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAME = "spirv"
PACKAGE = f"triton.backends.{NAME}"


def runtime(module: str) -> Any:
    """A module of ``runtime/``, which this imports with triton."""
    return import_module(f"{PACKAGE}.runtime.{module}")


class Placeholder:
    """``torch.spirv`` until something of it is used: then runtime/torch_device.py puts its module in this place."""

    def is_available(self) -> bool:
        """Whether there is a Vulkan device that can run kernels: a question, and so no use."""
        return bool(runtime("torch_spirv").MODULE.is_available())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._lazy_init()
        return getattr(runtime("torch_device").module(), name)

    def _lazy_init(self) -> None:
        """torch calls this before the first tensor is made."""
        runtime("torch_device").register()

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
