"""``torch.spirv`` before the device is used: no import of triton; the first use registers the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NAME = "spirv"

#: Part of the device → gives its module, which that imports with triton. entry.py says where they are.
PARTS: dict[str, Callable[[], Any]] = {}


def part(name: str) -> Any:
    """A module of the device, which this imports with triton."""
    return PARTS[name]()


class Placeholder:
    """``torch.spirv`` until something of it is used: then torch/registration.py puts its module in this place."""

    def is_available(self) -> bool:
        """Whether there is a device that can run kernels: a question, and so no use."""
        return bool(part("spirv_module").MODULE.is_available())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._lazy_init()
        return getattr(part("registration").module(), name)

    def _lazy_init(self) -> None:
        """torch calls this before the first tensor is made."""
        part("registration").register()

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
