"""Tensors in buffers of shared memory: where their elements lie, and how many go in one access."""

from __future__ import annotations

from functools import lru_cache

from ..ttgir.types import MemDescType, TensorType
from .distributed import distributed_layout
from .element_sizes import bytes_in_memory
from .linear import LinearLayout
from .shared import SharedLayout, shared_layout


def buffer_layout(type_: MemDescType) -> SharedLayout:
    """Where the elements of a buffer lie."""
    rank = len(type_.shape)
    return shared_layout(type_.encoding, tuple(type_.alloc_shape[-rank:]) or type_.shape)


def buffer_bytes(type_: MemDescType) -> int:
    """Bytes of a buffer, padding included."""
    return buffer_layout(type_).size * bytes_in_memory(type_.element)


@lru_cache(maxsize=1024)
def tensor_offsets(tensor: TensorType, buffer: MemDescType) -> LinearLayout:
    """(register, lane, warp) → element offset before padding."""
    assert tensor.encoding is not None
    return distributed_layout(tensor.encoding, tensor.shape).compose(buffer_layout(buffer).offsets)


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
