"""torch's other accelerators, and whether the device ``spirv`` is to be torch's beside one of them.

torch takes a device in its only place for out-of-tree devices (PrivateUse1) for *the* accelerator of the process
(``at::getAccelerator``). From then on its autograd engine finds no stream for nodes of CUDA tensors, and each of their
``backward()`` ends with an internal assertion. So the choice of SPIR-V for kernels never takes that place beside
another accelerator: TRITON_SPIRV_TORCH_DEVICE does, and a call of ``triton.backends.spirv.torch.register()``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from .placeholder import NAME

#: What asks for torch's device by itself (settings.py).
VARIABLE = "TRITON_SPIRV_TORCH_DEVICE"
#: How to have the device beside another accelerator, as errors say it.
HOW_TO_CLAIM = (
    f"set {VARIABLE}=1 before torch is imported, or call triton.backends.spirv.torch.register(); "
    "torch then cannot compute gradients of tensors of its other accelerator in this process"
)
#: Where this backend's settings are, next to torch's entry point: in a triton that has it inside, or in the plugin-only
#: wheel. In the backend's own folder they are next to this package.
_SETTINGS = (f"triton/backends/{NAME}/settings.py", f"triton_{NAME}/settings.py")

#: Where torch is told how to allocate; the first name is that of newer versions.
_ALLOCATION = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
#: What says that the user has chosen.
_ALLOCATION_CHOSEN = ("expandable_segments", "backend")
#: Functions of ``torch._C`` that take such a text, in newer versions and older ones.
_ALLOCATION_SETTERS = ("_accelerator_setAllocatorSettings", "_cuda_cudaCachingAllocator_set_allocator_settings")


def _in_windows(name: str) -> str:
    """Where a driver puts a library on Windows."""
    return os.path.join(os.environ.get("SystemRoot", "C:\\Windows"), "System32", name)


#: What there is where NVIDIA's driver is: on Linux, in the Windows Subsystem for Linux, on Tegra, on Windows.
_CUDA_NODES = (
    "/dev/nvidiactl",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/dev/nvhost-gpu",
    "/dev/nvgpu",
    _in_windows("nvcuda.dll"),
)
#: The same of AMD's driver for ROCm.
_HIP_NODES = ("/dev/kfd", _in_windows("amdhip64_6.dll"), _in_windows("amdhip64_7.dll"))
#: Of an Intel GPU in Linux' list of GPUs.
_INTEL = "0x8086"

_log = logging.getLogger(__name__)


def chosen_settings() -> Any:
    """This backend's settings.py, from its file: an import would be that of triton. None where it is not there."""
    for place in ("settings.py",) if Path(__file__).parent.name == "autoload" else _SETTINGS:
        path = Path(__file__).parents[1] / place
        if path.is_file() and (spec := spec_from_file_location(f"_triton_{NAME}_settings", path)) and spec.loader:
            sys.modules[spec.name] = settings = module_from_spec(spec)
            spec.loader.exec_module(settings)
            return settings
    return None


def asked_for() -> bool:
    """Whether TRITON_SPIRV_TORCH_DEVICE asks for torch's device. Raises SettingError."""
    if not os.environ.get(VARIABLE):
        return False
    settings = chosen_settings()
    return settings is not None and bool(settings.TORCH_DEVICE.get())


def other_accelerator() -> str | None:
    """The type of torch's own accelerator that is there, or None: found without a call of a driver, which would cost
    its start."""
    import torch

    if torch.version.hip is not None:
        there = not _hidden("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") and _any(_HIP_NODES)
        return "cuda" if there else None
    if torch.version.cuda is not None and not _hidden("CUDA_VISIBLE_DEVICES") and _any(_CUDA_NODES):
        return "cuda"
    if torch.backends.mps.is_built():
        return "mps"
    if torch.xpu._is_compiled() and (sys.platform != "linux" or _has_intel_gpu()):
        return "xpu"
    return "mtia" if torch.mtia._is_compiled() else None


def make_segments_expandable() -> bool:
    """Has torch.cuda allocate memory that Vulkan can import, if kernels are asked of this backend by the environment,
    and that says nothing of how torch allocates such memory. Vulkan imports the chunks of expandable segments, and
    nothing that cudaMalloc allocated. torch takes the choice at any time, for memory that it allocates from then on.
    Whether it was done. Raises SettingError."""
    import torch

    settings: Any = chosen_settings()
    if settings is None or settings.CUDA.get() != settings.SHARE:
        return False
    asked = settings.BACKEND.get() or os.environ.get("TRITON_DEFAULT_BACKEND") == NAME
    said = next((text for name in _ALLOCATION if (text := os.environ.get(name))), "")
    if not asked or any(word in said for word in _ALLOCATION_CHOSEN):
        return False
    set_ = next((function for name in _ALLOCATION_SETTERS if (function := getattr(torch._C, name, None))), None)
    if set_ is None:
        return False
    set_(",".join(filter(None, (said, "expandable_segments:True"))))
    return True


def step_aside(other: str) -> None:
    """Leave torch's place free beside another accelerator. What asks for ``torch.spirv`` learns how to have it; torch
    itself refuses the device's name in C++, with its own words."""
    import torch

    reason = f"torch's device '{NAME}' steps aside for '{other}'; to have it, {HOW_TO_CLAIM}"
    _log.info("%s", reason)
    module: Any = torch
    find = module.__getattr__

    def attribute(name: str) -> Any:
        if name == NAME:
            raise AttributeError(f"module 'torch' has no attribute '{NAME}': {reason}", name=name, obj=torch)
        return find(name)

    module.__getattr__ = attribute


def explain_missing_gradients(other: str) -> None:
    """Makes backward passes that fail because the place is taken beside another accelerator say so."""
    import torch

    engine: Any = torch.autograd.graph._engine_run_backward

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return engine(*args, **kwargs)
        except RuntimeError as error:
            if "opt_ready_stream && opt_parent_stream" not in str(error):
                raise
            raise RuntimeError(
                f"torch computes no gradients of '{other}' tensors in a process that has the device '{NAME}': unset "
                f"{VARIABLE}, and do not call register(). Kernels take '{other}' tensors without it"
            ) from error

    torch.autograd.graph._engine_run_backward = run
    torch.autograd._engine_run_backward = run


def _hidden(*variables: str) -> bool:
    """Whether a variable hides all GPUs from torch."""
    return any(os.environ.get(name, "0").strip() in ("", "-1") for name in variables)


def _any(paths: Iterable[str]) -> bool:
    return any(map(os.path.exists, paths))


def _has_intel_gpu() -> bool:
    for path in Path("/sys/class/drm").glob("renderD*/device/vendor"):
        try:
            if path.read_text().strip() == _INTEL:
                return True
        except OSError:
            continue
    return False
