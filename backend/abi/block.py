"""The argument block: arguments in declaration order, each at a multiple of its size, then what the launcher adds.

A block within the device's push-constant limit is the push constants; a longer one is in a buffer, and its address is
the push constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: The block is read in words of so many bytes, and its size is a multiple of them.
WORD_BYTES = 4


@dataclass(frozen=True)
class ArgumentBlock:
    """``offsets``: the byte offset of each argument; ``bytes``: in all."""

    offsets: tuple[int, ...]
    bytes: int

    def is_indirect(self, push_constant_bytes: int) -> bool:
        """Whether it goes into a buffer on a device with so many bytes of push constants."""
        return self.bytes > push_constant_bytes


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is not below ``value``."""
    return -(-value // multiple) * multiple


def lay_out(sizes: Iterable[int]) -> ArgumentBlock:
    """Where arguments of these sizes in bytes lie."""
    offsets, end = [], 0
    for size in sizes:
        offsets.append(round_up(end, size))
        end = offsets[-1] + size
    return ArgumentBlock(tuple(offsets), round_up(end, WORD_BYTES))


@dataclass(frozen=True)
class HiddenArgument:
    """An argument that the launcher adds. ``name`` is for errors, ``type`` Triton's, ``role`` for the JSON of a kernel
    that was compiled ahead of time."""

    name: str
    type: str
    role: str


GLOBAL_SCRATCH = HiddenArgument("the global scratch memory", "*void", "global_scratch")
REPORTS = HiddenArgument("the report buffer", "u64", "reports")


#: Of a launch that is a part of a grid: its first program, and the size of the whole grid, on the axes x, y and z.
FIRST_PROGRAM = tuple(HiddenArgument(f"the first program of axis {axis}", "u32", "first_program") for axis in "xyz")
GRID_SIZE = tuple(HiddenArgument(f"the grid size of axis {axis}", "u32", "grid_size") for axis in "xyz")
GRID = (*FIRST_PROGRAM, *GRID_SIZE)


def hidden_arguments(global_scratch: bool, reports: bool, split_grid: bool = False) -> list[HiddenArgument]:
    """A kernel's hidden arguments, in the order in which they follow its own."""
    return [*[GLOBAL_SCRATCH] * global_scratch, *[REPORTS] * reports, *GRID * split_grid]
