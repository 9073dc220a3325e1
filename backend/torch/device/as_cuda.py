"""``torch.spirv.as_cuda()``: the device under the names of CUDA, for libraries that ask for nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from ...runtime import NAME

#: What libraries take as a GPU that has bfloat16 and copies in the background, and no instructions of Hopper's.
CAPABILITY = (8, 0)
_VERSION = "12.4"
_lock = threading.Lock()
_depth = 0
_patches: list[Any] = []


def _renamed(value: Any) -> Any:
    """A device of CUDA as one of Vulkan: of its name, of an object, and in lists."""
    if isinstance(value, torch.device):
        return torch.device(NAME, value.index) if value.type == "cuda" else value
    if isinstance(value, str):
        name, colon, index = value.partition(":")
        return NAME + colon + index if name == "cuda" else value
    return value


class _Devices(TorchFunctionMode):
    """Calls of torch that name a CUDA device get the Vulkan device of that number."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return _cuda(*args, **(kwargs or {}))
        named = {name: _renamed(value) if name == "device" else value for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.to:
            args = [_renamed(value) for value in args]
        return func(*args, **named)


def _cuda(tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **how: Any) -> torch.Tensor:
    place = torch.device(NAME, device) if isinstance(device, int) else _renamed(device or NAME)
    return tensor.to(place, non_blocking=non_blocking, **how)


def _is_cuda(tensor: torch.Tensor) -> bool:
    return tensor.device.type in ("cuda", NAME)


def _device_of(tensor: torch.Tensor) -> Any:
    """The device of a tensor while a block runs, as torch.cuda.device_of() has it."""
    module = getattr(torch, NAME)
    return module.device(tensor.device.index if tensor.device.type == NAME else None)


def _answers(module: Any) -> dict[str, Any]:
    """Names of torch.cuda → what answers: all that ``torch.spirv`` has, and what only CUDA has."""
    names = [name for name in dir(torch.cuda) if not name.startswith("_") and hasattr(module, name)]
    found = {name: getattr(module, name) for name in names if not isinstance(getattr(torch.cuda, name), ModuleType)}
    return found | {
        "device_of": _device_of,
        "_lazy_init": module.init,
        "_is_in_bad_fork": module._is_in_bad_fork,
        "get_arch_list": list,
        "is_tf32_supported": lambda: False,
        "default_generators": module.default_generators,
    }


@contextmanager
def as_cuda() -> Iterator[None]:
    """While it runs, in all threads, ``torch.cuda`` answers for the Vulkan devices, and their tensors have ``is_cuda``.
    In the thread that runs it, devices that calls name "cuda" are Vulkan's. Libraries must be imported inside, too, if
    they ask when they are imported. ``tensor.device.type`` stays "spirv".

    Raises RuntimeError if torch has CUDA devices of its own.
    """
    global _depth
    with _lock:
        if not _depth:
            if torch.cuda.is_available():
                raise RuntimeError("torch.spirv.as_cuda(): torch has CUDA devices of its own; name 'spirv' instead")
            _begin()
        _depth += 1
    try:
        with _Devices():
            yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth:
                while _patches:
                    _patches.pop().stop()


def _begin() -> None:
    # Triton's NVIDIA driver asks torch.cuda whether it is the one: Triton chooses before that answers.
    import_module("triton.runtime.driver").driver.active  # noqa: B018
    answers = _answers(getattr(torch, NAME))
    made = [mock.patch.object(torch.cuda, name, value, create=True) for name, value in answers.items()]
    made.append(mock.patch.object(torch.version, "cuda", torch.version.cuda or _VERSION))
    made.append(mock.patch.object(torch.Tensor, "is_cuda", property(_is_cuda), create=True))
    for patch in made:
        patch.start()
        _patches.append(patch)
