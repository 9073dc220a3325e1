"""Launching kernels for tensors of the device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import gt
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from ... import runtime
from ...compile_time import kernel_of_torch
from ...launching import typed_kernels
from ...notices import tell_once
from ...runtime import NAME
from ..device.native_module import torch_native
from ..device.tensor_memory import BEFORE_READING, WRITING, answered_by_keys
from .dtypes import NAMES, OnHost
from .kept import Kept
from .prepared import note_launch

for _asking in (typed_kernels.TypedKernel.launch, typed_kernels.KernelOfType.__call__):
    answered_by_keys(_asking)  # whether an address is a multiple of 16, and what a launch passes on

#: Workgroups along one axis of a grid that every Vulkan device takes (maxComputeWorkGroupCount).
_GRID_LIMIT = 65535


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
    arguments: dict[str, Any] | Sequence[Any],
    constants: dict[str, Any],
    num_warps: int = 4,
    fusion: bool = False,
    divisible: frozenset[str] | None = None,
    form: tuple[Any, ...] | None = None,
) -> None:
    """Run a kernel that is written by hand, unless the grid is empty. ``arguments``: tensors of one device,
    integers and floats by name, or all in the function's order; integers are 64 bits wide where one does not fit 32,
    and those called stride_… are constants where they are 1. ``divisible``: those which, with strides, are all
    multiples of 16 or not taken for that; all integers if None. ``constants``: its constexprs. A grid past the device's
    limit is launched in parts (launching/split_grid.py), by a kernel that is compiled for it. ``form``: form_of() of
    the arguments, where the caller has it."""
    if not all(grid):
        return
    names = function.arg_names
    values = [*map(arguments.get, names)] if isinstance(arguments, dict) else arguments
    if form is None:
        steps = [name.startswith("stride_") for name in names]
        heeded = [divisible is None or name in divisible for name in names]
        kinds = [getattr(one, "dtype", type(one)) for one in values]
        form = form_of([*compress(values, steps)], [*compress(values, map(gt, heeded, steps))], values, kinds)
    how = num_warps, fusion, divisible
    what = id(function), *how, *constants.items(), *form
    kernel = _kernels.get(what, lambda: _made(function, values, constants, *how, *form[:2]))
    device = next(one.device.index for one in values if isinstance(one, torch.Tensor))
    kernel.launch(device or 0, grid, values)


def form_of(
    strides: Sequence[Any], heeded: Sequence[Any], others: Sequence[Any], kinds: Sequence[Any]
) -> tuple[Any, ...]:
    """All that launch()'s kernel follows from of its arguments: whether integers are wide, whether those that are
    heeded are multiples of 16, which strides are 1, and the ``kinds`` of all, or of those that are no integers."""
    form: tuple[Any, ...] = torch_native().form_of_integers(strides, heeded, others, kinds)
    return form


def _made(
    function: JITFunction,
    values: Sequence[Any],
    constants: dict[str, Any],
    num_warps: int,
    fusion: bool,
    divisible: frozenset[str] | None,
    wide: bool,
    even: bool,
) -> OperationKernel:
    types: dict[str, str] = {}
    ones: dict[str, Any] = {}
    multiples: set[str] = set()
    floats = "fp64" if any(getattr(one, "dtype", None) == torch.float64 for one in values) else "fp32"
    for name, value in zip(function.arg_names, values, strict=False):
        is_stride = name.startswith("stride_")
        if is_stride and value == 1:
            ones[name] = 1
        elif isinstance(value, torch.Tensor):
            types[name] = "*" + NAMES[value.dtype]
        elif value is not None:
            types[name] = floats if isinstance(value, float) else "i64" if wide else "i32"
            if even and type(value) is int and (is_stride or divisible is None or name in divisible):
                multiples.add(name)
    return kernel_for(function, types, {**constants, **ones}, num_warps, fusion, frozenset(multiples))


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
