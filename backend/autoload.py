"""What torch calls at the end of its own import (its entry point group ``torch.backends``).

The wheel installs this file as a module outside of triton, because importing triton would make ``import torch`` slower
by half a second. Nothing of triton is imported here before something of it is needed:

- ``torch.device("spirv")`` is known at once. The operations are registered when a device is first used.
- torch's compiler learns of Vulkan devices when it is imported itself.

Where triton is missing it does nothing. It steps aside, so that only the second holds, where another backend has or may
take torch's one place for a device from outside (PrivateUse1), and where torch has an accelerator of its own:
torch.accelerator would mean this device then.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

NAME = "spirv"
_PACKAGE = f"triton.backends.{NAME}"
#: Imported by all of torch's compiler before it asks anything about a device.
_TORCH_COMPILER = "torch.utils._triton"
#: Where this backend's settings are, beside this file: in a triton that has it inside, and in the plugin-only wheel.
_SETTINGS = (f"triton/backends/{NAME}/settings.py", f"triton_{NAME}/settings.py")


class Placeholder:
    """``torch.spirv`` until something of it is used: then runtime/torch_device.py puts its module in this place."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._lazy_init()
        return getattr(import_module(f"{_PACKAGE}.runtime.torch_device").module(), name)

    def _lazy_init(self) -> None:
        """torch calls this before the first tensor is made."""
        import_module(f"{_PACKAGE}.runtime.torch_device").register()

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """torch.manual_seed() calls this. The device starts from torch's seed when it is first used."""


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
    import_module(f"{_PACKAGE}.torch_compile.internals").install()


def claim(module: Any) -> None:
    """Take torch's place for a device from outside, with ``module`` as ``torch.spirv``."""
    import torch
    from torch.utils import backend_registration

    class Hook(torch._C._acc.PrivateUse1Hooks):
        def is_available(self) -> bool:
            return bool(torch.spirv.is_available())  # type: ignore[attr-defined]

        def has_primary_context(self, dev_id: int) -> bool:
            return not isinstance(torch.spirv, Placeholder)  # type: ignore[attr-defined]

        def is_built(self) -> bool:
            return True

    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=module, hook=Hook())


def _asked_for() -> bool:
    """As driver.py decides it."""
    if os.environ.get("TRITON_DEFAULT_BACKEND") == NAME:
        return True
    for place in _SETTINGS:
        path = Path(__file__).parent / place
        if path.is_file() and (spec := spec_from_file_location(f"_triton_{NAME}_settings", path)) and spec.loader:
            sys.modules[spec.name] = settings = module_from_spec(spec)
            spec.loader.exec_module(settings)
            return bool(settings.BACKEND.get())
    return False


def _other_accelerator() -> bool:
    """Whether torch has a device of its own here, found without a call of a driver, which would cost its start."""
    import torch

    if torch.version.cuda is not None or torch.version.hip is not None:
        return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd") or sys.platform == "win32"
    return torch.backends.mps.is_built() or torch.xpu._is_compiled() or torch.mtia._is_compiled()


def _others_are_loaded() -> bool:
    """Whether torch calls other backends too, which may want the place: torch's list of them, as it is loading them."""
    points = sys._getframe(2).f_locals.get("backend_extensions")
    return points is not None and any(point.module != __name__ for point in points)


def autoload() -> None:
    """torch's entry point."""
    import torch

    if find_spec("triton") is None:
        return
    if _TORCH_COMPILER in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, _BeforeTorchCompiler())
    free = torch._C._get_privateuse1_backend_name() == "privateuseone"
    if free and not _others_are_loaded() and (not _other_accelerator() or _asked_for()):
        claim(Placeholder())
