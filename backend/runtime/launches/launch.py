"""Launching a kernel: where its arguments lie, and the native launcher that packs and submits them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...abi.block import ArgumentBlock, lay_out
from ...abi.scalars import argument_type, triton_name
from ..context import Context
from ..native_module import native
from .resolution import Resolver

#: (path of the argument in the call's arguments, its name, its Triton type).
Entry = tuple[tuple[int, ...], str, str]


def argument_block(entries: Sequence[Entry]) -> ArgumentBlock:
    """Where the passed arguments lie. Raises ValueError on a type that cannot be passed."""
    sizes = []
    for _, name, type_ in entries:
        try:
            sizes.append(argument_type(type_).bytes)
        except KeyError:
            raise ValueError(
                f"argument '{name}': a value of type {type_} cannot be passed to a SPIR-V kernel"
            ) from None
    return lay_out(sizes)


def argument_plan(entries: Sequence[Entry]) -> Any:
    """What packs the arguments: a native ArgumentPlan. Raises ValueError as argument_block()."""
    block = argument_block(entries)
    return native().ArgumentPlan(
        [
            (list(path), name, triton_name(type_), offset)
            for (path, name, type_), offset in zip(entries, block.offsets, strict=True)
        ],
        block.bytes,
    )


def make_launcher(
    context: Context,
    name: str,
    entries: Sequence[Entry],
    indirect: bool,
    written: Collection[str] | None = None,
    oversized: Callable[..., dict[str, str]] | None = None,
    place: str = "",
) -> Any:
    """A callable that runs the kernel; abi.launch_arguments.LaunchArgument lists its arguments. It returns once
    the kernel is submitted if tensors are passed and all of them are in device memory, otherwise when it is done.
    Its ``transfers`` says which way each pointer argument of the last launch went; if a launch hook is installed,
    the launch metadata has the same under "transfers".

    ``entries``: the passed arguments in declaration order. ``indirect``: the block goes into a buffer.
    ``written``: names of the pointer arguments that the kernel may write; None: any. ``oversized``: called instead of
    a launch, with its arguments, where the grid is past the device's limits (``grid_limits`` of the callable); it
    returns the launch's transfers. None: such a grid is refused. ``place``: of the kernel's source, for errors, such as
    ``add.py:7``.
    Raises ValueError on a type that cannot be passed, or a block that is too long.
    """
    plan = argument_plan(entries)
    launcher = native().Launcher(
        device=context.native,
        plan=plan,
        name=name,
        place=place,
        indirect=indirect,
        device_index=context.index,
        resolver=Resolver(context, name, plan.pointer_names, written),
        oversized=oversized,
    )
    return ValidatingLauncher(context, launcher) if context.validates else launcher


class LaunchWrapper:
    """A launcher by another one, ``_launch``."""

    _launch: Any

    @property
    def transfers(self) -> dict[str, str]:
        """Which way each pointer argument of the last launch went."""
        return self._launch.transfers


class ValidatingLauncher(LaunchWrapper):
    """Launches and raises what the validation layer reported."""

    def __init__(self, context: Context, launcher: Any) -> None:
        self._context, self._launch = context, launcher

    def __call__(self, *args: Any) -> None:
        """Launches as what make_launcher() gives does. Raises ValidationError."""
        self._launch(*args)
        self._context.raise_validation_errors()

    @property
    def grid_limits(self) -> list[int]:
        """The most programs on each axis of one dispatch."""
        return self._launch.grid_limits
