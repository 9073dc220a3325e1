"""Compiling and launching kernels for tensors of the device, whatever driver Triton's own launches go to.

Triton's JIT binds and specialises the arguments of each call. Here the caller knows their types beforehand, and a
kernel is compiled for no more than whether all pointers are multiples of 16 bytes and lie in small allocations, so that
few kernels are compiled and a launch costs one look at a table.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler import compile as compile_kernel
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from ...collector import paused_collector
from ...compiler import POINTER_RANGE
from ...launching.device_utils import DeviceUtils
from ...launching.launcher import launcher
from ...runtime import context as vulkan_context
from ...runtime.measuring.measured import capabilities_of
from ...runtime.reports import launchers
from ..device.tensor_memory import BEFORE_READING, WRITING
from .prepared import note_launch
from .types import NAMES, OnHost

#: Workgroups along one axis of a grid that every Vulkan device takes (maxComputeWorkGroupCount).
_GRID_LIMIT = 65535
_INT32 = 2**31 - 1
_NO_HOOKS = (None, None, None)  # launch metadata and hooks
_lock = threading.Lock()
_every: WeakSet[TypedKernel] = WeakSet()


class _Loaded:
    """A kernel on one device."""

    __slots__ = ("_compiled", "_function", "_launch", "_packed", "_source")

    def __init__(self, source: ASTSource, device: int, num_warps: int, fusion: bool) -> None:
        context = vulkan_context.of_device(device)
        capabilities = capabilities_of(context.device)
        assert capabilities is not None  # a context's device can run kernels
        target = GPUTarget("spirv", capabilities.arch(), capabilities.subgroup_size)
        options = {"num_warps": num_warps, "enable_fp_fusion": fusion}
        with vulkan_context.on_device(device):
            with paused_collector():
                compiled = compile_kernel(source, target=target, options=options)
            limit = capabilities.shared_bytes
            if compiled.metadata.shared > limit:
                raise OutOfResources(compiled.metadata.shared, limit, "shared memory")
            self._launch, self._source = launcher(source, compiled.metadata, later=True), source
            module, function, *_ = DeviceUtils().load_binary(compiled.name, compiled.kernel, 0, device)
        compiled.module, compiled.function = module, function  # as Triton's own launches have them
        self._compiled, self._function, self._packed = compiled, function, compiled.packed_metadata

    def __call__(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        note_launch(self._launch, self._function, grid, arguments, self)
        hooks: tuple[Any, ...] = _NO_HOOKS
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):  # a profiler's
            hooks = self._compiled.launch_metadata(grid, 0, *arguments), enter, leave
        self._launch(*grid, 0, self._function, self._packed, *hooks, *arguments)


class TypedKernel:
    """A @triton.jit function whose ``names`` are its arguments in order, each with its Triton type ('*fp32', 'i32');
    ``constants`` are its constexprs. ``fusion``: whether products and sums may be one rounding, as in matrix products.
    ``divisible``: integers that are multiples of 16."""

    def __init__(
        self,
        function: JITFunction,
        types: dict[str, str],
        constants: dict[str, Any],
        num_warps: int = 4,
        fusion: bool = False,
        divisible: frozenset[str] = frozenset(),
    ) -> None:
        self._divisible = divisible
        self._function, self._types, self._constants = function, types, constants
        self._options = num_warps, fusion
        self._loaded: dict[tuple[int, bool, bool], _Loaded] = {}
        self._pointers = [name for name, type_ in types.items() if type_.startswith("*")]
        _every.add(self)

    def launch(self, device: int, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Run it with a grid of programs."""
        aligned = small = True
        for argument in arguments:
            if isinstance(argument, torch.Tensor):
                aligned = aligned and not argument.data_ptr() & 15
                small = small and argument.untyped_storage().nbytes() <= POINTER_RANGE
        key = device, aligned, small
        loaded = self._loaded.get(key)
        if loaded is None:
            loaded = self._load(*key)
        with WRITING:
            loaded(grid, arguments)

    def unload(self, devices: set[int]) -> None:
        """The next launch on one of the devices loads it again."""
        with _lock:
            for key in [key for key in self._loaded if key[0] in devices]:
                del self._loaded[key]

    def _load(self, device: int, aligned: bool, small: bool) -> _Loaded:
        with _lock:
            key = device, aligned, small
            if key not in self._loaded:
                attributes: dict[tuple[int, ...], list[list[Any]]] = {}
                for name, type_ in self._types.items():
                    found: list[list[Any]] = []
                    if name in self._divisible or (aligned and name in self._pointers):
                        found.append(["tt.divisibility", 16])
                    if small and type_.startswith("*"):
                        found.append(["tt.pointer_range", 32])
                    if found:
                        attributes[(self._function.arg_names.index(name),)] = found
                signature = {name: self._types.get(name, "constexpr") for name in self._function.arg_names}
                source = ASTSource(self._function, signature, self._constants, attributes)
                self._loaded[key] = _Loaded(source, device, *self._options)
            return self._loaded[key]


