"""Gives process groups of ``torch.distributed`` a backend for this device if they have one for the CPU.

Collectives go through that one, on copies (torch/device/process_groups.py). A group is often made before the device is
used, and torch asks it for the backend of a tensor's device before some of them (``batch_isend_irecv``).
"""

from __future__ import annotations

from typing import Any

from .after_import import after_import
from .placeholder import NAME

#: Of FSDP2, which gives the memory of gathered parameters back with ``free_storage``.
_SHARDED_PARAMETERS = "torch.distributed.fsdp._fully_shard._fsdp_param"


def take_collectives() -> None:
    """Makes groups that are made from now on do so. A second call does nothing."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.distributed.distributed_c10d import Backend

    backends: Any = Backend
    for devices in backends.backend_capability.values():
        if "cpu" in devices and NAME not in devices:
            devices.append(NAME)
    backends.default_device_backend_map.setdefault(NAME, backends.default_device_backend_map["cpu"])
    after_import(_SHARDED_PARAMETERS, _keep_gathered)


def _keep_gathered(module: Any) -> None:
    """torch lets C++ alone take a storage's memory away. FSDP2 does not ask whether it is gone before it gathers the
    parameters anew: their memory is kept until then."""
    free = module.free_storage

    def free_storage(tensor: Any) -> None:
        if tensor.device.type != NAME:
            free(tensor)

    module.free_storage = free_storage
