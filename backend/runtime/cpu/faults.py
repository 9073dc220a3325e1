"""Faults of kernels, with the line of the source."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class HasLines(Protocol):
    """A kernel of a handle that knows the lines of its instructions by their addresses."""

    handle: int

    def line_of(self, pc: int) -> tuple[str, int] | None:
        """The file and line of an instruction. None if it is not known."""


_kernels: weakref.WeakValueDictionary[int, HasLines] = weakref.WeakValueDictionary()


def add(kernel: HasLines) -> None:
    """From now on faults of the kernel have their line."""
    _kernels[kernel.handle] = kernel


def line_in(handle: int, place: int) -> tuple[str, int]:
    """The file and line of an instruction of a kernel; "?" and 0 if they are not known."""
    kernel = _kernels.get(handle)
    found = None if kernel is None else kernel.line_of(place)
    return ("?", 0) if found is None else (os.path.basename(found[0]), found[1])


def message_with_line(handle: int, places: list[int], message: str) -> str:
    """The message of a fault, which begins with the kernel's place and name, with the line of the instruction at its
    beginning instead. ``places``: the instruction and where its function was called from, as far as they are known."""
    kernel = _kernels.get(handle)
    name = message.find("kernel '")
    if kernel is None or name < 0:
        return message
    line = next(filter(None, map(kernel.line_of, places)), None)
    return message if line is None else f"{os.path.basename(line[0])}:{line[1]}: {message[name:]}"
