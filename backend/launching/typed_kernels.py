"""Kernels whose arguments have types that are known beforehand, whatever driver Triton's own launches go to.

Triton's JIT binds and specialises the arguments of each call. Here a kernel is compiled for no more than whether all
pointers are multiples of 16 bytes and lie in small allocations, so that few kernels are compiled and a launch costs one
look at a table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any
from weakref import WeakSet

from triton import knobs
from triton.compiler import ASTSource
from triton.compiler import compile as compile_kernel
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from ..abi.argument_properties import ALIGNED, SMALL, attributes_of
from ..garbage_collection import paused_collector
from ..runtime import context as runtime_context
from ..runtime.measuring.measured import capabilities_of
from ..target import target_of
from .device_utils import DeviceUtils
from .launcher import launcher
from .specialization import fast_tensor_specialization

_NO_HOOKS = (None, None, None)  # launch metadata and hooks
_NUMBERS = (int, float, bool, type(None))
#: Modules of more bytes are waited for: a driver may refuse those, for which operations have another way.
_LONGEST_LATER = 1 << 18
_lock = threading.Lock()
_every: WeakSet[TypedKernel] = WeakSet()


class KernelOfType:
    """A kernel on one device: the launcher that runs it, and what its launches take as the function. ``refused``: as
    Kernel has it, unless the kernel is a long one."""

    __slots__ = ("_compiled", "_packed", "_source", "function", "launcher")

    def __init__(
        self, source: ASTSource, device: int, num_warps: int, fusion: bool, refused: Callable[[], None] | None = None
    ) -> None:
        context = runtime_context.of_device(device)
        capabilities = capabilities_of(context.device)
        assert capabilities is not None  # a context's device can run kernels
        options = {"num_warps": num_warps, "enable_fp_fusion": fusion}
        with runtime_context.on_device(device):
            with paused_collector():
                compiled = compile_kernel(source, target=target_of(capabilities), options=options)
            limit = capabilities.shared_bytes
            if compiled.metadata.shared > limit:
                raise OutOfResources(compiled.metadata.shared, limit, "shared memory")
            self.launcher, self._source = launcher(source, compiled.metadata, later=True), source
            later = refused if len(compiled.kernel) <= _LONGEST_LATER else None
            module, function, *_ = DeviceUtils().load_binary(compiled.name, compiled.kernel, 0, device, later)
        compiled.module, compiled.function = module, function  # as Triton's own launches have them
        self._compiled, self.function, self._packed = compiled, function, compiled.packed_metadata

    def __call__(self, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Launch it."""
        hooks: tuple[Any, ...] = _NO_HOOKS
        enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        if getattr(enter, "calls", enter) or getattr(leave, "calls", leave):  # a profiler's
            hooks = self._compiled.launch_metadata(grid, 0, *arguments), enter, leave
        self.launcher(*grid, 0, self.function, self._packed, *hooks, *arguments)


@cache
def _specialization() -> Callable[..., str]:
    return fast_tensor_specialization()


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
        self._loaded: dict[tuple[int, bool, bool], KernelOfType] = {}
        #: Those that a driver refused after launches had returned: the next launches wait for what it says.
        self._refused: set[tuple[int, bool, bool]] = set()
        _every.add(self)

    def launch(self, device: int, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Run it with a grid of programs."""
        specialize = _specialization()
        aligned = small = True
        for argument in arguments:
            if type(argument) not in _NUMBERS:
                told = specialize(argument, align=True)
                aligned, small = aligned and ALIGNED in told, small and SMALL in told
        key = device, aligned, small
        loaded = self._loaded.get(key)
        if loaded is None:
            loaded = self._load(*key)
        self.run(loaded, grid, arguments)

    def run(self, loaded: KernelOfType, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Launch one of its kernels."""
        loaded(grid, arguments)

    def unload(self, devices: set[int]) -> None:
        """The next launch on one of the devices loads it again."""
        with _lock:
            for key in [key for key in self._loaded if key[0] in devices]:
                del self._loaded[key]

    def _load(self, device: int, aligned: bool, small: bool) -> KernelOfType:
        with _lock:
            key = device, aligned, small
            if key not in self._loaded:
                attributes: dict[tuple[int, ...], list[list[Any]]] = {}
                for name, type_ in self._types.items():
                    is_pointer = type_.startswith("*")
                    letters = ALIGNED if name in self._divisible or (aligned and is_pointer) else ""
                    letters += SMALL if small and is_pointer else ""
                    if found := attributes_of(letters):
                        attributes[(self._function.arg_names.index(name),)] = found
                signature = {name: self._types.get(name, "constexpr") for name in self._function.arg_names}
                source = ASTSource(self._function, signature, self._constants, attributes)
                later = None if key in self._refused else partial(self._forget, key)
                loaded = self._loaded[key] = KernelOfType(source, device, *self._options, later)
                if later is not None and key in self._refused:  # meanwhile
                    self._loaded.pop(key, None)
                return loaded
            return self._loaded[key]

    def _forget(self, key: tuple[int, bool, bool]) -> None:
        """Without the lock: this thread must end while another one compiles."""
        self._refused.add(key)
        self._loaded.pop(key, None)


def _unload(contexts: list[runtime_context.Context]) -> None:
    left = {context.index for context in contexts}
    for kernel in [*_every]:
        kernel.unload(left)


runtime_context.when_left(_unload)
