"""Launching kernels for tensors of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from ... import runtime
from ...compile_time import kernel_of_torch
from ...launching import typed_kernels
from ...notices import tell_once
from ...runtime import NAME
from ..device.tensor_memory import BEFORE_READING, WRITING
from .kept import Kept
from .prepared import note_launch
from .types import NAMES, OnHost

#: Workgroups along one axis of a grid that every Vulkan device takes (maxComputeWorkGroupCount).
_GRID_LIMIT = 65535
_INT32 = 2**31 - 1


class OperationKernel(typed_kernels.TypedKernel):
    """One whose launches are part of a call of a torch operation, and write its tensors."""

    def run(self, loaded: typed_kernels.KernelOfType, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Launches as TypedKernel.run() of launching/ does."""
        with WRITING:
            note_launch(loaded.launcher, loaded.function, grid, arguments, loaded)
            loaded(grid, arguments)

    def _load(self, device: int, aligned: bool, small: bool) -> typed_kernels.KernelOfType:
        tell_of_cpu(device)
        with kernel_of_torch():
            return super()._load(device, aligned, small)


#: The speed of models in training, relative to torch's own CPU code, by the kind of device (docs/speed.md).
OF_TORCHS_SPEED = {"CPU": "0.6 to 0.9", "Vulkan": "0.02 to 0.15"}


def tell_of_cpu(device: int) -> None:
    """Tells once, where the device is a CPU, how fast that is and what it is good for."""
    known = runtime.devices()[device]
    if known.kind == "cpu" and known.api in OF_TORCHS_SPEED:
        tell_once(
            "a CPU",
            f"the device '{NAME}' is a CPU here ({known.name}): models train at {OF_TORCHS_SPEED[known.api]} of the "
            "speed of torch's own CPU code; it is for writing, testing and debugging kernels",
        )


_kernels: Kept[OperationKernel] = Kept(4096)


def kernel_for(
    function: JITFunction,
    types: dict[str, str],
    constants: dict[str, Any],
    num_warps: int = 4,
    fusion: bool = False,
    divisible: frozenset[str] = frozenset(),
) -> OperationKernel:
    """OperationKernel(…), one for equal arguments."""
    # By the function's number: its hash parses it. The kernel keeps the function.
    key = id(function), tuple(types.items()), tuple(constants.items()), num_warps, fusion, divisible
    return _kernels.get(key, lambda: OperationKernel(function, types, constants, num_warps, fusion, divisible))


def launch(
    function: JITFunction,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    constants: dict[str, Any],
    num_warps: int = 4,
    fusion: bool = False,
    divisible: frozenset[str] | None = None,
) -> None:
    """Run a kernel that is written by hand, unless the grid is empty. ``arguments``: tensors of one device,
    integers and floats by name; integers are 64 bits wide where one does not fit 32, and those called stride_… are
    constants where they are 1. ``divisible``: those which, with strides, are all multiples of 16 or not taken for that;
    all integers if None. ``constants``: its constexprs. A grid past the device's limit is launched in parts
    (launching/split_grid.py), by a kernel that is compiled for it."""
    if not all(grid):
        return
    kinds, how = map(_form, arguments.values()), (num_warps, fusion, divisible)
    what = id(function), *how, *constants.items(), *arguments, *kinds
    kernel = _kernels.get(what, lambda: _made(function, arguments, constants, *how))
    device = next(one.device.index for one in arguments.values() if isinstance(one, torch.Tensor))
    kernel.launch(device or 0, grid, [*map(arguments.get, function.arg_names)])


def _form(value: Any) -> Any:
    """All of an argument that its kernel follows from."""
    if type(value) is int:
        return "1" if value == 1 else (value % 16 == 0) + 2 * (not -_INT32 <= value <= _INT32)
    return value.dtype if isinstance(value, torch.Tensor) else type(value)


def _made(
    function: JITFunction,
    arguments: dict[str, Any],
    constants: dict[str, Any],
    num_warps: int,
    fusion: bool,
    divisible: frozenset[str] | None,
) -> OperationKernel:
    types: dict[str, str] = {}
    integers: list[str] = []
    ones: dict[str, Any] = {}
    wide, floats, even = "i32", "fp32", True
    for name, value in arguments.items():
        if type(value) is int:
            is_stride = name.startswith("stride_")
            if is_stride and value == 1:
                ones[name] = 1
                continue
            types[name] = ""
            if not -_INT32 <= value <= _INT32:
                wide = "i64"
            if is_stride or divisible is None or name in divisible:
                integers.append(name)
                even = even and value % 16 == 0
        elif isinstance(value, torch.Tensor):
            types[name] = "*" + NAMES[value.dtype]
            if value.dtype == torch.float64:
                floats = "fp64"
        else:
            types[name] = "." if isinstance(value, float) else ""
    types = {name: {"": wide, ".": floats}.get(type_, type_) for name, type_ in types.items()}
    even_integers = frozenset(integers) if even else frozenset()
    return kernel_for(function, types, {**constants, **ones}, num_warps, fusion, even_integers)


def raise_reports(device: int) -> None:
    """Raise LoopLimitExceeded where the driver ended a loop of a launch since the last call."""
    runtime.raise_reports(runtime.of_device(device))


def install() -> None:
    """Makes copies to the host do that."""
    BEFORE_READING.append(raise_reports)


def grid_of(programs: int) -> tuple[int, int, int]:
    """A grid of at least so many programs, numbered ``program_id(1) * num_programs(0) + program_id(0)``."""
    if programs <= _GRID_LIMIT:
        return programs, 1, 1
    rows = -(-programs // _GRID_LIMIT)
    if rows > _GRID_LIMIT:
        raise OnHost(f"{programs} programs")
    return _GRID_LIMIT, rows, 1
