"""Indices out of range: kernels note them in device memory and use 0 instead; the next copy to the host raises.

So a launch need not wait for the device, and memory of others is neither read nor written.
"""

from __future__ import annotations

import torch

from ..runtime import torch_memory

#: Lines that make ``index`` safe: of a dimension of ``size``, where ``bad`` says which are not.
CHECK = """bad = (index < 0) | (index >= size)
tl.store(fault + zero, 1, mask=mask & bad)
index = tl.where(bad, 0, index).to(tl.int64)
"""
#: The same where negative indices count from the end.
CHECK_WRAPPED = "index = tl.where(index < 0, index + size, index)\n" + CHECK

_faults: dict[int, torch.Tensor] = {}
_unread: dict[int, str] = {}


def fault_of(device: torch.device, name: str) -> torch.Tensor:
    """Where kernels of the operation ``name`` note an index that is out of range: an int32 without dimensions."""
    index = device.index or 0
    if index not in _faults:
        _faults[index] = torch.zeros((), dtype=torch.int32, device=device)
    _unread[index] = name
    return _faults[index]


def check(device: int) -> None:
    """Raise IndexError where an operation since the last check had an index that is out of range."""
    name = _unread.pop(device, None)
    if name is None:
        return
    fault = _faults[device]
    if fault.item():
        fault.zero_()
        raise IndexError(f"an index was out of range in {name}, or an operation before it, on '{fault.device}'")


def install() -> None:
    """Have copies to the host check."""
    torch_memory.BEFORE_READING.append(check)
