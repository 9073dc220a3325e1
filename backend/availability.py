"""Whether kernels go to a device of this backend: whether they are asked for, there is one, and it can be used."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def compile_only() -> bool:
    """Whether TRITON_SPIRV_COMPILE_ONLY asks to compile kernels and not to run them."""
    from . import settings

    return settings.COMPILE_ONLY.get()


def unavailable_reason() -> str | None:
    """Why no kernel can be run, with what to do about it; None if one can."""
    if compile_only():
        return None
    from .runtime.device_choice import selected
    from .runtime.errors import DeviceUnavailable
    from .runtime.native_module import native

    try:
        selected()
        native()
    except DeviceUnavailable as error:
        return str(error)
    return None


def requested() -> bool:
    """Whether TRITON_SPIRV_BACKEND asks for this backend's driver. Raises SettingError."""
    from . import settings

    return settings.BACKEND.get()


@contextlib.contextmanager
def requested_here() -> Iterator[None]:
    """Asks for this backend's driver where TRITON_SPIRV_BACKEND says nothing, until a command has ended."""
    from . import settings

    name = settings.BACKEND.name
    said = name in os.environ
    os.environ.setdefault(name, "1")
    try:
        yield
    finally:
        if not said:
            os.environ.pop(name, None)


def other_is_active(name: str, driver: Any) -> bool:
    """Whether the driver class of another backend, ``name``, has a device here.

    AMD's imports torch to find out, which takes seconds. It is not asked if the installed torch is not built for ROCm,
    because its answer is False then.
    """
    if name == "amd" and "torch" not in sys.modules and not _torch_is_for_rocm():
        return False
    return bool(driver.is_active())


def _torch_is_for_rocm() -> bool:
    """Whether torch may be built for ROCm, as far as its files tell without importing it."""
    found = find_spec("torch")
    if found is None:
        return False
    version = Path(found.origin).with_name("version.py") if found.origin else None
    if version is None or not version.is_file():
        return True  # an unknown kind of torch: let AMD's driver ask it
    return runpy.run_path(str(version)).get("hip") is not None


def _gpu_driver_active() -> bool:
    """Whether the driver of a GPU vendor, as far as it is installed, has a device here."""
    from triton.backends import backends

    return any(name in backends and other_is_active(name, backends[name].driver) for name in ("nvidia", "amd"))


def named() -> bool:
    """Whether the environment names this backend. Raises SettingError."""
    return requested() or os.environ.get("TRITON_DEFAULT_BACKEND") == "spirv"


def chosen() -> bool:
    """Whether kernels go here as far as that is known without a look at the devices."""
    return named() or not _gpu_driver_active()


def other_active_drivers() -> tuple[str, str] | None:
    """What it means that drivers of other backends of Triton are active, and what to do; None if none is.

    Triton asks for one active driver, and so do libraries that count them. Raises SettingError.
    """
    from triton.backends import backends

    others = [name for name, one in backends.items() if name != "spirv" and other_is_active(name, one.driver)]
    if not others:
        return None
    names = " and ".join(others)
    if not named():
        return f"Triton's kernels do not go to spirv, because {names} is active", "set TRITON_SPIRV_BACKEND=1"
    several = f"Triton's drivers {names} and spirv are active: kernels go to spirv, and libraries that want exactly one"
    return f"{several}, as vLLM, do without Triton", "hide that GPU from the other driver (CUDA_VISIBLE_DEVICES=-1)"


def is_active() -> bool:
    """Whether Triton's kernels go to this backend in this process."""
    from triton.runtime.driver import driver

    try:
        return getattr(driver.active, "backend_name", None) == "spirv"
    except RuntimeError:  # no driver, or several, are active
        return False
