"""Slices of a tensor along a dimension, one after the other in a buffer that has room for one of them.

A slice is chosen by the highest bits of the dimension's coordinate. Lanes, subgroups and registers set these bits; the
number of an element's slice is the exclusive or of what they set.
"""

from __future__ import annotations

from functools import lru_cache

from ..ttgir.types import MemDescType, TensorType
from .buffers import buffer_layout, consecutive
from .distributed import REGISTER, layout_of
from .linear import LinearLayout, log2


@lru_cache(maxsize=1024)
def slice_offsets(tensor: TensorType, buffer: MemDescType, dim: int) -> LinearLayout:
    """(register, lane, warp) → element offset before padding in the ``buffer`` of a slice along ``dim``."""
    layout, low = layout_of(tensor), buffer.shape[dim] - 1
    within = {
        name: [[c & low if axis == dim else c for axis, c in enumerate(point)] for point in bases]
        for name, bases in layout.bases.items()
    }
    return LinearLayout(within, buffer.shape).compose(buffer_layout(buffer).offsets)


def slice_width(tensor: TensorType, buffer: MemDescType, dim: int, limit: int) -> int:
    """Consecutive registers, all of one slice, that one write may hold, ``limit`` at most."""
    return min(consecutive(slice_offsets(tensor, buffer, dim), limit), _together(tensor, buffer, dim))


def slice_numbers(tensor: TensorType, buffer: MemDescType, dim: int) -> list[int]:
    """What each register contributes to the number of its element's slice."""
    bits = log2(buffer.shape[dim])
    numbers = [0]
    for point in layout_of(tensor).bases[REGISTER]:
        numbers += [number ^ (point[dim] >> bits) for number in numbers]
    return numbers


def _together(tensor: TensorType, buffer: MemDescType, dim: int) -> int:
    numbers = slice_numbers(tensor, buffer, dim)
    count = 1
    while count < len(numbers) and not numbers[count]:
        count *= 2
    return count
