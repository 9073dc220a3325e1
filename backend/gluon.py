"""Gluon kernels: upstream's passes for them, and the refusal of the modules that name one vendor's hardware."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

#: Gluon's modules for one vendor's hardware.
VENDOR_MODULES = tuple(f"triton.experimental.gluon.language.{vendor}" for vendor in ("nvidia", "amd"))
_INSIDE = tuple(f"{root}." for root in VENDOR_MODULES)


class VendorHardware(NotImplementedError):
    """A Gluon kernel uses what only one vendor's GPUs have."""


def _refuse(name: str) -> NoReturn:
    raise VendorHardware(
        f"{name} is hardware of one vendor, which Vulkan does not show: write the kernel with "
        "triton.experimental.gluon.language itself (blocked, slice and linear layouts, swizzled and padded shared "
        "memory, dot_fma), or with triton.language"
    )


class VendorName:
    """Stands for a function or class of such a module. A kernel's file may import it; a kernel that uses it is
    refused."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        _refuse(self._name)

    def __getattr__(self, attribute: str) -> NoReturn:
        _refuse(self._name)


class VendorModule(ModuleType):
    """Stands for such a module."""

    def __getattr__(self, attribute: str) -> Any:
        return VendorName(f"{self.__name__}.{attribute}")


class ModuleMap(dict[str, ModuleType]):
    """Modules that stand for others in kernels, by name, with a VendorModule for each of VENDOR_MODULES and what is in
    them."""

    def __contains__(self, name: object) -> bool:
        # The front end asks for every name that a kernel uses.
        return dict.__contains__(self, name) or (
            isinstance(name, str) and name.startswith(_INSIDE) or name in VENDOR_MODULES
        )

    def __missing__(self, name: str) -> ModuleType:
        if name not in self:
            raise KeyError(name)
        return VendorModule(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The module that stands for ``name``."""
        return self[name] if name in self else default
