"""Indices out of range, and other values that torch refuses: kernels note them in device memory and use others
instead, and the next copy to the host raises.

So a launch need not wait for the device, and no foreign memory is read or written.
"""

from __future__ import annotations

from functools import cache, partial

import torch

from ...runtime import Graph
from ..device import tensor_memory
from .elementwise import Body, run
from .prepared import note_staying

#: Lines that make ``index`` safe: of a dimension of ``size``, where ``bad`` says which are not.
CHECK = """bad = (index < 0) | (index >= size)
tl.store(fault + zero, 1, mask=mask & bad)
index = tl.where(bad, 0, index).to(tl.int64)
"""
#: The same where negative indices count from the end.
CHECK_WRAPPED = "index = tl.where(index < 0, index + size, index)\n" + CHECK

#: What is noted (CHECK notes INDEX), and the error that it becomes, whose class is that of the CPU's.
INDEX, PROBABILITY, NEGATIVE_CLASS, LARGE_CLASS, ZERO_DIVISION, SEGMENT, PIVOT, WEIGHT = range(1, 9)
_ERRORS: dict[int, tuple[type[Exception], str]] = {
    INDEX: (IndexError, "an index was out of range"),
    PROBABILITY: (RuntimeError, "a probability was not in [0, 1]"),
    NEGATIVE_CLASS: (RuntimeError, "Class values must be non-negative:"),
    LARGE_CLASS: (RuntimeError, "Class values must be smaller than num_classes:"),
    ZERO_DIVISION: (RuntimeError, "ZeroDivisionError: integers were divided by 0"),
    SEGMENT: (RuntimeError, "lengths or offsets were not of parts that lie one after the other"),
    PIVOT: (RuntimeError, "a pivot was not the number of a row, from 1"),
    WEIGHT: (RuntimeError, "weights of categories were negative, infinite, no numbers or all 0"),
}

#: Lines that make the places ``begin`` … ``end`` safe, of ``size`` elements.
CHECK_SEGMENT = f"""wrong = (begin < 0) | (end < begin) | (end > size)
tl.store(fault + zero, {SEGMENT}, mask=mask & wrong)
begin = tl.where(wrong, 0, begin)
end = tl.where(wrong, 0, end)
"""

_faults: dict[int, torch.Tensor] = {}
_unread: dict[int, str] = {}


def fault_of(device: torch.device, name: str) -> torch.Tensor:
    """Where kernels of the operation ``name`` note what is wrong: an int32 without dimensions."""
    index = device.index or 0
    if index not in _faults:
        with Graph.uncaptured():
            _faults[index] = torch.zeros((), dtype=torch.int32, device=device)
    _unread[index] = name
    note_staying(_faults[index], partial(_unread.__setitem__, index, name))
    return _faults[index]


@cache
def _outside(what: int) -> Body:
    text = f"tl.store(fault + zero, {what}, mask=mask & ((value < low) | (value > high)))"
    return Body(text, frozenset(("value",)), frozenset(("fault",)))


def note_outside(values: torch.Tensor, low: int, high: int, what: int, name: str) -> None:
    """Note ``what`` is wrong in the operation ``name`` if one of ``values``, which are integers, is not in low … high.
    What is then left to the CPU does not see it: its copies to the host raise."""
    if values.numel():
        fault = fault_of(values.device, name)
        run(_outside(what), {}, {"value": values, "fault": fault}, torch.int64, {"low": low, "high": high})


def _replayed(device: int) -> None:
    """The kernels of a graph may have noted something."""
    if device in _faults:
        _unread.setdefault(device, "a graph's operation")


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
    """Makes copies to the host check."""
    tensor_memory.BEFORE_READING.append(check)
    Graph.AFTER_REPLAYS.append(_replayed)
