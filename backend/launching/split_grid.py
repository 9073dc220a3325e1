"""Grids with more programs than the device takes at once, on an axis or in the time that there is: they are launched in
parts.

A kernel that is to be launched in parts is another one: its program ids and grid sizes are arguments (``GRID`` in
abi/block.py). It is compiled when a launch first needs it, so that a grid that fits costs nothing.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

from ..abi.launch_arguments import FIRST_ARGUMENT, LaunchArgument
from ..runtime.context import Context
from ..runtime.kernel import Kernel
from ..runtime.launches.launch import LaunchWrapper
from . import kernel_records


class PartsLauncher(LaunchWrapper):
    """Launches a kernel that takes GRID in parts of at most ``limits`` programs on each axis; x varies fastest.

    ``place``: which of the kernel's arguments is the first of GRID. Of launch hooks, the first part calls the one that
    enters, and the last the one that leaves.
    """

    def __init__(self, launch: Callable[..., None], limits: Sequence[int], place: int) -> None:
        self._launch, self._limits, self._place = launch, tuple(limits), FIRST_ARGUMENT + place

    def __call__(self, *args: Any) -> None:
        """Launches as what make_launcher() gives does."""
        self.within(self._limits, *args)

    def within(self, limits: Sequence[int], *args: Any) -> None:
        """The grid in parts of at most ``limits`` programs on each axis."""
        limits = [min(pair) for pair in zip(limits, self._limits, strict=True)]
        grid = args[: LaunchArgument.STREAM]
        arguments = (*args, *[None] * (self._place - len(args)))[: self._place]
        between = arguments[LaunchArgument.STREAM : LaunchArgument.ENTER_HOOK]
        enter, leave = arguments[LaunchArgument.ENTER_HOOK], arguments[LaunchArgument.EXIT_HOOK]
        starts = [range(0, size, limit) for size, limit in zip(grid, limits, strict=True)]
        last = tuple(of_axis[-1] for of_axis in starts)
        for z, y, x in product(*reversed(starts)):
            first = (x, y, z)
            part = [min(size - at, limit) for size, at, limit in zip(grid, first, limits, strict=True)]
            hooks = enter if not any(first) else None, leave if first == last else None
            self._launch(*part, *between, *hooks, *arguments[FIRST_ARGUMENT:], *first, *grid)


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
        self._function: list[Any] = []  # what expected() reads, once it was asked
        self._lock = threading.Lock()

    def __call__(self, *args: Any) -> dict[str, str]:
        """Launches it, and returns which way each pointer argument went."""
        with self._lock:
            if self._ready is None:
                self._ready = self._compile()
        launch, handle = self._ready
        grid, native = args[: LaunchArgument.STREAM], self._context.native
        function, programs = args[LaunchArgument.FUNCTION], math.prod(grid)
        # What the variant was measured to take counts more than what was computed of the kernel, which does not run.
        measured = native.expected(handle, programs) if native.is_bounded else math.inf
        if not math.isinf(measured):
            native.expect(function, programs, int(measured * 1e9))
        limits = within_parts(grid, native.parts(function, programs))
        launch.within(limits, *args[: LaunchArgument.FUNCTION], handle, *args[LaunchArgument.FUNCTION + 1 :])
        return launch.transfers

    def expected(self, *args: Any) -> float:
        """Seconds that a launch should take whose kernel did not run yet, by its code (expected_time.py)."""
        from .expected_time import expected_seconds, function_of

        if not self._function:
            self._function.append(function_of(self._compiled(split_grid=False)))
        units = self._context.device.compute_units.count_or_estimate
        values = args[FIRST_ARGUMENT:]
        return expected_seconds(self._function[0], self._source(), values, args[: LaunchArgument.STREAM], units)

    def _compiled(self, split_grid: bool) -> Any:
        import triton
        from triton.compiler import ASTSource

        from ..options import SPIRVOptions

        source, metadata = self._source(), self._metadata
        if source is None:
            raise ValueError(
                f"kernel '{metadata.name}': the grid exceeds the device's limit, and the variant for launches in "
                "parts cannot be compiled, because the kernel's source is gone"
            )
        options = {entry.name: getattr(metadata, entry.name) for entry in fields(SPIRVOptions)} | {
            "split_grid": split_grid
        }
        compiled = triton.compile(
            source if isinstance(source, ASTSource) else source.path, target=metadata.target, options=options
        )
        kernel_records.note(source, compiled.metadata)
        return compiled

    def _compile(self) -> tuple[PartsLauncher, int]:
        compiled = self._compiled(split_grid=True)
        kernel = Kernel(self._context, self._metadata.name, compiled.asm["spv"])
        weakref.finalize(self, kernel.unload).atexit = False
        return self._make(compiled.metadata), kernel.handle


def within_parts(grid: Sequence[int], parts: int) -> tuple[int, ...]:
    """The most programs on each axis of ``parts`` launches, or a few more, that make a grid together. Programs that
    follow each other on x stay together, as far as that goes."""
    limits = []
    for size in reversed(grid):
        divided = min(parts, size)
        limits.append(-(-size // divided))
        parts = -(-parts // divided)
    return tuple(reversed(limits))
