"""What torch calls at the end of its own import (its entry point group ``torch.backends``).

The wheel installs this package under a second name, outside of triton, because importing triton would make ``import
torch`` slower by half a second. It imports triton only when something needs it:

- ``torch.device("spirv")`` is known at once. The operations are registered when a device is first used.
- torch's compiler learns of Vulkan devices when it is imported itself.

Without triton, or with a torch older than OLDEST_TORCH, it does nothing. It steps aside, so that only the second point
holds, if another backend has or may take torch's only place for an out-of-tree device (PrivateUse1), or if torch has an
accelerator of its own that is there (``others.py``), unless the device is asked for by itself. The choice of SPIR-V for
kernels does not ask for it.

This file decides; ``claim.py`` takes the place.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from .others import asked_for, other_accelerator, step_aside
from .placeholder import NAME, PACKAGE, Placeholder

__all__ = ["NAME", "OLDEST_TORCH", "autoload", "is_too_old", "release", "teach_compiler"]

#: The first release of torch whose tensors can be on the device. Kernels take CPU tensors of older ones, too.
OLDEST_TORCH = "2.10"
#: Imported by all of torch's compiler before it asks anything about a device.
_TORCH_COMPILER = "torch.utils._triton"


def is_too_old(torch_version: str) -> bool:
    """Whether a version of torch comes before OLDEST_TORCH."""
    return release(torch_version) < release(OLDEST_TORCH)


def release(version: str) -> tuple[int, ...]:
    """(major, minor) of a version."""
    return tuple(map(int, version.split(".")[:2]))


class _BeforeTorchCompiler(MetaPathFinder):
    """Makes torch's compiler know Vulkan devices when it is about to be imported."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's own spec, with what the installed hooks make of it."""
        if fullname != _TORCH_COMPILER:
            return None
        sys.meta_path.remove(self)
        _install()
        return find_spec(fullname)


def _install() -> None:
    import_module(f"{PACKAGE}.torch.compile.internals").install()


def teach_compiler() -> None:
    """Make torch's compiler know Vulkan devices, now or when it is imported. A second call does nothing."""
    if _TORCH_COMPILER in sys.modules:
        _install()
    elif not any(isinstance(finder, _BeforeTorchCompiler) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeTorchCompiler())


def _others_are_loaded() -> bool:
    """Whether torch calls other backends too, which may want the place: torch's list of them, as it is loading them."""
    points = sys._getframe(2).f_locals.get("backend_extensions")
    return points is not None and any(point.module != __name__ for point in points)


def autoload() -> None:
    """torch's entry point."""
    import torch

    if find_spec("triton") is None or is_too_old(torch.__version__):
        return
    teach_compiler()
    if torch._C._get_privateuse1_backend_name() != "privateuseone" or _others_are_loaded():
        return
    other = other_accelerator()
    if other is not None and not asked_for():
        step_aside(other)
        return
    from .claim import claim

    claim(Placeholder())
