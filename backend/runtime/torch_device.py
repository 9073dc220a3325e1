"""The torch device ``spirv``: tensors whose storage is memory of a Vulkan device, passed to kernels by address.

It is torch's device for backends outside its tree (PrivateUse1), registered from Python. Allocation, views, copies and
fills are done here. Every other operation runs on the CPU, on copies of its arguments: ``FALLBACKS`` counts those
by name, and the logger of this module tells each at debug level.

torch's own kernels for metadata (views) need no memory and serve as they are.
"""
from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_map

from . import context as vulkan_context
from .context import NAME, Context, native
from .interface import DeviceInterface, device_index

#: Operations that ran on the CPU, with copies both ways, by name.
FALLBACKS: Counter[str] = Counter()

_log = logging.getLogger(__name__)
_KEY = "PrivateUse1"
#: DLPack's code of an element type. What is not here is made as bytes and retyped.
_DLPACK_CODES = {
    torch.int8: 0, torch.int16: 0, torch.int32: 0, torch.int64: 0, torch.uint8: 1, torch.uint16: 1, torch.uint32: 1,
    torch.uint64: 1, torch.float16: 2, torch.float32: 2, torch.float64: 2, torch.bfloat16: 4, torch.complex64: 5,
    torch.complex128: 5, torch.bool: 6,
}
_aten = torch.ops.aten
_PACKAGE_PRIORITY = 15  # before torch's own for devices from outside, which knows no storage here

#: Operations that write all of their first argument and read none of it.
_OVERWRITING = frozenset(("aten::uniform_", "aten::normal_", "aten::random_", "aten::random_.from",
                          "aten::random_.to", "aten::exponential_", "aten::bernoulli_.float", "aten::arange.start_out",
                          "aten::eye.m_out", "aten::linspace.out", "aten::randperm.generator_out"))

#: Operations that only change metadata: the CPU's kernel serves.
_METADATA = ("as_strided", "view", "_reshape_alias", "unfold", "view.dtype", "set_.source_Storage_storage_offset",
             "set_.source_Storage", "set_.source_Tensor", "_unsafe_view", "alias", "view_as_real", "view_as_complex")


class _Module(DeviceInterface):
    """``torch.spirv``."""

    def is_available(self) -> bool:
        """Whether the device is there: it was registered because it is."""
        return True

    def is_initialized(self) -> bool:
        """There is nothing to initialise."""
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Random numbers come from the CPU's generator, which torch seeds itself."""

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """The CPU generator's, which makes the random numbers."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        """Set the CPU generator's."""
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """What autocast may use."""
        return [torch.float16, torch.bfloat16]

    def memory_allocated(self, device: Any = None) -> int:
        """Bytes in use by tensors."""
        return vulkan_context.of_device(device_index(device)).memory.allocated

    def memory_reserved(self, device: Any = None) -> int:
        """Bytes taken from the device."""
        return vulkan_context.of_device(device_index(device)).memory.reserved

    def empty_cache(self) -> None:
        """Give memory that no tensor uses back to the device."""
        for context in vulkan_context.opened():
            context.memory.release_idle()

    def get_device_name(self, device: Any = None) -> str:
        """The device's name."""
        return vulkan_context.devices()[device_index(device)].name


def _context_of(tensor: torch.Tensor) -> Context:
    return vulkan_context.of_device(device_index(tensor.device))


# ---- Storage ---------------------------------------------------------------------------------------------------------

def _new(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: Any) -> torch.Tensor:
    """A tensor over new device memory; its dtype is one of _DLPACK_CODES."""
    index = device_index(device)
    bytes_ = _extent(size, stride) * dtype.itemsize
    memory = vulkan_context.of_device(index).memory.allocate(bytes_)
    return torch._C._from_dlpack(native().dlpack_capsule(memory, memory.address if bytes_ else 0, size, stride, index,
                                                         _DLPACK_CODES[dtype], 8 * dtype.itemsize))


def _new_bytes(bytes_: int, device: Any) -> torch.Tensor:
    return _new((bytes_, ), (1, ), torch.uint8, device)


