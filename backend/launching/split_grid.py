"""Grids with more programs on an axis than the device takes at once, which are launched in parts.

A kernel that is to be launched in parts is another one: its program ids and grid sizes are arguments (``GRID`` in
abi/block.py). It is compiled when a launch first needs it, so that a grid that fits costs nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from ..abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument
from ..runtime.context import Context
from ..runtime.kernel import Kernel
from . import kernel_records


class PartsLauncher:
    """Launches a kernel that takes GRID in parts of at most ``limits`` programs on each axis; x varies fastest.

    ``place``: which of the kernel's arguments is the first of GRID. Of launch hooks, the first part calls the one that
    enters, and the last the one that leaves.
    """

    def __init__(self, launch: Callable[..., None], limits: Sequence[int], place: int) -> None:
        self._launch, self._limits, self._place = launch, tuple(limits), FIRST_ARGUMENT + place

    def __call__(self, *args: Any) -> None:
        """As make_launcher's."""
        grid = args[: LaunchArgument.STREAM]
        arguments = (*args, *[None] * (self._place - len(args)))[: self._place]
        between = arguments[LaunchArgument.STREAM : LaunchArgument.ENTER_HOOK]
        enter, leave = arguments[LaunchArgument.ENTER_HOOK], arguments[LaunchArgument.EXIT_HOOK]
        starts = [range(0, size, limit) for size, limit in zip(grid, self._limits, strict=True)]
        last = tuple(of_axis[-1] for of_axis in starts)
        for z, y, x in product(*reversed(starts)):
            first = (x, y, z)
            part = [min(size - at, limit) for size, at, limit in zip(grid, first, self._limits, strict=True)]
            hooks = enter if not any(first) else None, leave if first == last else None
            self._launch(*part, *between, *hooks, *arguments[FIRST_ARGUMENT:], *first, *grid)

    @property
    def transfers(self) -> dict[str, str]:
        """Which way each pointer argument of the last launch went."""
        return self._launch.transfers  # type: ignore[attr-defined,no-any-return]


class SplitVariant:
    """What is launched instead of a kernel, with its arguments, where the grid is too large.

    ``source`` and ``metadata`` are the kernel's; ``make`` makes a PartsLauncher for the metadata of the variant. The
    source is kept by the kernel that Triton made of it: it refers to the function, which has the kernel, and the
    collector would not see that circle through the native launcher.
    """

    def __init__(self, context: Context, source: Any, metadata: Any, make: Callable[[Any], PartsLauncher]) -> None:
        self._context, self._metadata, self._make = context, metadata, make
        self._source = weakref.ref(source)
        self._ready: tuple[PartsLauncher, int] | None = None
        self._lock = threading.Lock()

    def __call__(self, *args: Any) -> dict[str, str]:
        """Launches it, and returns which way each pointer argument went."""
        with self._lock:
            if self._ready is None:
                self._ready = self._compile()
        launch, handle = self._ready
        launch(*args[: LaunchArgument.FUNCTION], handle, *args[LaunchArgument.FUNCTION + 1 :])
        return launch.transfers

    def _compile(self) -> tuple[PartsLauncher, int]:
        import triton
        from triton.compiler import ASTSource

        from ..options import SPIRVOptions

        source, metadata = self._source(), self._metadata
        if source is None:
            raise ValueError(
                f"kernel '{metadata.name}': the grid exceeds the device's limit, and the variant for launches in "
                "parts cannot be compiled, because the kernel's source is gone"
            )
        options = {entry.name: getattr(metadata, entry.name) for entry in fields(SPIRVOptions)} | {"split_grid": True}
        compiled = triton.compile(
            source if isinstance(source, ASTSource) else source.path, target=metadata.target, options=options
        )
        kernel_records.note(source, compiled.metadata)
        kernel = Kernel(self._context, metadata.name, compiled.asm["spv"])
        weakref.finalize(self, kernel.unload).atexit = False
        return self._make(compiled.metadata), kernel.handle
