"""What answers for CUDA in ``torch.spirv.as_cuda()``: a row for each name, and what each name of a device becomes."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import torch

from ...runtime import NAME, device_index
from .cuda_graphs import CUDAGraph, graph, graph_pool_handle, make_graphed_callables
from .random_state import GENERATOR, CudaGenerator, default_generator

_Generator = torch.Generator
#: What libraries take as a GPU that has bfloat16 and copies in the background, and no instructions of Hopper's.
CAPABILITY = (8, 0)

#: Functions and methods of torch that are given a device, or the type of one, and ask no mode of torch's about it:
#: (module, dotted name there). Names that a version of torch lacks are left out.
TAKE_DEVICES = (
    ("torch", "set_default_device"),
    ("torch", "set_autocast_dtype"),
    ("torch._C", "_is_autocast_available"),
    ("torch.amp.autocast_mode", "autocast.__init__"),
    ("torch.amp.autocast_mode", "_cast"),
    ("torch.amp.grad_scaler", "GradScaler.__init__"),
    ("torch.autograd.profiler", "profile.__init__"),
    ("torch", "UntypedStorage.__new__"),
    ("torch.accelerator", "_get_device_index"),
    ("torch.accelerator.memory", "_get_device_index"),
)

#: Functions of torch that are of CUDA where they are given no device: name → what takes its place, and of how many
#: arguments that is with one.
_OF_CUDA = {
    "is_autocast_enabled": ("is_autocast_enabled", 1),
    "set_autocast_enabled": ("set_autocast_enabled", 2),
    "get_autocast_dtype": ("get_autocast_dtype", 1),
    "get_autocast_gpu_dtype": ("get_autocast_dtype", 1),
    "set_autocast_gpu_dtype": ("set_autocast_dtype", 2),
}

#: Functions of torch.cuda that have no meaning here, by the reason: they raise RuntimeError.
REFUSED: dict[str, str] = {
    "graphs of launches are recorded by triton.backends.spirv.runtime.Graph": """
        export_dot export_graph_data
    """,
    "memory comes from this device's own pool": """
        caching_allocator_alloc caching_allocator_delete caching_allocator_disabled caching_allocator_enable
        change_current_allocator host_memory_stats host_memory_stats_as_nested_dict
        reset_accumulated_host_memory_stats reset_peak_host_memory_stats
        use_mem_pool
    """,
    "Vulkan does not report it": """
        clock_rate device_memory_used list_gpu_processes memory_usage power_draw temperature utilization
    """,
    "there is no CUDA library to hand out": "check_error cudart current_blas_handle current_solver_handle",
}

#: Functions of torch.cuda that torch.spirv has under another name.
_SAME = {
    "memory_cached": "memory_reserved",
    "max_memory_cached": "max_memory_reserved",
    "reset_max_memory_allocated": "reset_peak_memory_stats",
    "reset_max_memory_cached": "reset_peak_memory_stats",
    "reset_accumulated_memory_stats": "reset_peak_memory_stats",
    "_CudaDeviceProperties": "_DeviceProperties",
    "_lazy_init": "init",
    "_is_in_bad_fork": "_is_in_bad_fork",
}

#: Functions that torch.cuda has and torch.spirv need not, by what they return.
CONSTANT: dict[str, Any] = {
    "get_arch_list": [],
    "get_gencode_flags": "",
    "get_sync_debug_mode": 0,
    "set_sync_debug_mode": None,
    "get_allocator_backend": "native",
    "is_tf32_supported": False,
    "ipc_collect": None,
}

#: Functions whose results stay the same: the compiler calls them while it traces. Its own table of those has what their
#: names meant when it was imported.
_STAYING = frozenset(
    """
    can_device_access_peer device_count get_device_capability get_device_name get_device_properties is_available
    is_bf16_supported is_initialized
    """.split()
)

#: Names of torch.cuda and torch.cuda.graphs for graphs.
GRAPHS = {one.__name__: one for one in (CUDAGraph, graph, graph_pool_handle, make_graphed_callables)}


def renamed(value: Any) -> Any:
    """A device of CUDA as one of Vulkan: of its name, of an object; other values are returned as they are."""
    if isinstance(value, torch.device):
        return torch.device(NAME, value.index) if value.type == "cuda" else value
    if isinstance(value, str):
        name, colon, index = value.partition(":")
        return NAME + colon + index if name == "cuda" else value
    return value


def _of_groups(value: Any) -> Any:
    """What renamed() gives, or a group's backends, of all devices or by kinds: gloo moves the tensors of this one."""
    if not isinstance(value, str):
        return renamed(value)
    parts = [part.rpartition(":") for part in value.split(",")]
    return ",".join(renamed(kind) + colon + ("gloo" if way == "nccl" else renamed(way)) for kind, colon, way in parts)


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    """torch.distributed.init_process_group(), which names gloo where a program leaves the choice to torch."""

    @functools.wraps(function)
    def join(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        return renaming(function)(_of_groups(backend or "gloo"), *args, **kwargs)

    return join


def renaming(function: Callable[..., Any], how: Callable[[Any], Any] = renamed) -> Callable[..., Any]:
    """``function``, whose arguments may name CUDA devices."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(how, args), **{name: how(value) for name, value in kwargs.items()})

    call.__qualname__ = call.__name__  # a function of a module, of which torch.spirv has a method
    return call


def _of_cuda(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """``function``, whose first of so many arguments is CUDA where it is left out."""

    named = renaming(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return named(*(args if len(args) + len(kwargs) >= count else (NAME, *args)), **kwargs)

    # Dynamo's table of functions that are constants has what their names meant when it was imported.
    call._dynamo_marked_constant = not function.__name__.startswith("set_")  # type: ignore[attr-defined]
    return call


def _default_tensor_type(own: Callable[..., None]) -> Callable[..., None]:
    """torch.set_default_tensor_type(), which old programs tell ``torch.cuda.HalfTensor``: a default device, too, until
    it is told another."""
    chosen = False

    def choose(kind: Any) -> None:
        nonlocal chosen
        elements = of_elements(kind)
        if elements is None:
            own(kind)
        else:
            torch.set_default_dtype(elements)
        if chosen or elements is not None:
            torch.set_default_device(None if elements is None else NAME)
        chosen = elements is not None

    return choose


def _renaming_class(kind: Any, make: Callable[..., Any] | None = None) -> Any:
    """A class whose constructor's arguments may name CUDA devices. It makes objects of ``kind``, by ``make`` if that is
    given, and they are its own."""
    construct = make or renaming(kind)

    class NamedClass(type(kind)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return construct(*args, **kwargs) if cls is made else renaming(super().__call__)(*args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, kind) if cls is made else super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, kind) if cls is made else super().__subclasscheck__(subclass)

    made: Any = NamedClass(kind.__name__, (kind,), {"__doc__": kind.__doc__, "__module__": kind.__module__})
    return made


def _generator(device: Any = "cpu", **kwargs: Any) -> Any:
    """torch.Generator(), which makes a CudaGenerator where a call names CUDA."""
    place = renamed(device)
    return _Generator(device, **kwargs) if place is device else CudaGenerator(place)


def under_cuda(value: Any) -> Any:
    """What ``torch.spirv`` or torch has under a name, as code that says "cuda" calls it."""
    if isinstance(value, type):
        return _renaming_class(value)
    return renaming(value) if callable(value) else value


def _refusing(name: str, reason: str) -> Callable[..., Any]:
    """What raises in place of a function, and is wrapped around it: Dynamo takes some of these apart when it is
    imported."""

    @functools.wraps(getattr(torch.cuda, name, _constant(None)))
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"torch.cuda.{name}() on device '{NAME}': {reason}")

    return refuse


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def answers(module: Any) -> dict[str, Any]:
    """Names of torch.cuda → what answers. ``module``: torch.spirv."""
    private: Any = torch._C
    devices = range(module.device_count())
    names = [name for name in dir(torch.cuda) if not name.startswith("_") and hasattr(module, name)]
    own = {name: getattr(module, name) for name in names if not isinstance(getattr(torch.cuda, name), ModuleType)}
    same = {name: getattr(module, other) for name, other in _SAME.items()}
    found = {name: under_cuda(value) for name, value in (own | same).items()}
    for name in _STAYING:
        found[name]._dynamo_marked_constant = True
    found |= {name: _constant(value) for name, value in CONSTANT.items()}
    found |= {name: _refusing(name, reason) for reason, names in REFUSED.items() for name in names.split()}
    return found | {
        **GRAPHS,
        "_initialized": True,
        "memory_stats_as_nested_dict": lambda device=None: _nested(module.memory_stats(renamed(device))),
        "StreamContext": module.stream,
        "_exchange_device": private._accelerator_exchangeDevice,
        "_maybe_exchange_device": private._accelerator_maybeExchangeDevice,
        "_get_device_index": lambda device, optional=False, allow_cpu=False: device_index(renamed(device)),
        "get_stream_from_external": found["ExternalStream"],
        "default_generators": tuple(default_generator(torch.device(NAME, at), CudaGenerator) for at in devices),
        # As with CUDA, the generator of the CPU stays as it is.
        **dict.fromkeys(("manual_seed", "manual_seed_all"), lambda seed: GENERATOR.reseed(int(seed))),
        **dict.fromkeys(("seed", "seed_all"), lambda: GENERATOR.reseed(_Generator().seed())),
        "get_rng_state": lambda device=NAME: GENERATOR.words(),
        "set_rng_state": lambda new_state, device=NAME: GENERATOR.set_words(new_state),
        "get_rng_state_all": lambda: [GENERATOR.words() for _ in devices],
        "set_rng_state_all": lambda new_states: GENERATOR.set_words(new_states[0]),
    }


def everywhere(found: dict[str, Any]) -> list[tuple[Any, str, Any]]:
    """(owner, name, what answers) for torch.cuda, its parts, and what the compiler kept of it when it was imported."""
    made: list[tuple[Any, str, Any]] = [(torch.cuda, name, value) for name, value in found.items()]
    parts = [part for path, part in sys.modules.items() if path.startswith("torch.cuda.")]
    for part, name in itertools.product(parts, found.keys() & vars(torch.cuda).keys()):
        if vars(part).get(name, made) is vars(torch.cuda)[name]:
            made.append((part, name, found[name]))
    kept = getattr(sys.modules.get("torch._dynamo.device_interface"), "CudaInterface", type)
    return made + [(kept, name, staticmethod(found[name])) for name in found.keys() & vars(kept).keys()]


def _nested(figures: Any) -> dict[str, Any]:
    """``{"a.b": 1}`` as ``{"a": {"b": 1}}``."""
    made: dict[str, Any] = {}
    for name, value in figures.items():
        *path, last = name.split(".")
        functools.reduce(lambda at, key: at.setdefault(key, {}), path, made)[last] = value
    return made


class _Ranges:
    """What torch.cuda.nvtx calls to name ranges of time for NVIDIA's profilers: they see none of this device's."""

    def __getattr__(self, _: str) -> Callable[..., int]:
        return _constant(0)


class _Typed(type):
    """``torch.cuda.FloatTensor`` and its like, of types of elements, which torch keeps for old programs."""

    dtype: torch.dtype

    def __call__(cls, *args: Any) -> torch.Tensor:
        made: torch.Tensor = getattr(torch, cls.__name__)(*args)
        return made.to(NAME)

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, torch.Tensor) and one.device.type == NAME and one.dtype == of_elements(cls)


TYPED = {
    f"{kind}Tensor": _Typed(f"{kind}Tensor", (), {"dtype": getattr(torch, f"{kind}Tensor").dtype})
    for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
}


def of_elements(kind: Any) -> torch.dtype | None:
    """The type of elements of one of TYPED, or of its name; None for all others."""
    named = TYPED.get(kind[11:]) if isinstance(kind, str) and kind.startswith("torch.cuda.") else kind
    return named.dtype if isinstance(named, _Typed) else None


#: Functions of torch.distributed that are given a group's backends, and what takes their places.
_OF_GROUPS: dict[str, Callable[..., Any]] = {
    "init_process_group": _joining,
    "new_group": functools.partial(renaming, how=_of_groups),
}


def takers() -> list[tuple[Any, str, Any]]:
    """(owner, name, what takes its place) of TAKE_DEVICES."""
    found: list[tuple[Any, str, Any]] = []
    for module, dotted in TAKE_DEVICES:
        owner, _, name = dotted.rpartition(".")
        place = functools.reduce(getattr, [*module.split(".")[1:], *([owner] if owner else [])], torch)
        if hasattr(place, name):
            found.append((place, name, renaming(getattr(place, name))))
    parallel = import_module("torch.nn.parallel.data_parallel")
    found += [(torch, name, _of_cuda(getattr(torch, of), count)) for name, (of, count) in _OF_CUDA.items()]
    found += [
        (torch, "set_default_tensor_type", _default_tensor_type(torch.set_default_tensor_type)),
        (torch.cuda.nvtx, "_nvtx", _Ranges()),
        *((torch.cuda.profiler, name, _constant(None)) for name in ("start", "stop")),
        *((one, "_get_available_device_type", _constant(NAME)) for one in (torch._utils, parallel)),
    ]
    places: list[Any] = [torch.distributed, sys.modules.get("torch.distributed.distributed_c10d")]
    for name, wrap in _OF_GROUPS.items():
        found += [(place, name, wrap(getattr(place, name))) for place in places if hasattr(place, name)]
    if (mesh := sys.modules.get("torch.distributed.device_mesh")) is not None:
        found.append((mesh.DeviceMesh, "__init__", renaming(mesh.DeviceMesh.__init__)))
    found += [(torch, name, _renaming_class(getattr(torch, name))) for name in ("Stream", "Event")]
    return [*found, (torch, "Generator", _renaming_class(_Generator, _generator))]
