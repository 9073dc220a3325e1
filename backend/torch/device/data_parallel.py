"""``nn.DataParallel`` and the functions that it is made of on the device ``spirv``: they take one device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.cuda.comm
import torch.nn.parallel.comm

from ...runtime import NAME, device_index
from .as_cuda import has_cuda


def _place(devices: Sequence[Any]) -> torch.device:
    if len(devices) > 1:
        raise RuntimeError(
            f"nn.DataParallel has no kernels for several '{NAME}' devices ({devices}): pass device_ids=[0], or use "
            "nn.parallel.DistributedDataParallel with gloo"
        )
    return torch.device(NAME, devices[0] if isinstance(devices[0], int) else torch.device(devices[0]).index or 0)


def _gather(tensors: Sequence[torch.Tensor], dim: int = 0, destination: Any = None) -> torch.Tensor:
    to_cpu = destination == -1 or destination is not None and torch.device(destination).type == "cpu"
    place = torch.device("cpu") if to_cpu else _place([device_index(None) if destination is None else destination])
    return torch.cat([one.to(place) for one in tensors], dim)


_ON_ONE: dict[str, Callable[..., Any]] = {
    "broadcast": lambda tensor, devices: (tensor.to(_place(devices)),),
    "broadcast_coalesced": lambda tensors, devices, *_: [[one.to(_place(devices)) for one in tensors]],
    "scatter": lambda tensor, devices, *_, **__: (tensor.to(_place(devices)),),
    "gather": _gather,
}


def on_one_device() -> None:
    """Makes them work with one device, and refuse several: torch has what they need for CUDA alone."""
    for name, ours in _ON_ONE.items():
        here = _here(getattr(torch.nn.parallel.comm, name), ours)
        for place in (torch.nn.parallel.comm, torch.cuda.comm):
            setattr(place, name, here)


def _here(own: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def call(given: Any, *args: Any, out: Any = None, **how: Any) -> Any:
        one = given if isinstance(given, torch.Tensor) else next(iter(given), None)
        if out is not None or one is None or has_cuda() and one.device.type != NAME:
            return own(given, *args, **({"out": out} if out is not None else {}), **how)
        return ours(given, *args, **how)

    return call
