"""Indices out of range, and other values that torch refuses: kernels note them in device memory and use others
instead, and the next copy to the host raises.

So a launch need not wait for the device, and no foreign memory is read or written.
"""

from __future__ import annotations

from functools import partial

import torch

from ..device import tensor_memory
from .prepared import note_staying

#: Lines that make ``index`` safe: of a dimension of ``size``, where ``bad`` says which are not.
CHECK = """bad = (index < 0) | (index >= size)
tl.store(fault + zero, 1, mask=mask & bad)
index = tl.where(bad, 0, index).to(tl.int64)
"""
#: The same where negative indices count from the end.
CHECK_WRAPPED = "index = tl.where(index < 0, index + size, index)\n" + CHECK

#: What is noted (CHECK notes INDEX), and the error that it becomes, whose class is that of the CPU's.
INDEX, PROBABILITY, NEGATIVE_CLASS, LARGE_CLASS, ZERO_DIVISION = 1, 2, 3, 4, 5
_ERRORS: dict[int, tuple[type[Exception], str]] = {
    INDEX: (IndexError, "an index was out of range"),
    PROBABILITY: (RuntimeError, "a probability was not in [0, 1]"),
    NEGATIVE_CLASS: (RuntimeError, "Class values must be non-negative:"),
    LARGE_CLASS: (RuntimeError, "Class values must be smaller than num_classes:"),
    ZERO_DIVISION: (RuntimeError, "ZeroDivisionError: integers were divided by 0"),
}

_faults: dict[int, torch.Tensor] = {}
_unread: dict[int, str] = {}


def fault_of(device: torch.device, name: str) -> torch.Tensor:
    """Where kernels of the operation ``name`` note what is wrong: an int32 without dimensions."""
    index = device.index or 0
    if index not in _faults:
        _faults[index] = torch.zeros((), dtype=torch.int32, device=device)
    _unread[index] = name
    note_staying(_faults[index], partial(_unread.__setitem__, index, name))
    return _faults[index]


def check(device: int) -> None:
    """Raise IndexError, or what _ERRORS has, where an operation since the last check had a value that is refused."""
    name = _unread.pop(device, None)
    if name is None:
        return
    fault = _faults[device]
    noted = fault.item()
    if noted:
        fault.zero_()
        error, text = _ERRORS[int(noted)]
        raise error(f"{text} in {name}, or an operation before it, on '{fault.device}'")


def install() -> None:
    """Have copies to the host check."""
    tensor_memory.BEFORE_READING.append(check)
