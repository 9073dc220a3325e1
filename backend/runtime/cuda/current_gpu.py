"""Which GPU torch.cuda's current device is, as a device of Vulkan's: where a program works on CUDA tensors, a launch
goes there, as with Triton's backend for CUDA."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from ...extension_points import given


@cache
def uuid_of(ordinal: int) -> str:
    """The UUID of a GPU by torch's number, 32 hexadecimal digits."""
    import torch

    return str(torch.cuda.get_device_properties(ordinal).uuid).replace("-", "").lower().removeprefix("gpu")


def cuda_index(uuid: str) -> int | None:
    """torch's number of the GPU with a UUID of 32 hexadecimal digits, or None if CUDA does not show it."""
    import torch

    return next((index for index in range(torch.cuda.device_count()) if uuid_of(index) == uuid), None)


def works_on_cuda(name: str) -> bool:
    """Whether torch.cuda has the tensors of this process, as far as its modules and files tell: torch is imported, and
    the device ``name`` has not taken its place beside CUDA."""
    torch: Any = sys.modules.get("torch")
    if torch is None or torch._C._get_privateuse1_backend_name() == name or given("asked_for")():
        return False
    return bool(torch.version.cuda) and given("other_accelerator")() == "cuda"


class FollowedGpu:
    """torch.cuda's current device of each thread. ``name``: of this backend's device in torch; where a program has
    that, its own tensors and torch.cuda's have current devices of their own, and nothing is followed. ``uuids``: of
    the devices, by their index."""

    def __init__(self, name: str, uuids: Callable[[], list[str]]) -> None:
        self._name, self._uuids = name, uuids
        self._indices: dict[int, int | None] = {}

    def _cuda(self) -> Any:
        """``torch.cuda``, where this process uses it; None in all others, which are not made to load CUDA."""
        torch: Any = sys.modules.get("torch")
        found = getattr(torch, "cuda", None)
        if found is None or not found.is_initialized() or torch._C._get_privateuse1_backend_name() == self._name:
            return None
        return found

    def index(self, ordinal: int | None = None) -> int | None:
        """The index of the device that is a GPU by torch.cuda's number, its current one for None; None where nothing is
        followed, and for a GPU that is none of the devices."""
        cuda = self._cuda()
        if cuda is None:
            return None
        ordinal = cuda.current_device() if ordinal is None else ordinal
        if ordinal not in self._indices:
            uuids = self._uuids()
            self._indices[ordinal] = uuids.index(uuid_of(ordinal)) if uuid_of(ordinal) in uuids else None
        return self._indices[ordinal]

    def choose(self, index: int) -> bool:
        """Makes a device torch.cuda's current one. False where it is not followed there."""
        cuda = self._cuda()
        ordinal = None if cuda is None else cuda_index(self._uuids()[index])
        if ordinal is None:
            return False
        cuda.set_device(ordinal)
        return True
