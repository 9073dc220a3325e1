"""What torch calls at the end of its own import (its entry point group ``torch.backends``).

The wheel installs this file as a module outside of triton, because importing triton would make ``import torch`` slower
by half a second. Nothing of triton is imported here before something of it is needed:

- ``torch.device("spirv")`` is known at once. The operations are registered when a device is first used.
- torch's compiler learns of Vulkan devices when it is imported itself.

Where triton is missing, and with a torch older than OLDEST_TORCH, it does nothing. It steps aside, so that only the
second holds, where another backend has or may take torch's one place for a device from outside (PrivateUse1), and where
torch has an accelerator of its own: torch.accelerator would mean this device then.
"""

from __future__ import annotations

import os
import sys
from functools import cache, wraps
from glob import glob
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

NAME = "spirv"
_PACKAGE = f"triton.backends.{NAME}"
#: The first release of torch whose tensors can be on the device. Kernels take CPU tensors of older ones, too.
OLDEST_TORCH = "2.13"
#: Imported by all of torch's compiler before it asks anything about a device.
_TORCH_COMPILER = "torch.utils._triton"
#: Where this backend's settings are, next to this file: in a triton that has it inside, and in the plugin-only wheel.
_SETTINGS = (f"triton/backends/{NAME}/settings.py", f"triton_{NAME}/settings.py")


#: What torch makes a device write in C++. Of this device it is in Python: class → the module that has it.
_CLASSES = {"Event": "torch_streams", "Stream": "torch_streams", "Generator": "torch_random"}
#: The same for functions of ``torch._C``, which torch.accelerator calls: how their names begin, and the module.
_FUNCTIONS, _FUNCTIONS_MODULE = "_accelerator_", "torch_accelerator"
#: What there is where Linux, or its host, has a GPU.
_GPU_NODES = ("/dev/dri/renderD*", "/dev/nvidiactl", "/dev/dxg", "/dev/kgsl*", "/dev/mali*")


def _runtime(module: str) -> Any:
    return import_module(f"{_PACKAGE}.runtime.{module}")


class Placeholder:
    """``torch.spirv`` until something of it is used: then runtime/torch_device.py puts its module in this place."""

    def is_available(self) -> bool:
        """Whether there is a Vulkan device that can run kernels: a question, and so no use."""
        return bool(_runtime("torch_spirv").MODULE.is_available())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._lazy_init()
        return getattr(_runtime("torch_device").module(), name)

    def _lazy_init(self) -> None:
        """torch calls this before the first tensor is made."""
        _runtime("torch_device").register()

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

    class DeviceHooks(torch._C._acc.PrivateUse1Hooks):
        def is_available(self) -> bool:
            return bool(torch.spirv.is_available())  # type: ignore[attr-defined]

        def has_primary_context(self, dev_id: int) -> bool:
            return not isinstance(torch.spirv, Placeholder)  # type: ignore[attr-defined]

        def is_built(self) -> bool:
            return True

    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=module, hook=DeviceHooks())
    for name in _CLASSES:
        setattr(torch, name, _with_ours(name))
    for name in dir(torch._C):
        if name.startswith(_FUNCTIONS):
            setattr(torch._C, name, _ours(name, getattr(torch._C, name)))
    torch._C._accelerator_getAccelerator = _accelerator
    if isinstance(module, Placeholder):
        _register_first()


def _register_first() -> None:
    """Have the device registered before what registering changes: modules then keep shared parameters shared
    (runtime/torch_modules.py), and storages have an allocator (runtime/torch_device.py)."""
    import torch

    def names_us(device: Any) -> bool:
        if isinstance(device, (str, torch.device)):
            return str(device).partition(":")[0] == NAME
        return type(device) is int and _accelerator() == torch.device(NAME)

    def registered(device: Any) -> bool:
        placeholder = torch.spirv  # type: ignore[attr-defined]
        if isinstance(placeholder, Placeholder) and names_us(device):
            placeholder._lazy_init()
            return True
        return False

    def method(original: Any, of_device: bool = False) -> Any:
        @wraps(original)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            registered(NAME if of_device else kwargs.get("device", args[0] if args else None))
            return original(self, *args, **kwargs)

        return run

    modules: Any = torch.nn.Module
    modules.to, modules.to_empty = method(modules.to), method(modules.to_empty)
    setattr(modules, NAME, method(getattr(modules, NAME), of_device=True))
    storages: Any = torch.UntypedStorage
    new = storages.__new__

    def new_storage(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if registered(kwargs.get("device")):
            return cls(*args, **kwargs)  # registering has put another function in this one's place
        return new(cls, *args, **kwargs)

    storages.__new__ = staticmethod(new_storage)


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
                return getattr(_runtime(_CLASSES[name]), name)(*args, **kwargs)
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
        return _accelerator() == torch.device(NAME)
    if isinstance(device, int) and not isinstance(device, bool):
        return _accelerator() == torch.device(NAME)
    return getattr(device, "type", str(device).partition(":")[0]) == NAME


def _ours(name: str, own: Any) -> Any:
    """The function of this device in the place of torch's, where there is one."""

    def function(*args: Any) -> Any:
        if _accelerator() is None:
            raise RuntimeError(
                f"torch.accelerator stands for no device: a Vulkan device on the CPU is one once '{NAME}' was used, or "
                "with TRITON_SPIRV_BACKEND=1"
            )
        return _runtime(_FUNCTIONS_MODULE).FUNCTIONS.get(name.removeprefix(_FUNCTIONS), own)(*args)

    return function


def _accelerator() -> Any:
    """What torch.accelerator stands for: this device once a program has used it, and before where it is a GPU or was
    asked for by name. A CPU driver is slower than torch's own CPU code, so that programs do not get it unasked."""
    import torch

    used = not isinstance(torch.spirv, Placeholder)  # type: ignore[attr-defined]
    return torch.device(NAME) if used or (_may_be_wanted() and _runtime(_FUNCTIONS_MODULE).is_wanted()) else None


@cache
def _may_be_wanted() -> bool:
    """False where torch.accelerator cannot stand for this device, found without an import: optimizers ask it."""
    if any(name.startswith(("TRITON_SPIRV_", "TRITON_DEFAULT_")) for name in os.environ) or sys.platform != "linux":
        return True
    return any(glob(pattern) for pattern in _GPU_NODES)


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


def is_too_old(torch_version: str) -> bool:
    """Whether a version of torch comes before OLDEST_TORCH."""
    return _release(torch_version) < _release(OLDEST_TORCH)


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def autoload() -> None:
    """torch's entry point."""
    import torch

    if find_spec("triton") is None or is_too_old(torch.__version__):
        return
    if _TORCH_COMPILER in sys.modules:
        _install()
    else:
        sys.meta_path.insert(0, _BeforeTorchCompiler())
    free = torch._C._get_privateuse1_backend_name() == "privateuseone"
    if free and not _others_are_loaded() and (not _other_accelerator() or _asked_for()):
        claim(Placeholder())
