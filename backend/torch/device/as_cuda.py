"""``torch.spirv.as_cuda()``: the device under the names of CUDA, for libraries that ask for nothing else.

Three things make the name "cuda" mean this device. A mode of torch's renames it where functions are given devices, so
that tensors are made and moved as on "spirv". Kernels of torch's CUDA key make tensors where no mode is asked. Rows of
cuda_names.py answer for ``torch.cuda``, and rename types of devices where torch takes them as words.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from inspect import isfunction
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from ...autoload.shared_parameters import moved_in_place
from ...runtime import NAME
from . import random_state
from .cuda_names import CAPABILITY, GRAPHS, TYPED, answers, everywhere, of_elements, renamed, takers
from .native_module import torch_native

__all__ = ["CAPABILITY", "as_cuda"]

_VERSION = "12.4"
#: What makes a tensor without being given one: torch's other factories, and copies, call these.
_FACTORIES = ("empty.memory_format", "empty_strided", "_efficientzerotensor")
_C: Any = torch._C
_SET_DATA: Any = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_TYPE: Any = torch.device.__dict__["type"]
#: Whose code is told "spirv" all the same, autoload/'s too.
_TOLD = frozenset({"torch", "triton", moved_in_place.__module__.partition(".")[0]})
#: Modules of Dynamo's that read what a traced function reads, and in which of their functions; None: in each.
_TRACED = {"torch._dynamo.variables.constant": None, "torch._dynamo.symbolic_convert": "_load_attr"}
_HOOKS = "_push_saved_tensors_default_hooks"
_lock = threading.Lock()
_depth = 0
_typed = 0
_undo: list[Callable[[], Any]] = []


class _Devices(TorchFunctionMode):
    """Calls of torch that name a CUDA device get the Vulkan device of that number."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return _cuda(*args, **(kwargs or {}))
        if func is torch.Tensor.backward:  # which runs code of the program, for which this mode holds, too
            with self:
                return _backward(*args, **(kwargs or {}))
        named = {name: renamed(value) if name == "device" else value for name, value in (kwargs or {}).items()}
        if func is torch.Tensor.type and (kind := of_elements((*args, named.get("dtype"))[1])) is not None:
            return args[0].to(NAME, kind)
        if func is torch.Tensor.type and not named and len(args) == 1:
            return func(*args).replace(f"torch.{NAME}.", "torch.cuda.")
        if func is torch.Tensor.to or func is torch.Tensor.is_pinned or func is torch.Tensor.pin_memory:
            args = [renamed(value) for value in args]
        if func == _SET_DATA:  # torch moves a tensor so only between the kinds of devices that it lists
            return None if args[0].grad is None and moved_in_place(*args) else func(*args)
        if named.pop("pin_memory", False):
            return _pinned(func(*args, **named))
        return func(*args, **named)


class _TypedDevices(_Devices):
    """Renames devices in as_cuda(types=True): a kind of its own, as functions are compiled for one of the two."""


def _type(device: torch.device) -> str:
    """What ``device.type`` is in as_cuda(types=True). Code that was generated has no name of a module."""
    kind: str = _TYPE.__get__(device)
    if kind != NAME or (frame := sys._getframe().f_back) is None:  # C++ code asks, in a thread of its own
        return kind
    asking = frame.f_globals.get("__name__") or "torch"
    traces = asking in _TRACED and _TRACED[asking] in (None, frame.f_code.co_name)
    return kind if asking.partition(".")[0] in _TOLD and not traces else "cuda"


def _set_type(attribute: Any) -> None:
    """Puts an attribute into the table of torch.device, which Python keeps from assignments as it is a type of C's."""
    gc.get_referents(torch.device.__dict__)[0]["type"] = attribute
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(torch.device))


@contextmanager
def _cuda_types() -> Iterator[None]:
    global _typed
    if sys.implementation.name != "cpython":
        raise RuntimeError("torch.spirv.as_cuda(types=True) needs CPython")
    with _lock:
        if not _typed:
            _set_type(property(_type))
        _typed += 1
    try:
        yield
    finally:
        with _lock:
            _typed -= 1
            if not _typed:
                _set_type(_TYPE)