def _retyped(base: torch.Tensor, dtype: torch.dtype, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """A tensor over the storage of ``base``, from its start."""
    shell = _metadata(_aten.view.dtype)(base[:0], dtype)
    result: torch.Tensor = _metadata(_aten.set_.source_Storage_storage_offset)(shell, base.untyped_storage(), 0, size,
                                                                             stride)
    return result


def _extent(size: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to one past the last."""
    if 0 in size:
        return 0
    return 1 + sum((count - 1) * step for count, step in zip(size, stride, strict=True))


def _dense_strides(size: Sequence[int], memory_format: Any = None) -> list[int]:
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        strides = [1]
        for count in reversed(size[1:]):
            strides.append(strides[-1] * max(count, 1))
        return strides[::-1][:len(size)] if size else []
    return list(torch.empty(size, device="meta", memory_format=memory_format).stride())


def _empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: Any = None, layout: Any = None,
                   device: Any = None, pin_memory: Any = None) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    if pin_memory:
        raise ValueError(f"a tensor on '{NAME}' cannot be pinned: it is not in host memory")
    if dtype in _DLPACK_CODES:
        return _new(size, stride, dtype, device)
    return _retyped(_new_bytes(_extent(size, stride) * dtype.itemsize, device), dtype, size, stride)


def _empty(size: Sequence[int], *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
           memory_format: Any = None) -> torch.Tensor:
    return _empty_strided(size, _dense_strides(size, memory_format), dtype=dtype, layout=layout, device=device,
                          pin_memory=pin_memory)


def _resize(self: torch.Tensor, size: Sequence[int], *, memory_format: Any = None) -> torch.Tensor:
    stride = _dense_strides(size, memory_format)
    needed = (self.storage_offset() + _extent(size, stride)) * self.element_size()
    storage, offset = self.untyped_storage(), self.storage_offset()
    if needed > storage.nbytes():
        fresh = _new_bytes(int(needed), self.device)
        kept = storage.nbytes()
        if kept:
            _context_of(self).native.copy(fresh.data_ptr(), storage.data_ptr(), kept)
        storage = fresh.untyped_storage()
    _metadata(_aten.set_.source_Storage_storage_offset)(self, storage, offset, size, stride)
    return self


@cache
def _metadata(op: Any) -> Callable[..., Any]:
    """The CPU's kernel of an operation that touches no memory."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    def run(*args: Any, **kwargs: Any) -> Any:
        return op.redispatch(keys, *args, **kwargs)

    return run


# ---- Copies ----------------------------------------------------------------------------------------------------------

def _window(tensor: torch.Tensor) -> tuple[int, int]:
    """(device address, bytes) of the memory from the tensor's first to its last element."""
    return tensor.data_ptr(), _extent(tensor.size(), tensor.stride()) * tensor.element_size()


def _host_copy(tensor: torch.Tensor, read: bool = True) -> torch.Tensor:
    """A CPU tensor of the same sizes and strides, with the same values if ``read``."""
    address, bytes_ = _window(tensor)
    host = torch.empty(bytes_, dtype=torch.uint8)
    if bytes_ and read:
        _context_of(tensor).native.download(host.data_ptr(), address, bytes_)
    result = torch.empty(0, dtype=tensor.dtype)
    return result.set_(host.untyped_storage(), 0, tensor.size(), tensor.stride())


def _write_back(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """The inverse of ``_host_copy``."""
    address, bytes_ = _window(tensor)
    if bytes_:
        _context_of(tensor).native.upload(address, host.untyped_storage().data_ptr(), bytes_)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill the memory between the first and the last."""
    return _extent(tensor.size(), tensor.stride()) == tensor.numel()


def _same_layout(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.size() == other.size() and one.stride() == other.stride() and one.dtype == other.dtype and _is_dense(one)


def _is_ours(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copies ``self`` to ``dst``, as copy_() asks for it."""
    if dst.numel() == 0:
        return dst
    if not _is_ours(dst):
        dst.copy_(_finished(self))
        return dst
    if _is_ours(self):
        if self.device == dst.device and _same_layout(self, dst) and not self.is_conj() and not self.is_neg():
            (source, bytes_), (target, _) = _window(self), _window(dst)
            if source == target:
                return dst
            if max(source, target) - min(source, target) >= bytes_:
                _context_of(dst).native.copy(target, source, bytes_)
                return dst
        self = _finished(self)
    if _same_layout(self, dst) and self.device.type == "cpu" and not self.is_conj() and not self.is_neg():
        address, bytes_ = _window(dst)
        _context_of(dst).native.upload(address, self.data_ptr(), bytes_)
        return dst
    host = _host_copy(dst, read=not _is_dense(dst))
    host.copy_(self)
    _write_back(dst, host)
    return dst


def _finished(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values on the CPU, with pending conjugation and negation done."""
    if not _is_ours(tensor):
        return tensor
    host = _host_copy(tensor)
    if tensor.is_conj():
        host = host.conj()
    return torch._neg_view(host) if tensor.is_neg() else host


def _copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    if dst.size() != self.size():
        dst.resize_(self.size())
    return _copy_from(self, dst)


def _local_scalar(self: torch.Tensor) -> Any:
    return _host_copy(self).item()


def _fill(self: torch.Tensor, value: Any) -> torch.Tensor:
    if self.numel() == 0:
        return self
    address, bytes_ = _window(self)
    one = bytes(torch.full((1, ), value, dtype=self.dtype).view(torch.uint8).tolist())
    word = (one * 4)[:4]
    if _is_dense(self) and address % 4 == 0 and bytes_ % 4 == 0 and word * max(1, len(one) // 4) == (one * 4)[:max(
            4, len(one))]:
        _context_of(self).native.fill(address, bytes_, int.from_bytes(word, "little"))
        return self
    host = _host_copy(self, read=not _is_dense(self))
    _write_back(self, host.fill_(value))
    return self


def _zero(self: torch.Tensor) -> torch.Tensor:
    return _fill(self, 0)


def _record_stream(self: torch.Tensor, stream: Any) -> None:
    """Memory that was freed is only used by work that is submitted later."""


# ---- Everything else, on the CPU -------------------------------------------------------------------------------------

def _fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs ``op`` on CPU copies of its arguments and brings back what it made and what it wrote."""
    schema = op._schema
    FALLBACKS[schema.name + ("." + schema.overload_name if schema.overload_name else "")] += 1
    _log.debug("%s runs on the CPU", op)
    overwrites = op.name() in _OVERWRITING
    hosts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    written: set[int] = set()
    device: torch.device | None = None
    placed: torch.Tensor | None = None

    def to_host(value: Any, reads: bool = True) -> Any:
        nonlocal device, placed
        if isinstance(value, torch.device) and value.type == NAME:
            device = value
            return torch.device("cpu")
        if not _is_ours(value):
            return value
        if placed is not None and value.device != placed.device:
            raise RuntimeError(f"{schema.name}: all tensors have to be on one device, but there are {placed.device} "
                               f"and {value.device}: move one with .to()")
        placed, device = value, value.device
        if id(value) not in hosts:
            hosts[id(value)] = value, _host_copy(value, reads or not _is_dense(value))
        return hosts[id(value)][1]

    def convert(argument: Any, value: Any) -> Any:
        writes = argument is not None and argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            tree_map(lambda leaf: written.add(id(leaf)) if _is_ours(leaf) else None, value)
        return tree_map(lambda leaf: to_host(leaf, not (writes and overwrites)), value)

    named = {argument.name: argument for argument in schema.arguments}
    host_args = [convert(argument, value) for argument, value in zip(schema.arguments, args, strict=False)]
    host_kwargs = {name: convert(named.get(name), value) for name, value in kwargs.items()}
    result = op(*host_args, **host_kwargs)

    originals = {}
    for key, (tensor, host) in hosts.items():
        if key not in written:
            continue
        if host.size() != tensor.size() or host.stride() != tensor.stride():
            tensor.resize_(host.size())
            tensor.copy_(host)
        else:
            _write_back(tensor, host)
        originals[id(host)] = tensor

    def to_device(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        original = originals.get(id(value))
        return value.to(device) if original is None else original

    return result if device is None else tree_map(to_device, result)


def _location(storage: Any) -> str | None:
    """Where torch.save() says that a storage was; None for other devices'."""
    return str(storage.device) if storage.device.type == NAME else None


def _restore(storage: Any, location: str) -> Any:
    """The storage, loaded on the CPU, on the device that torch.load() wants it on; None for other devices."""
    if location.partition(":")[0] != NAME:
        return None
    loaded = _new_bytes(int(storage.nbytes()), location)
    if storage.nbytes():
        _context_of(loaded).native.upload(loaded.data_ptr(), storage.data_ptr(), storage.nbytes())
    return loaded.untyped_storage()


def _clones_here(clone: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``UntypedStorage.clone`` that knows this device: torch looks for an allocator written in C++ and ends the process
    where there is none."""

    def clone_storage(self: Any) -> Any:
        if self.device.type != NAME:
            return clone(self)
        copied = _new_bytes(self.nbytes(), self.device)
        if self.nbytes():
            _context_of(copied).native.copy(copied.data_ptr(), self.data_ptr(), self.nbytes())
        return copied.untyped_storage()

    return clone_storage


_registered: list[Any] = []


def register() -> None:
    """Make the device known to torch. A second call does nothing. Raises RuntimeError where another backend took the
    place of torch's one device from outside (PrivateUse1)."""
    if _registered:
        return
    from torch.utils import backend_registration
    taken = torch._C._get_privateuse1_backend_name()
    if taken not in ("privateuseone", NAME):
        raise RuntimeError(f"torch's place for a device from outside is taken by '{taken}': this process can use "
                           "Vulkan memory through triton.backends.spirv.runtime's buffers, not as torch tensors")
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    aten = torch.library.Library("aten", "IMPL")
    for name in _METADATA:
        base, _, overload = name.partition(".")
        packet = getattr(_aten, base, None)
        if packet is not None and (overload or "default") in packet.overloads():
            aten.impl(name, _metadata(getattr(packet, overload or "default")), _KEY)
    for name, function in _IMPLEMENTED.items():
        aten.impl(name, function, _KEY)
    # Copies finish pending conjugations and negations themselves; torch would ask for a copy in order to do so.
    for key in ("Conjugate", "Negative"):
        aten.impl("_copy_from", torch.library.fallthrough_kernel, key)
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(_fallback, _KEY)
    storage_class: Any = torch.UntypedStorage
    storage_class.clone = _clones_here(storage_class.clone)
    torch.serialization.register_package(_PACKAGE_PRIORITY, _location, _restore)
    _registered.extend((aten, rest))


_IMPLEMENTED: dict[str, Callable[..., Any]] = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "resize_": _resize,
    "_copy_from": _copy_from,
    "_copy_from_and_resize": _copy_from_and_resize,
    "_local_scalar_dense": _local_scalar,
    "fill_.Scalar": _fill,
    "zero_": _zero,
    "record_stream": _record_stream,
}
