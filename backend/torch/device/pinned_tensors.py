"""Pinned CPU tensors, and copies of devices that read or write pinned memory by themselves."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from ...runtime import PINNED, Context, native
from ...settings import ZERO_COPY

#: Fewer bytes go into the commands themselves, or through the device's own staging memory, at less cost.
SMALLEST_COPY = 1 << 16
#: Bytes of a piece of a copy between devices, and how many are under way. Smaller ones cost more waits, larger ones
#: more time in which one of the two devices has nothing to do.
_PIECE, _PIECES = 8 << 20, 3


def pins(context: Context) -> bool:
    """Whether a device copies from and to pinned memory by itself, or has host memory for its own."""
    return context.host_memory == ZERO_COPY or bool(context.device.host_import_alignment)


def empty_pinned(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, bytes_: int) -> torch.Tensor:
    """A CPU tensor in pinned memory of its own, which takes ``bytes_`` bytes, at least one."""
    memory = torch.frombuffer(PINNED.take(bytes_), dtype=torch.uint8, count=bytes_)
    return torch.empty(0, dtype=dtype).set_(memory.untyped_storage(), 0, size, stride)


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether a CPU tensor is in pinned memory."""
    return PINNED.block_of(tensor.untyped_storage().data_ptr()) is not None


def pinned_address(context: Context, tensor: torch.Tensor, bytes_: int) -> int | None:
    """Where a device has the memory of a CPU tensor. None where it has to be copied by the host, or better is."""
    if bytes_ < SMALLEST_COPY:
        return None
    start = tensor.untyped_storage().data_ptr()
    block = PINNED.block_of(start)
    base = None if block is None else block.device_address(context)
    return None if base is None else base + tensor.data_ptr() - start


def host_memory_of(context: Context, tensor: torch.Tensor, bytes_: int) -> torch.Tensor | None:
    """The memory of a tensor without gaps on a device that has host memory for its own, as a CPU tensor, once the
    device has done what it was given. None on other devices. It keeps the tensor."""
    if context.host_memory != ZERO_COPY or not bytes_:
        return None
    memory: Any = (ctypes.c_char * bytes_).from_address(tensor.data_ptr())
    memory.tensor = tensor
    storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    context.native.synchronize()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, 0, tensor.size(), tensor.stride())


def copy_across(source: Context, from_: int, target: Context, to: int, bytes_: int) -> bool:
    """Copies between two devices, in pieces: while one reads a piece, the other writes the next one. The target's later
    work comes behind it; nothing of it is left to do for the source. False, with nothing done, where a device cannot
    use pinned memory."""
    pieces = [PINNED.take(min(_PIECE, bytes_)) for _ in range(min(_PIECES, -(-bytes_ // _PIECE)))]
    places = []
    for piece in pieces:
        block = PINNED.block_of(torch.frombuffer(piece, dtype=torch.uint8).data_ptr())
        assert block is not None
        places.append((block.device_address(source), block.device_address(target)))
    if any(None in place for place in places):
        return False
    written, read = ([native().Event(one.native, False) for _ in pieces] for one in (source, target))
    turns = -(-bytes_ // _PIECE)
    for turn in range(turns + 1):
        if turn < turns:
            at, place = turn * _PIECE, turn % len(pieces)
            if turn >= len(pieces):
                read[place].synchronize()
            source.native.copy(places[place][0], from_ + at, min(_PIECE, bytes_ - at))
            written[place].record()
            written[place].query()  # which hands the copy to the driver: behind the next one it would end late
        if turn > 0:
            at, place = (turn - 1) * _PIECE, (turn - 1) % len(pieces)
            written[place].synchronize()
            target.native.copy(to + at, places[place][1], min(_PIECE, bytes_ - at))
            read[place].record()
            read[place].query()
    return True
