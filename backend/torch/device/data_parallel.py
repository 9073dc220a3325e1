"""``nn.DataParallel`` on the device ``spirv``: it takes one device."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.parallel.comm

from ...runtime import NAME
from .as_cuda import has_cuda


def scatter_to_one() -> None:
    """Makes ``nn.DataParallel`` work with one device, and refuse several: torch has what it needs for CUDA alone."""
    comm: Any = torch.nn.parallel.comm
    scatter = comm.scatter

    def scatter_here(tensor: torch.Tensor, devices: Any = None, *args: Any, **how: Any) -> Any:
        if devices is None or has_cuda() and tensor.device.type != NAME:
            return scatter(tensor, devices, *args, **how)
        if len(devices) > 1:
            raise RuntimeError(
                f"nn.DataParallel has no kernels for several '{NAME}' devices ({devices}): pass device_ids=[0], or use "
                "nn.parallel.DistributedDataParallel with gloo"
            )
        device = devices[0] if isinstance(devices[0], int) else torch.device(devices[0]).index or 0
        return (tensor.to(torch.device(NAME, device)),)

    comm.scatter = scatter_here
