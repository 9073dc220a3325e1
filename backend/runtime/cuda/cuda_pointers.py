"""CUDA memory of objects with an address but no ``device``: CUDA's driver knows its GPU and its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import cuda_driver


@dataclass(frozen=True)
class _Device:
    type: str
    index: int


class CudaMemory:
    """``argument`` with what a CUDA tensor would say of its memory. ``index``: of the GPU."""

    def __init__(self, argument: Any, address: int, index: int) -> None:
        self.argument, self.device = argument, _Device("cuda", index)
        self._address = address

    def data_ptr(self) -> int:
        """The address."""
        return self._address

    def storage(self) -> tuple[int, int, bool]:
        """(address, bytes, writeable) of the allocation."""
        start, end = cuda_driver.allocation(self._address)
        return start, end - start, True


def with_device(argument: Any, address: int, place: str) -> tuple[Any, int, str]:
    """A Pointer (resolution.py), as one of CUDA's where the object does not say what device it is on, and CUDA does."""
    if place != "host" or not address or hasattr(argument, "device") or hasattr(argument, "is_cpu"):
        return argument, address, place
    index = cuda_driver.device_of(address)
    return (argument, address, place) if index is None else (CudaMemory(argument, address, index), address, "cuda")
