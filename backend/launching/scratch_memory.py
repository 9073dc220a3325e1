"""Global scratch memory: device memory that a kernel needs in addition to its arguments, from the user's allocator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.runtime import _allocation

from ..runtime.launches.launch import LaunchWrapper


class ScratchLauncher(LaunchWrapper):
    """Launches a kernel with the address of its global scratch memory after its own arguments.

    ``size``: bytes of each program; ``alignment``: of the whole, in bytes. The memory is that of triton.set_allocator's
    function, asked at each launch. Raises RuntimeError if none was set, ValueError on memory that is not aligned.
    """

    def __init__(self, name: str, launch: Callable[..., None], size: int, alignment: int) -> None:
        self._name, self._launch, self._size, self._alignment = name, launch, size, alignment

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: int, *args: Any) -> None:
        """Launches as what make_launcher() gives does."""
        size = grid_x * grid_y * grid_z * self._size
        memory: Any = 0
        if size > 0:
            memory = _allocation._allocator.get()(size, self._alignment, stream)
            if memory.data_ptr() % self._alignment:
                raise ValueError(
                    f"kernel '{self._name}': the allocator of triton.set_allocator returned memory at "
                    f"{memory.data_ptr():#x}, not a multiple of the requested {self._alignment} bytes"
                )
        self._launch(grid_x, grid_y, grid_z, stream, *args, memory)
