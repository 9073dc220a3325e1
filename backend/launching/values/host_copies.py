"""The memory behind a launch's pointer arguments, copied to the host and put back."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...abi.launch_arguments import FIRST_ARGUMENT, argument_at
from ...runtime.context import NAME, Context
from ...runtime.cuda.cuda_pointers import with_device
from ...runtime.launches.launch import Entry
from ...runtime.memory.host_memory import storage_of, tensor_of


class Untold(Exception):
    """An argument whose memory cannot be copied. The message says why."""


@dataclass(frozen=True)
class Storage:
    """A whole memory: where it is, and how it is reached. ``of``: a tensor in it. ``place``: "cpu", NAME or "cuda"."""

    address: int
    bytes: int
    place: str
    of: Any

    def read(self, context: Context) -> Any:
        """A NumPy array of its bytes, after the launches so far."""
        import numpy

        copy = numpy.empty(self.bytes, numpy.uint8)
        if not self.bytes:
            return copy
        if self.place == "cuda":
            return self._cuda().cpu().numpy()
        if self.place == "cpu":
            ctypes.memmove(copy.ctypes.data, self.address, self.bytes)
        else:
            context.native.download(copy.ctypes.data, self.address, self.bytes)
        return copy

    def write(self, context: Context, values: Any) -> None:
        """Puts such an array back."""
        if not self.bytes:
            return
        if self.place == "cuda":
            import torch

            self._cuda().copy_(torch.from_numpy(values))
        elif self.place == "cpu":
            ctypes.memmove(self.address, values.ctypes.data, self.bytes)
        else:
            context.native.upload(self.address, values.ctypes.data, self.bytes)

    def _cuda(self) -> Any:
        import torch

        return torch.empty(0, dtype=torch.uint8, device=self.of.device).set_(tensor_of(self.of).untyped_storage())


@dataclass(frozen=True)
class Pointer:
    """A pointer argument: its ``name``, the Triton type of what it points at (``pointee``), the number of its
    ``storage``, and how far from the storage's start its first element is, in bytes. ``number``: among the arguments
    that are passed."""

    name: str
    pointee: str
    storage: int
    start: int
    number: int


def pointers(args: Sequence[Any], entries: Sequence[Entry]) -> tuple[list[Pointer], list[Storage]]:
    """The pointer arguments of a launch, and the memories behind them. Raises Untold."""
    found: list[Pointer] = []
    storages: dict[tuple[str, int], Storage] = {}
    for number, (path, name, type_) in enumerate(entries):
        pointee = type_.removeprefix("*").removeprefix("k")
        if not type_.startswith("*") or FIRST_ARGUMENT + path[0] >= len(args):
            continue
        argument = argument_at(args, path)
        if argument is None:
            continue
        storage = _storage(argument, name)
        if storage is None:
            continue
        known = storages.setdefault((storage.place, storage.address), storage)
        if known.bytes < storage.bytes:
            storages[storage.place, storage.address] = storage
        place = list(storages).index((storage.place, storage.address))
        found.append(Pointer(name, pointee, place, argument.data_ptr() - storage.address, number))
    return found, list(storages.values())


def _storage(argument: Any, name: str) -> Storage | None:
    """None of memory that no kernel may write."""
    if not hasattr(argument, "data_ptr"):
        raise Untold(f"argument '{name}' is an address, whose memory is not known")
    argument, address, _ = with_device(argument, argument.data_ptr(), "host")
    device = getattr(argument, "device", None)
    kind = getattr(device, "type", "cpu")
    if kind == "read-only":
        return None
    if kind not in ("cpu", "cuda", NAME):
        raise Untold(f"argument '{name}' is on the device {device}")
    try:
        address, size, _ = storage_of(argument, address)
    except TypeError as error:
        raise Untold(f"argument '{name}': {error}") from None
    if kind == "cuda" and tensor_of(argument) is None:
        raise Untold(f"argument '{name}' is CUDA memory of no torch tensor")
    return Storage(address, size, kind, argument)