_kernels: dict[Any, TypedKernel] = {}


def _unload(contexts: list[vulkan_context.Context]) -> None:
    left = {context.index for context in contexts}
    for kernel in [*_every]:
        kernel.unload(left)


vulkan_context.WHEN_LEFT.append(_unload)


class Call:
    """A launch as ``call()`` made it, for any tensors and floats of the same types."""

    __slots__ = ("_arguments", "_device", "_grid", "_kernel", "_places")

    def __init__(self, kernel: TypedKernel, device: int, grid: tuple[int, int, int], arguments: dict[str, Any]) -> None:
        self._kernel, self._device, self._grid = kernel, device, grid
        self._arguments = [*arguments.values()]
        self._places = {name: place for place, name in enumerate(arguments)}
        for place, argument in enumerate(self._arguments):
            if isinstance(argument, torch.Tensor):
                self._arguments[place] = None  # its memory is not kept

    def __call__(self, changed: dict[str, Any]) -> None:
        """Run it with these tensors, which are all that it has, and floats."""
        arguments, places = self._arguments.copy(), self._places
        for name, value in changed.items():
            arguments[places[name]] = value
        self._kernel.launch(self._device, self._grid, arguments)


def launch(
    function: JITFunction,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    constants: dict[str, Any],
    num_warps: int = 4,
    fusion: bool = False,
    divisible: frozenset[str] | None = None,
) -> None:
    """Run a kernel that is written by hand: call() once, or not at all where the grid is empty."""
    if all(grid):
        made = call(function, grid, arguments, constants, num_warps, fusion, divisible)
        made({name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)})


def call(
    function: JITFunction,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    constants: dict[str, Any],
    num_warps: int = 4,
    fusion: bool = False,
    divisible: frozenset[str] | None = None,
) -> Call:
    """A launch of a kernel that is written by hand, of a grid that is not empty. ``arguments``: tensors of one device,
    integers and floats by name; integers are 64 bits wide where one does not fit 32, and those called stride_… are
    constants where they are 1. ``divisible``: those which, with strides, are all multiples of 16 or not taken for that;
    all integers if None. ``constants``: its constexprs. A grid past the device's limit is launched in parts
    (launching/split_grid.py), by a kernel that is compiled for it."""
    wide = "i64" if any(type(value) is int and abs(value) > _INT32 for value in arguments.values()) else "i32"
    floats = "fp64" if any(getattr(v, "dtype", None) == torch.float64 for v in arguments.values()) else "fp32"
    ones = {name: 1 for name, value in arguments.items() if name.startswith("stride_") and value == 1}
    types = {name: _type(value, wide, floats) for name, value in arguments.items() if name not in ones}
    integers = frozenset(
        name
        for name, value in arguments.items()
        if type(value) is int
        and name not in ones
        and (divisible is None or name in divisible or name.startswith("stride_"))
    )
    if any(arguments[name] % 16 for name in integers):
        integers = frozenset()
    key = function, tuple(types.items()), tuple(constants.items()), num_warps, fusion, integers
    with paused_collector():  # a function's hash parses it
        kernel = _kernels.get(key)
    if kernel is None:
        made = TypedKernel(function, types, {**constants, **ones}, num_warps, fusion, integers)
        kernel = _kernels.setdefault(key, made)
    passed = {name: arguments.get(name) for name in function.arg_names}
    return Call(kernel, _device(arguments.values()), grid, passed)


def _type(value: Any, integers: str, floats: str) -> str:
    if isinstance(value, torch.Tensor):
        return "*" + NAMES[value.dtype]
    return floats if isinstance(value, float) else integers


def _device(values: Any) -> int:
    return next(int(value.device.index or 0) for value in values if isinstance(value, torch.Tensor))


def raise_reports(device: int) -> None:
    """Raise LoopLimitExceeded where the driver ended a loop of a launch since the last call."""
    launchers.raise_reports(vulkan_context.of_device(device))


def install() -> None:
    """Have copies to the host do that."""
    BEFORE_READING.append(raise_reports)


def grid_of(programs: int) -> tuple[int, int, int]:
    """A grid of at least so many programs, numbered ``program_id(1) * num_programs(0) + program_id(0)``."""
    if programs <= _GRID_LIMIT:
        return programs, 1, 1
    rows = -(-programs // _GRID_LIMIT)
    if rows > _GRID_LIMIT:
        raise OnHost(f"{programs} programs")
    return _GRID_LIMIT, rows, 1
