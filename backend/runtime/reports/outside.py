"""Accesses outside tensors: what checking kernels know about their tensors, and what they report."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...abi.launch_arguments import argument_at
from ...abi.report_buffer import FIRST_OUTSIDE, FIRST_OUTSIDE_AT, HEADER, OUTSIDE, ROW, ROWS_AT, bounds_bytes
from ..arrays import Array
from ..context import Context
from ..launches.launch import Entry
from ..memory.host_memory import Loan
from .reader import Message, Reader, ReportError

_log = logging.getLogger(__name__)


class OutOfBounds(ReportError, IndexError):
    """An access outside of the tensor that was passed, of a kernel that checks them. It was not done.

    ``argument`` (the first, where it may have been one of several), ``index`` and ``elements`` in that argument's
    elements describe the first such access of the launch.
    """

    argument: str = ""
    index: int = 0
    elements: int = 0


@dataclass(frozen=True)
class Extent:
    """The memory that a tensor's elements lie in: ``before`` bytes of it before its first element (a NumPy array may
    have negative strides), ``bytes`` in all, from the lowest element to the end of the highest."""

    before: int
    bytes: int
    elements: int
    element_bytes: int

    def describe(self) -> str:
        """What an index has to do with it."""
        if self.bytes == self.elements * self.element_bytes and not self.before:
            return f"it has {self.elements} elements"
        first = -(self.before // self.element_bytes)
        last = (self.bytes - self.before) // self.element_bytes - 1
        return f"it has {self.elements} elements, at indices {first} to {last}"


#: Of an argument that does not tell: no address is outside.
_ANYWHERE = Extent(1 << 63, (1 << 64) - 1, 0, 1)


def extent(argument: Any) -> Extent:
    """The extent of a tensor; all memory, of an object that does not tell, such as an address."""
    stride, size = getattr(argument, "stride", None), getattr(argument, "element_size", None)
    if stride is None or size is None:
        return _ANYWHERE
    element_bytes, shape = int(size()), tuple(argument.shape)
    # In bytes, because a field of a structured array is not a whole number of elements away from the next.
    steps = argument.array.strides if isinstance(argument, Array) else [step * element_bytes for step in stride()]
    low = high = 0
    elements = 1
    for count, step in zip(shape, steps, strict=True):
        elements *= count
        low, high = low + min(0, (count - 1) * step), high + max(0, (count - 1) * step)
    return (
        Extent(-low, high + element_bytes - low, elements, element_bytes)
        if elements
        else Extent(0, 0, 0, element_bytes)
    )


def extents(entries: Sequence[Entry], args: Sequence[Any]) -> list[Extent]:
    """The extents of those of a launch's arguments that ``entries`` name."""
    return [extent(argument_at(args, path)) for path, _, _ in entries]


class OutsideAccesses(Reader):
    """Reads the part of kind ``bounds``: what the buffer holds right after its header. By the message of that kind it
    has a row for each of ``arguments``, and the kernel does not check ``unchecked`` operations, which is logged."""

    def __init__(self, kernel: str, messages: Sequence[Message], entries: Sequence[Entry], at: int) -> None:
        super().__init__(kernel, messages, entries, at)
        facts = next(message for message in messages if message["kind"] == "bounds")
        self._arguments = [entries[number] for number in facts["arguments"]]
        if facts["unchecked"]:
            _log.warning(
                "kernel '%s': the bounds of %d of its memory operations are not checked, because their pointers may "
                "not come from its arguments: they come from memory, from integers, from tl.reduce, or through a "
                "function of tl.map_elementwise",
                kernel,
                facts["unchecked"],
            )

    def launched(self, context: Context, loan: Loan, args: Sequence[Any]) -> list[Extent]:
        """The extents of a launch's arguments, one per row."""
        return extents(self._arguments, args)

    def pack(self, launch: Sequence[Extent]) -> bytes:
        """Implements Reader.pack()."""
        return bytes(bounds_bytes(0)) + b"".join(ROW.pack(told.before, told.bytes, 0) for told in launch)

    def read(self, buffer: bytes, launch: Sequence[Extent]) -> None:
        """Raise the first access outside, with the count of all, modulo 2³²."""
        number, *program = FIRST_OUTSIDE.unpack_from(buffer, FIRST_OUTSIDE_AT)
        if not number:
            return
        count = HEADER.unpack_from(buffer)[OUTSIDE] or 1 << 32
        message = self._messages[number - 1]
        places = [
            (self._arguments[row][1], ROW.unpack_from(buffer, ROWS_AT + row * ROW.size)[2], launch[row])
            for row in message["rows"]
        ]
        where = " or ".join(
            f"argument '{name}' at {_index(distance, told, message['bytes'])}, but {told.describe()}"
            for name, distance, told in places
        )
        text = f"{message['access']} out of bounds: {where}; "
        name, distance, told = places[0]
        facts = {"argument": name, "index": distance // told.element_bytes, "elements": told.elements}
        raise self._error(OutOfBounds, message, text, program, count, "; none was done", **facts)


def _index(distance: int, told: Extent, size: int) -> str:
    """Where an access was, in elements of the tensor."""
    index, rest = divmod(distance, told.element_bytes)
    return (
        f"index {index}"
        + (f" and {rest} bytes" if rest else "")
        + (f" ({size} bytes from there)" if size != told.element_bytes else "")
    )
