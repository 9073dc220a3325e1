"""The arguments of a launch, as Triton calls the launcher of a compiled kernel: the kernel's own come last."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any


class LaunchArgument(IntEnum):
    """Where each is. The grid is x, y and z."""

    GRID = 0
    STREAM = 3
    FUNCTION = 4
    KERNEL_METADATA = 5
    LAUNCH_METADATA = 6
    ENTER_HOOK = 7
    EXIT_HOOK = 8
    KERNEL_ARGUMENTS = 9


#: Where the kernel's own arguments begin.
FIRST_ARGUMENT = int(LaunchArgument.KERNEL_ARGUMENTS)


def argument_at(args: Sequence[Any], path: Sequence[int]) -> Any:
    """The argument of a launch at a place among the kernel's own, and then in nested tuples."""
    argument = args[FIRST_ARGUMENT + path[0]]
    for index in path[1:]:
        argument = argument[index]
    return argument


class Place(IntEnum):
    """Where the memory of a pointer argument lies: a bit each, so that a number holds all of a launch."""

    #: An integer was passed: a device address.
    ADDRESS = 1
    HOST = 2
    #: The memory of this runtime's own device.
    DEVICE = 4
    CUDA = 8
    #: Of the host, and no kernel may write it.
    READ_ONLY = 16

    @property
    def transfer(self) -> str:
        """What launch metadata calls it."""
        return "host" if self is Place.READ_ONLY else self.name.lower()
