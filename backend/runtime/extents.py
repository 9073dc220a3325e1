"""What kernels that check their accesses know about their tensors, and what they report about accesses outside them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..abi.report_buffer import FIRST_OUTSIDE, FIRST_OUTSIDE_AT, HEADER, OUTSIDE, ROW, ROWS_AT, bounds_bytes
from .arrays import Array
from .errors import OutOfBounds
from .launch import Entry

_log = logging.getLogger(__name__)


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


class BoundsTable:
    """What the report buffer of a kernel holds after its header, where the kernel checks its accesses.

    ``arguments``: the arguments that it has rows for.
    """

    def __init__(self, kernel: str, arguments: Sequence[Entry]) -> None:
        self._kernel = kernel
        self._arguments = arguments
        self.bytes = bounds_bytes(len(arguments))

    def extents(self, arguments: Sequence[Any]) -> list[Extent]:
        """The extents of a launch's arguments, one a row."""
        found = []
        for (first, *path), _, _ in self._arguments:
            argument = arguments[first]
            for index in path:
                argument = argument[index]
            found.append(extent(argument))
        return found

    def pack(self, extents: Sequence[Extent]) -> bytes:
        """What is written there before a launch."""
        return bytes(bounds_bytes(0)) + b"".join(ROW.pack(told.before, told.bytes, 0) for told in extents)

    def failure(
        self, buffer: bytes, extents: Sequence[Extent], messages: Sequence[dict[str, Any]]
    ) -> OutOfBounds | None:
        """The error of the first access outside, with the count of all, modulo 2³²; None where there was
        none."""
        number, *program = FIRST_OUTSIDE.unpack_from(buffer, FIRST_OUTSIDE_AT)
        if not number:
            return None
        count = HEADER.unpack_from(buffer)[OUTSIDE]
        message = messages[number - 1]
        places = [
            (self._arguments[row][1], ROW.unpack_from(buffer, ROWS_AT + row * ROW.size)[2], extents[row])
            for row in message["rows"]
        ]
        return _error(self._kernel, message, places, tuple(program), count or 1 << 32)


def bounds_table(kernel: str, messages: Sequence[dict[str, Any]], entries: Sequence[Entry]) -> BoundsTable | None:
    """The table of a kernel with these messages and arguments; None where it does not check its accesses. Logs how much
    it cannot check."""
    for message in messages:
        if message["kind"] == "bounds":
            if message["unchecked"]:
                _log.warning(
                    "kernel '%s': the bounds of %d of its memory operations are not checked, because their "
                    "pointers may come from elsewhere than its arguments: from memory, from integers, from "
                    "tl.reduce, into a function of tl.map_elementwise",
                    kernel,
                    message["unchecked"],
                )
            return BoundsTable(kernel, [entries[number] for number in message["arguments"]])
    return None


def _error(
    kernel: str, message: dict[str, Any], places: list[tuple[str, int, Extent]], program: tuple[int, ...], count: int
) -> OutOfBounds:
    where = " or ".join(
        f"argument '{name}' at {_index(distance, told, message['bytes'])}, but {told.describe()}"
        for name, distance, told in places
    )
    callers = "".join(f" (called from {caller})" for caller in message["callers"])
    others = f"; {count} such accesses in this launch" if count > 1 else ""
    name, distance, told = places[0]
    return OutOfBounds(
        f"{message['file']}:{message['line']}{callers}: kernel '{kernel}': {message['access']} out of bounds: {where}; "
        f"program {program}{others}; none was done",
        kernel=kernel,
        argument=name,
        index=distance // told.element_bytes,
        elements=told.elements,
        program=program,
        file=message["file"],
        line=message["line"],
        count=count,
    )


def _index(distance: int, told: Extent, size: int) -> str:
    """Where an access was, in elements of the tensor."""
    index, rest = divmod(distance, told.element_bytes)
    return (
        f"index {index}"
        + (f" and {rest} bytes" if rest else "")
        + (f" ({size} bytes from there)" if size != told.element_bytes else "")
    )
