"""Libraries with their own list of devices, which this device is not on.

``accelerate``, and so transformers' Trainer, uses the CPU without saying so; a warning says it once. ``safetensors``
refuses the device's name: ``load_file`` loads to the CPU for it, and moves.
"""

from __future__ import annotations

import warnings
from functools import wraps
from typing import Any

from .accelerator import accelerator
from .after_import import after_import
from .placeholder import NAME

_told: set[str] = set()


def help_libraries() -> None:
    """Makes these libraries do so, once they are imported."""
    after_import("accelerate.state", _tell_of_accelerate)
    after_import("safetensors.torch", _load_to_device)


def _tell_of_accelerate(module: Any) -> None:
    """``PartialState.set_device`` chooses where it was not told what to take."""
    states = getattr(module, "PartialState", None)
    choose = getattr(states, "set_device", None)
    if states is None or choose is None:
        return

    @wraps(choose)
    def set_device(self: Any, *args: Any, **kwargs: Any) -> Any:
        chooses = getattr(self, "device", None) is None and not getattr(self, "_cpu", False)
        result = choose(self, *args, **kwargs)
        if chooses and getattr(self.device, "type", "") == "cpu" and accelerator() is not None:
            _tell(
                f"accelerate does not know the device {NAME!r}, and trains on the CPU. Set the environment variable "
                f"ACCELERATE_TORCH_DEVICE={NAME} to train on {NAME!r}, or pass cpu=True to mean the CPU."
            )
        return result

    states.set_device = set_device


def _tell(message: str) -> None:
    if message not in _told:
        _told.add(message)
        warnings.warn(message, stacklevel=4)


def _load_to_device(module: Any) -> None:
    """``load_model`` and programs call ``load_file``."""
    load = getattr(module, "load_file", None)
    if load is None:
        return

    @wraps(load)
    def load_file(filename: Any, device: Any = "cpu", *args: Any, **kwargs: Any) -> Any:
        if str(device).partition(":")[0] != NAME:
            return load(filename, device, *args, **kwargs)
        return {name: tensor.to(device) for name, tensor in load(filename, "cpu", *args, **kwargs).items()}

    module.load_file = load_file