def _pinned(made: torch.Tensor) -> torch.Tensor:
    """A new tensor in pinned memory. torch's factories ask a device from outside for an allocator that only C++ can
    give."""
    if made.device.type == "cpu":
        return made.detach().pin_memory().requires_grad_(made.requires_grad)
    raise RuntimeError("Only dense CPU tensors can be pinned")


def _cuda(tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **how: Any) -> torch.Tensor:
    place = torch.device(NAME, device) if isinstance(device, int) else renamed(device or NAME)
    return tensor.to(place, non_blocking=non_blocking, **how)


def _backward(
    tensor: torch.Tensor, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> None:
    torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _is_overridden(arguments: Any) -> bool:
    """has_torch_function() of torch.autograd's own functions, which do not ask modes: those stay while gradients are
    computed."""
    kinds = {type(value) for value in arguments} - {torch.Tensor}
    plain, is_enabled = _C._disabled_torch_function_impl, _C._is_torch_function_enabled()
    return is_enabled and any(getattr(kind, "__torch_function__", plain) is not plain for kind in kinds)


def _is_cuda(tensor_or_storage: Any) -> bool:
    return tensor_or_storage.device.type in ("cuda", NAME)


def _make(operation: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def make(*args: Any, device: Any = None, **how: Any) -> torch.Tensor:
        return operation(*args, device=renamed(device), **how)

    return make


def _held(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, in which the name means the device, too: it runs in another thread, or within a call of torch."""

    @functools.wraps(function)
    def run(*args: Any, **how: Any) -> Any:
        if not _depth:
            return function(*args, **how)
        with _TypedDevices() if _typed else _Devices():
            return function(*args, **how)

    return run


def _start(own: Callable[..., None]) -> Callable[..., None]:
    """threading.Thread.start() for threads that begin in the region."""

    @functools.wraps(own)
    def start(thread: threading.Thread) -> None:
        thread.run = _held(thread.run)  # type: ignore[method-assign]
        own(thread)

    return start


def _saving(own: Callable[..., None]) -> Callable[..., None]:
    """What torch.autograd.graph.saved_tensors_hooks calls for hooks, which run within the calls that save tensors."""
    return lambda pack, unpack: own(_held(pack), _held(unpack))


def _faking(own: Callable[..., None]) -> Callable[..., None]:
    """torch.library.Library._register_fake()."""

    def register(library: Any, name: str, fake: Any, _stacklevel: int = 1, **how: Any) -> None:
        own(library, name, _held(fake), _stacklevel + 1, **how)

    return register


def _restored(storage: Any, location: str) -> Any:
    """torch.load() of what CUDA saved, or is asked for at a CUDA device."""
    place = renamed(location)
    return None if place == location else torch.serialization.default_restore_location(storage, place)


def _restoring(own: Callable[..., Any]) -> Callable[..., Any]:
    """torch.load()'s choice of a place, where a mapping's "cuda:0" is where spirv:0's storages were saved, too."""

    def choose(places: Any) -> Any:
        if isinstance(places, dict):
            places = {renamed(place): to for place, to in places.items()} | places
        return own(places)

    return choose


def _implementing(own: Callable[..., None]) -> Callable[..., None]:
    """torch.library.Library.impl(), which all ways to register a kernel call: one for CUDA is this device's, too. It
    takes the place of the device's own, which torch before 2.13 refuses by default, and the library's takes its."""

    def impl(library: Any, name: Any, kernel: Any, dispatch_key: str = "", **how: Any) -> None:
        key = dispatch_key or library.dispatch_key
        kernel = _held(kernel) if isfunction(kernel) and kernel is not torch.library.fallthrough_kernel else kernel
        over = how | {"allow_override": True}
        own(library, name, kernel, dispatch_key, **(over if key == "PrivateUse1" else how))
        if key == "CUDA":
            ends = getattr(library, "_registration_handles", None)  # torch has no public name for what ends with it
            if ends is None:
                raise RuntimeError(f"torch.spirv.as_cuda(): a library of torch {torch.__version__} does not end others")
            ours = torch.library.Library(library.ns, "IMPL", "PrivateUse1")
            ends.append(SimpleNamespace(destroy=ours._destroy))
            own(ours, name, kernel, **over)

    return impl


def _missing(name: str) -> Any:
    """torch._C's names that only a torch with CUDA has: torch asks for them where nothing answers for it before."""
    raise AttributeError(
        f"module 'torch._C' has no attribute '{name}': torch has it with CUDA alone, and torch.spirv.as_cuda() nothing "
        "in its place"
    )


def _take_name(whether: bool) -> None:
    """Has ``torch.device("cuda:0")`` equal ``torch.device("spirv:0")``, and torch's C++ code know what has no index."""
    torch_native().take_name(torch.device("cuda", 3), torch.device(NAME, 3), whether)


def has_cuda() -> bool:
    """Whether torch has CUDA devices of its own: what torch.cuda says in as_cuda() is of this device."""
    return not _depth and torch.cuda.is_available()


@contextmanager
def as_cuda(types: bool = False) -> Iterator[None]:
    """While it runs, in all threads, ``torch.cuda`` answers for the Vulkan devices, their tensors have ``is_cuda``, and
    tensors that are made on "cuda" are theirs. In the thread that runs it, and those that start meanwhile, "cuda" also
    means them where tensors are moved. Libraries must be imported inside, too, if they ask when they are imported.
    ``tensor.device.type`` stays "spirv"; with ``types`` it is "cuda" for all code but torch's and Triton's.

    Raises RuntimeError if torch has CUDA devices of its own.
    """
    global _depth
    with _lock:
        if not _depth:
            if has_cuda():
                raise RuntimeError("torch.spirv.as_cuda(): torch has CUDA devices of its own; name 'spirv' instead")
            _begin()
        _depth += 1
    try:
        with _cuda_types() if types else nullcontext(), _TypedDevices() if types else _Devices():
            yield
    finally:
        if _undo is not None:  # else Python ends inside, and has taken this module's names away
            _end()


def _end() -> None:
    global _depth
    with _lock:
        _depth -= 1
        if not _depth:
            while _undo:
                _undo.pop()()


def _begin() -> None:
    # Triton's NVIDIA driver asks torch.cuda whether it is the one: Triton chooses before that answers.
    import_module("triton.runtime.driver").driver.active  # noqa: B018
    saving: Any = torch.serialization
    scripts: Any = torch.jit._serialization
    chosen = scripts.validate_map_location
    made: list[tuple[Any, str, Any]] = takers()
    made += everywhere(answers(getattr(torch, NAME)) | TYPED)
    others = [one.driver for name, one in import_module("triton.backends").backends.items() if name != NAME]
    made += [(driver, "is_active", staticmethod(lambda: False)) for driver in others if driver is not None]
    made += [
        (torch.version, "cuda", torch.version.cuda or _VERSION),
        *((kind, "is_cuda", property(_is_cuda)) for kind in (torch.Tensor, torch.UntypedStorage, torch.TypedStorage)),
        (torch.autograd, "has_torch_function", _is_overridden),
        (saving, "_package_registry", [(0, lambda _: None, _restored), *saving._package_registry]),
        (saving, "_get_restore_location", _restoring(saving._get_restore_location)),
        (threading.Thread, "start", _start(threading.Thread.start)),
        (torch.library.Library, "impl", _implementing(torch.library.Library.impl)),
        (torch.library.Library, "_register_fake", _faking(torch.library.Library._register_fake)),
        (scripts, "validate_map_location", lambda place=None: chosen(renamed(place))),
        (_C._autograd, _HOOKS, _saving(getattr(_C._autograd, _HOOKS))),
        (random_state, "CPU_DRAWS", False),
        (_C, "__getattr__", _missing),
        (_C, "_CUDAGraph", GRAPHS["CUDAGraph"]),
        (_C, "_cuda_getCurrentRawStream", lambda device: 0),
        (_C, "_cuda_cudaCachingAllocator_is_enabled", lambda: True),
    ]
    _take_name(True)
    _undo.append(functools.partial(_take_name, False))
    library = torch.library.Library("aten", "IMPL", "CUDA")
    _undo.append(library._destroy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a torch with CUDA has kernels of its own there
        for name in _FACTORIES:
            overload, _, which = name.partition(".")
            library.impl(name, _make(getattr(getattr(torch.ops.aten, overload), which or "default")))
    for owner, name, value in made:
        patch = mock.patch.object(owner, name, value, create=True)
        patch.start()
        _undo.append(patch.stop)
