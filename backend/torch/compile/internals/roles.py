"""Makes the device known to torch's compiler: as one with Triton, as a target to compile for, as a GPU."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from ....autoload.placeholder import NAME

#: Most devices of one process: Dynamo looks interfaces up under "spirv:0" too.
_MOST_DEVICES = 16


def has_triton(module: Any) -> None:
    """Dynamo captures launches of @triton.jit functions, rather than trace into Triton, where Triton has a device."""
    original = module.has_triton

    @functools.cache
    def has_triton(**options: Any) -> bool:
        from ....availability import is_active

        return bool(original(**options)) or is_active()

    module.has_triton = has_triton


def own_code(module: Any) -> None:
    """torch's compiler leaves the code of Triton's backends alone, by its folder; this package's lies elsewhere in a
    checkout that is installed to be changed."""
    folder = str(Path(__file__).resolve().parents[3]) + os.sep
    if not any(skipped in folder for skipped in module.SKIP_DIRS):
        module.SKIP_DIRS.append(folder)
        module._recompile_re()


def traced_code(module: Any) -> None:
    """The mode of ``torch.spirv.as_cuda()`` is traced, as torch does with modes: functions compile within it."""
    original, device = module.check_file, Path(__file__).resolve().parents[2] / "device"
    traced = {str(device / "as_cuda.py"), str(device / "cuda_names.py")}

    def check_file(filename: str | None, is_inlined_call: bool = False) -> Any:
        if is_inlined_call and filename is not None and str(Path(filename).resolve()) in traced:
            return module.SkipResult(False, "the mode of as_cuda()")
        return original(filename, is_inlined_call)

    module.check_file = check_file


def device_blocks(module: Any) -> None:
    """Dynamo traces ``with torch.spirv.device(…)``, in as_cuda() under CUDA's name, too."""
    from ....runtime import DeviceInterface, device_index

    original, block = module.get_device_context_manager, DeviceInterface.device

    class DeviceBlock(module.AcceleratorDeviceIndexVariable):
        _get_device_index_fn = staticmethod(lambda device, **_: device_index(device))

    def get_device_context_manager(kind: Any) -> Any:
        is_block = isinstance(kind, type) and issubclass(kind, block) and kind.__init__ is block.__init__
        return DeviceBlock if is_block else original(kind)

    module.get_device_context_manager = get_device_context_manager


def _is_cuda_here() -> bool:
    """Whether torch.cuda answers for this device: in as_cuda()."""
    from ...device.as_cuda import has_cuda

    return torch.cuda.is_available() and not has_cuda()


def pattern_inputs(module: Any) -> None:
    """Patterns are made for this device where a graph has no tensor and torch.cuda answers for it."""
    original = module.lazy_init

    def lazy_init(*given: Any) -> Any:
        return original(*([torch.device(NAME)] if given == (None,) and _is_cuda_here() else given))

    module.lazy_init = lazy_init


def tensors_of_cuda(module: Any) -> None:
    """``x.is_cuda`` in a compiled function is what it is outside of it."""
    original = module.TensorVariable.method_attr_is_cuda

    def method_attr_is_cuda(variable: Any, tx: Any) -> Any:
        ours = variable.device is not None and variable.device.type == NAME and _is_cuda_here()
        return original(SimpleNamespace(device=torch.device("cuda")) if ours else variable, tx)

    module.TensorVariable.method_attr_is_cuda = method_attr_is_cuda


def device_interface(module: Any) -> None:
    from ..interface import SPIRVInterface

    bases = (SPIRVInterface, module.DeviceInterface)
    interface = type("SPIRVInterface", bases, {"__doc__": SPIRVInterface.__doc__})
    for name in (NAME, *(f"{NAME}:{index}" for index in range(_MOST_DEVICES))):
        module.register_interface_for_device(name, interface)


def cpu_tensors(module: Any) -> None:
    """Kernels of the user's take CPU tensors wherever Triton launches on the Vulkan device. torch 2.15 asks for a CPU
    backend before it writes such a launch."""
    original = module.CpuInterface.raise_if_triton_unavailable

    def raise_if_triton_unavailable(device: Any = None) -> None:
        from ....availability import is_active

        if not is_active():
            original(device)

    module.CpuInterface.raise_if_triton_unavailable = staticmethod(raise_if_triton_unavailable)


def compile_target(module: Any) -> None:
    """Kernels are compiled for the Vulkan device wherever Triton launches there: for CPU tensors, too."""
    original = module.DeviceProperties.create

    def create(cls: Any, device: Any) -> Any:
        from ....availability import is_active
        from ..interface import properties_of

        if device.type != NAME and not (device.type in ("cpu", "cuda") and is_active()):
            return original(device)
        known = properties_of(device)
        return cls(
            type=NAME,
            index=None if device.type == "cpu" else device.index or 0,
            multi_processor_count=known.multi_processor_count,
            cc=known.arch,
            max_threads_per_block=known.max_threads_per_block,
            warp_size=known.warp_size,
        )

    module.DeviceProperties.create = classmethod(create)


def choice_of_driver(module: Any) -> None:
    """Inductor would activate the first driver with a device, even where another was asked for."""
    original = module.set_driver_to_gpu

    def set_driver_to_gpu() -> None:
        from ....availability import chosen

        if not chosen():
            original()

    module.set_driver_to_gpu = set_driver_to_gpu


def gpu_types(module: Any) -> None:
    """Inductor treats the device as a GPU; it is the one that patterns are made for where torch has no other."""
    module.GPU_TYPES.append(NAME)
    others = tuple(kind for kind in module.GPU_TYPES if kind != NAME)

    @functools.cache
    def get_gpu_type() -> str:
        found = [kind for kind in others if getattr(torch, kind).is_available()]
        return found[0] if found else NAME if hasattr(torch, NAME) else "cuda"

    module.get_gpu_type = get_gpu_type
    original = module.is_big_gpu

    @functools.cache
    def is_big_gpu(index_or_device: Any = 0) -> bool:
        # choices.py takes the number of compute units into account; theirs asks for 68, whatever the device.
        device = index_or_device
        if not isinstance(device, torch.device):
            device = torch.device(module.get_gpu_type(), device)
        return device.type == NAME or bool(original(device))

    module.is_big_gpu = is_big_gpu
