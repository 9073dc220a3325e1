"""Modules on the device ``spirv``: parameters that they share are kept when ``nn.Module.to()`` moves them, and
``nn.DataParallel`` takes one device.

torch moves a parameter in place between the devices that it knows. For others it makes a new one in each place, so that
a parameter that two modules share would become two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.parallel.comm

from .context import NAME

#: (module, name): where a parameter is.
_Place = tuple[torch.nn.Module, str]


class _Depth(threading.local):
    inside = False


def keep_ties() -> None:
    """Have ``nn.Module._apply``, which all moves and conversions go through, keep shared parameters shared."""
    modules: Any = torch.nn.Module
    apply, depth = modules._apply, _Depth()

    def apply_to_all(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        if depth.inside:  # of a module within
            return apply(self, fn, recurse)
        ties = _ties(self)
        depth.inside = True
        try:
            result: torch.nn.Module = apply(self, fn, recurse)
        finally:
            depth.inside = False
        for before, places in ties:
            _tie(before, places)
        return result

    modules._apply = apply_to_all


def _ties(root: torch.nn.Module) -> list[tuple[torch.nn.Parameter, list[_Place]]]:
    """The parameters that are in several places of a module, with those."""
    found: dict[int, tuple[torch.nn.Parameter, list[_Place]]] = {}
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                found.setdefault(id(parameter), (parameter, []))[1].append((module, name))
    return [(parameter, places) for parameter, places in found.values() if len(places) > 1]


def _tie(before: torch.nn.Parameter, places: list[_Place]) -> None:
    now = [module._parameters[name] for module, name in places]
    kept = next((parameter for parameter in now if parameter is not before), before)
    for module, name in places:
        if module._parameters[name] is not kept:
            module._parameters[name] = kept
            if isinstance(module, torch.nn.RNNBase):
                module._init_flat_weights()  # a list of its own


def scatter_to_one() -> None:
    """Have ``nn.DataParallel`` work with one device, and refuse several: torch has what it needs for CUDA alone."""
    comm: Any = torch.nn.parallel.comm
    scatter = comm.scatter

    def scatter_here(tensor: torch.Tensor, devices: Any = None, *args: Any, **how: Any) -> Any:
        if devices is None or torch.cuda.is_available() and tensor.device.type != NAME:
            return scatter(tensor, devices, *args, **how)
        if len(devices) > 1:
            raise RuntimeError(
                f"nn.DataParallel has no kernels for several '{NAME}' devices ({devices}): pass device_ids=[0], or use "
                "nn.parallel.DistributedDataParallel with gloo"
            )
        device = devices[0] if isinstance(devices[0], int) else torch.device(devices[0]).index or 0
        return (tensor.to(torch.device(NAME, device)),)

    comm.scatter = scatter_here
