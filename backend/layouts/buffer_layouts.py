"""Tensors in buffers of shared memory: where their elements lie, and how many go in one access."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ..ttgir.types import MemDescType, TensorType
from .distributed import layout_of
from .element_sizes import bytes_in_memory
from .linear import LinearLayout
from .shared_encodings import SharedLayout, encoding_rank, shared_layout


def buffer_layout(type_: MemDescType) -> SharedLayout:
    """Where the elements of a buffer lie. Elements of a slice lie as in the whole, but for where the slice starts."""
    return shared_layout(type_.encoding, tuple(type_.alloc_shape[-len(type_.shape) :]) or type_.shape)


def buffer_bytes(type_: MemDescType) -> int:
    """Bytes of a buffer, padding included. A shape of more dimensions than its encoding has is that of several buffers,
    one after the other."""
    shape = type_.alloc_shape or type_.shape
    outer = len(shape) - (encoding_rank(type_.encoding) or len(shape))
    layout = shared_layout(type_.encoding, shape[max(outer, 0) :])
    last = prod(shape[: max(outer, 0)]) * layout.elements.size - 1
    return (layout.pad(last) + 1) * bytes_in_memory(type_.element)


@lru_cache(maxsize=1024)
def tensor_offsets(tensor: TensorType, buffer: MemDescType) -> LinearLayout:
    """(register, lane, warp) → element offset before padding, from that of the buffer's first element."""
    layout, offsets = layout_of(tensor), buffer_layout(buffer).offsets
    allocated = tuple(1 << len(bases) for bases in offsets.inputs.values())
    if allocated != layout.shape:
        layout = LinearLayout(layout.bases, allocated)
    return layout.compose(offsets)


@lru_cache(maxsize=1024)
def consecutive(layout: LinearLayout, limit: int) -> int:
    """How many consecutive registers lie at consecutive, aligned offsets, ``limit`` at most."""
    width = 1
    for basis in layout.inputs["register"]:
        if basis != width or width >= limit:
            break
        width *= 2
    others = [basis for name in ("lane", "warp") for basis in layout.inputs[name]]
    others += [basis for basis in layout.inputs["register"] if basis >= width]
    while width > 1 and any(basis % width for basis in others):
        width //= 2
    return width


def buffer_width(tensor: TensorType, buffer: MemDescType, limit: int) -> int:
    """Consecutive registers of ``tensor`` that one access of the buffer may hold, ``limit`` at most."""
    for interval, padding in buffer_layout(buffer).padding:
        limit = min(limit, interval & -interval, padding & -padding)
    return consecutive(tensor_offsets(tensor, buffer), limit)
