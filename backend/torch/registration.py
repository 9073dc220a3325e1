"""The torch device ``spirv``: tensors whose storage is memory of a Vulkan device, passed to kernels by address.

It is torch's device for backends outside its tree (PrivateUse1), registered from Python. Allocation, views, copies and
fills are done by device/tensor_memory.py. Operations that are compiled are those of ops/. All others run on the CPU, on
copies of their arguments (device/cpu_fallback.py): ``FALLBACKS`` counts those by name, and the logger of this module
tells each at debug level.

torch's own kernels for metadata (views) need no memory and serve as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import RLock
from typing import Any

import torch

from .. import runtime
from ..autoload.compiler_hook import teach_compiler
from ..autoload.private_use import claim
from ..autoload.versions import OLDEST_TORCH, is_too_old
from ..runtime import NAME
from . import ops
from .device import tensor_memory
from .device.autocast import enter_autocast
from .device.autograd_engine import guard_without_python, run_backward_in_this_thread
from .device.cpu_fallback import FALLBACKS, fallback
from .device.data_parallel import on_one_device
from .device.dlpack import teach_dlpack
from .device.native_module import torch_native
from .device.nested_attention import teach_nested_attention
from .device.pinned_tensors import empty_pinned, is_pinned, pins
from .device.process_groups import enter_collectives
from .device.random_state import GENERATOR
from .device.spirv_module import MODULE, DeviceModule
from .device.storages import restore, teach_storages
from .device.substitutes import SUBSTITUTES
from .device.tensor_memory import metadata
from .device.torch_refusals import refuse_layouts

__all__ = ["FALLBACKS", "NAME", "fallback", "is_registered", "register"]

_KEY = "PrivateUse1"
_aten = torch.ops.aten

#: Operations that only change metadata: native kernels (native/torch/torch_views.cpp), the CPU's where torch has no
#: C interface for them.
_VIEWS = ("as_strided", "view", "_reshape_alias", "_unsafe_view")
#: Others: the CPU's kernel serves.
_METADATA = (
    "unfold",
    "view.dtype",
    "set_.source_Storage_storage_offset",
    "set_.source_Storage",
    "set_.source_Tensor",
    "view_as_real",
    "view_as_complex",
)


def _record_stream(self: torch.Tensor, stream: Any) -> None:
    """Memory that was freed is only used by work that is submitted later."""


def _elsewhere(op: Any, *args: Any) -> Any:
    """torch's own kernel of an operation on CPU tensors, as with every other key."""
    return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), *args)


def _pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """aten::_pin_memory of CPU tensors: a copy in pinned memory, where the current device can use that. torch asks the
    device from outside first, and for an allocator that only C++ can give; CUDA's where CUDA is named."""
    if device is not None and device.type != NAME:
        return _elsewhere(_aten._pin_memory.default, self, device)
    bytes_ = tensor_memory.window(self)[1] if tensor_memory.is_dense(self) else self.numel() * self.element_size()
    if not bytes_ or not pins(runtime.current()):
        return self.clone()
    stride = self.stride() if tensor_memory.is_dense(self) else tensor_memory.dense_strides(self.size())
    return empty_pinned(self.size(), stride, self.dtype, bytes_).copy_(self)


def _is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    """aten::is_pinned of CPU tensors."""
    return is_pinned(self) or bool(_elsewhere(_aten.is_pinned.default, self, device))


#: The libraries that registering has made: without them it did not end.
_registered: list[Any] = []
#: Held by the thread that registers; other threads that make a tensor meanwhile wait for it.
_registering = RLock()


def _operation(name: str) -> torch._ops.OpOverload | None:
    """aten::``name``; None where this torch has no such operation."""
    base, _, overload = name.partition(".")
    packet = getattr(_aten, base, None)
    has = packet is not None and (overload or "default") in packet.overloads()
    return getattr(packet, overload or "default") if has else None


def is_registered() -> bool:
    """Whether operations on the device have their kernels."""
    return bool(_registered)


def module() -> DeviceModule:
    """What ``torch.spirv`` is once the device is registered."""
    return MODULE


def register() -> None:
    """Make the device known to torch. A second call does nothing. Raises RuntimeError if another backend took the
    place of torch's one device from outside (PrivateUse1), and where torch is too old."""
    if _registered:
        return
    if is_too_old(torch.__version__):
        raise RuntimeError(
            f"torch {torch.__version__} is too old for the device '{NAME}', which needs {OLDEST_TORCH} or newer: "
            "install that, or use CPU tensors or triton.backends.spirv.runtime's buffers"
        )
    with _registering:
        if getattr(torch, NAME, None) is not MODULE:  # else another thread has done it, or this one is at it
            _register()


def _received(location: str, storage: Any) -> Any:
    """A storage that another process sent. A loader may not have used the device before."""
    register()
    return restore(storage, location)


def compile_internals() -> Any:
    """What teaches torch's compiler: it imports torch's compiler."""
    from .compile.internals import hooks

    return hooks


def _register() -> None:
    from .ops.prepared import enter

    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise RuntimeError(
            f"torch's place for an out-of-tree device is taken by '{taken}': this process can use "
            "Vulkan memory through triton.backends.spirv.runtime's buffers, not as torch tensors"
        )
    GENERATOR.reseed(torch.initial_seed())  # it was made when its module was imported, which may have been long ago
    MODULE.__dict__["_lazy_init"] = register  # threads that make their first tensor now wait for the end
    if hasattr(torch, NAME):  # autoload/ has taken it
        setattr(torch, NAME, MODULE)
        sys.modules[f"torch.{NAME}"] = MODULE  # type: ignore[assignment]
    else:
        claim(MODULE)
    aten = torch.library.Library("aten", "IMPL")
    entered = torch_native().enter_torch_views()
    for name in _METADATA if entered else (*_VIEWS, *_METADATA):
        op = _operation(name)
        if op is not None:
            aten.impl(name, metadata(op), _KEY)
    few = tensor_memory.few_elements()
    # Copies finish pending conjugations and negations themselves; torch would ask for a copy in order to do so.
    for key in ("Conjugate", "Negative"):
        aten.impl("_copy_from", torch.library.fallthrough_kernel, key)
    for name, function in _IMPLEMENTED.items():
        op = _operation(name)
        if op is not None:
            enter(aten, op, function, few=few if name == "_copy_from" else None)
    aten.impl("_local_scalar_dense", few.item, _KEY)
    aten.impl("_pin_memory", _pin_memory, "CPU")
    aten.impl("is_pinned", _is_pinned, "CPU")
    rest = torch.library.Library("_", "IMPL")  # that of this device: autoload/first_use.py
    refuse_layouts(rest, aten)
    teach_nested_attention()
    teach_storages(_received)
    on_one_device()
    teach_dlpack()
    run_backward_in_this_thread()
    guard_without_python()
    libraries = aten, rest, *enter_autocast(), *enter_collectives()
    ops.register()
    teach_compiler(compile_internals)  # torch's entry point may not have been called
    _registered.extend(libraries)


_IMPLEMENTED: dict[str, Callable[..., Any]] = {
    "empty.memory_format": tensor_memory.empty,
    "empty_strided": tensor_memory.empty_strided,
    "resize_": tensor_memory.resize,
    "_copy_from": tensor_memory.copy_from,
    "_copy_from_and_resize": tensor_memory.copy_from_and_resize,
    "fill_.Scalar": tensor_memory.fill,
    "zero_": tensor_memory.zero,
    "record_stream": _record_stream,
    **SUBSTITUTES,
}
