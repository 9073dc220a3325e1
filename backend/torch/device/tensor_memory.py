"""Memory of torch tensors on the device ``spirv``: allocation, resizing, copies and fills."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import CodeType
from typing import Any, Protocol, TypeVar

import torch

from ... import runtime
from ...runtime import NAME, Context, OutOfDeviceMemory, device_index
from .native_module import torch_native
from .pinned_tensors import SMALLEST_COPY, copy_across, pinned_address

#: DLPack's code of an element type. What is not here is made as bytes and retyped.
DLPACK_CODES = {
    getattr(torch, name): code
    for code, names in {
        0: "int8 int16 int32 int64",
        1: "uint8 uint16 uint32 uint64",
        2: "float16 float32 float64",
        4: "bfloat16",
        5: "complex64 complex128",
        6: "bool",
    }.items()
    for name in names.split()
}
#: Fewer bytes go from one device to another through memory that is not pinned.
_ACROSS = 1 << 20
_CPU = torch.device("cpu")
_LARGEST = 2**63 - 1  # bytes and elements, which torch counts in 64 bits
_aten = torch.ops.aten
_Function = TypeVar("_Function", bound=Callable[..., Any])
#: What kernels do where memory is not moved as it is, entered from outside this package: "copy" (from one tensor of a
#: device to another) and "fill" (of a tensor with a number). Each returns whether it did it.
KERNELS: dict[str, Callable[[torch.Tensor, Any], bool]] = {}
#: Called with the device's index before memory is copied to the host: what kernels have noted is raised there.
BEFORE_READING: list[Callable[[int], None]] = []


class Watcher(Protocol):
    """Is told what is done to memory."""

    def allocated(self, tensor: torch.Tensor, bytes_: int) -> None:
        """A tensor over new memory."""

    def copied(self, to: int, from_: int, bytes_: int) -> None:
        """A copy between addresses of a device."""

    def filled(self, address: int, bytes_: int, word: int) -> None:
        """A word repeated."""


#: Told of all threads' work, in order.
WATCHERS: list[Watcher] = []
#: Held while memory is written, and from reading on where what lies between a view's elements is written with them, so
#: that threads can write views that interleave.
WRITING = threading.RLock()


#: Code that asks for addresses and storages of tensors, and whose answers follow from what tells prepared calls apart.
ANSWERED_BY_KEYS: set[CodeType] = set()


def answered_by_keys(function: _Function) -> _Function:
    """Enters a function there."""
    ANSWERED_BY_KEYS.add(function.__code__)
    return function


def context_of(tensor: torch.Tensor) -> Context:
    """The context of the tensor's device."""
    return runtime.of_device(tensor.get_device())


class OutOfMemory(OutOfDeviceMemory, torch.OutOfMemoryError):
    """torch's own error of this name, with what was asked for and how much there is."""

    def __init__(self, context: Context, error: OutOfDeviceMemory) -> None:
        free, total = context.device.memory()
        free = max(0, total - context.memory.pool.reserved) if free is None else free
        super().__init__(
            f"{NAME}:{context.index} is out of memory. {free} of its {total} bytes are free for this process; {error}"
        )


def allocate(context: Context, bytes_: int) -> Any:
    """context.memory.allocate(), which raises OutOfMemory."""
    try:
        return context.memory.allocate(bytes_)
    except OutOfDeviceMemory as error:
        raise OutOfMemory(context, error) from None


def with_room(context: Context, run: Callable[[], Any]) -> Any:
    """What ``run()`` gives, which writes to no argument. It runs again where torch may have had no memory, of which it
    says nothing but in words: with the pool's idle memory given back. What else is wrong is so again."""
    try:
        return run()
    except RuntimeError as error:
        pool = context.memory.pool
        if type(error) is not RuntimeError or pool.reserved == pool.allocated:
            raise
    context.memory.release_idle()
    return run()


def is_ours(value: Any) -> bool:
    """Whether it is a tensor on this device."""
    return isinstance(value, torch.Tensor) and value.device.type == NAME


@cache
def metadata(op: Any) -> Callable[..., Any]:
    """The CPU's kernel of an operation that touches no memory."""
    return partial(op._handle.redispatch_boxed, torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))


@cache
def tensor_forms() -> Any:
    """What reads sizes and strides of tensors, and makes new ones (a native TensorForms)."""
    return torch_native().TensorForms(
        exchange=torch.Tensor.__dlpack_c_exchange_api__, from_dlpack=torch._C._from_dlpack, allocate=allocate
    )


# ---- Storage ---------------------------------------------------------------------------------------------------------


def _new(size: Sequence[int], stride: Sequence[int] | None, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """A tensor over new device memory, contiguous without strides; its dtype is one of DLPACK_CODES."""
    index = device.index if type(device) is torch.device and device.index is not None else device_index(device)
    context = runtime.of_device(index)
    how = DLPACK_CODES[dtype], dtype.itemsize, index, context.memory.pool, context
    made: torch.Tensor | None = tensor_forms().new_tensor(size, stride, *how)
    if made is None:
        stride = dense_strides(size) if stride is None else stride
        _bytes(size, stride, dtype)  # raises RuntimeError, unless they are numbers of another class than int
        made = tensor_forms().new_tensor([*map(int, size)], [*map(int, stride)], *how)
    if WATCHERS:
        bytes_ = extent(made.shape, made.stride()) * dtype.itemsize
        for watcher in WATCHERS:
            watcher.allocated(made, bytes_)
    return made


def _bytes(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes from the first to one past the last element. What ends the process in torch's DLPack import is refused
    here: raises RuntimeError, as torch does for the CPU."""
    if size and (min(size) < 0 or min(stride) < 0):
        for count in size:
            if count < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension {count}: {list(size)}")
        raise RuntimeError(f"a tensor on '{NAME}' cannot have negative strides: {list(stride)}")
    bytes_ = extent(size, stride) * dtype.itemsize
    elements = math.prod(size) or math.prod(count for count in size if count)
    if bytes_ > _LARGEST or elements > _LARGEST:
        raise RuntimeError(
            f"a tensor of size {list(size)} with strides {list(stride)} is too large: its bytes cannot "
            "be counted in 64 bits"
        )
    return bytes_


def new_bytes(bytes_: int, device: Any) -> torch.Tensor:
    """A tensor of bytes over new device memory."""
    return _new((bytes_,), (1,), torch.uint8, device)


def staying_bytes(bytes_: int, device: Any) -> torch.Tensor:
    """new_bytes() in memory apart from that of tensors, of which nobody is told."""
    index = device_index(device)
    memory = runtime.of_device(index).staying_memory.allocate(bytes_)
    return torch._C._from_dlpack(
        torch_native().dlpack_capsule(memory, (bytes_,), (1,), index, DLPACK_CODES[torch.uint8], 8)
    )


def _retyped(base: torch.Tensor, dtype: torch.dtype, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """A tensor over the storage of ``base``, from its start."""
    shell = metadata(_aten.view.dtype)(base[:0], dtype)
    place: Callable[..., torch.Tensor] = metadata(_aten.set_.source_Storage_storage_offset)
    return place(shell, base.untyped_storage(), 0, size, stride)


def extent(size: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to one past the last."""
    if 0 in size:
        return 0
    last = 0
    for count, step in zip(size, stride, strict=True):
        last += (count - 1) * step
    return 1 + last


def dense_strides(size: Sequence[int], memory_format: Any = None) -> tuple[int, ...]:
    """Strides of new memory for a tensor of this size."""
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        strides = [1]
        for count in reversed(size[1:]):
            strides.append(strides[-1] * max(count, 1))
        return tuple(strides[::-1][: len(size)]) if size else ()
    return torch.empty(size, device="meta", memory_format=memory_format).stride()


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> torch.Tensor:
    """aten::empty_strided."""
    return _empty(size, stride, dtype, device, pin_memory)


def _empty(
    size: Sequence[int], stride: Sequence[int] | None, dtype: torch.dtype | None, device: Any, pin_memory: Any
) -> torch.Tensor:
    dtype = dtype or torch.get_default_dtype()
    if pin_memory:
        raise ValueError(f"a tensor on '{NAME}' cannot be pinned: it is not in host memory")
    if dtype in DLPACK_CODES:
        return _new(size, stride, dtype, device)
    stride = dense_strides(size) if stride is None else stride
    return _retyped(new_bytes(_bytes(size, stride, dtype), device), dtype, size, stride)


def empty(
    size: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> torch.Tensor:
    """aten::empty.memory_format."""
    is_dense = memory_format in (None, torch.contiguous_format, torch.preserve_format)
    return _empty(size, None if is_dense else dense_strides(size, memory_format), dtype, device, pin_memory)


def resize(self: torch.Tensor, size: Sequence[int], *, memory_format: Any = None) -> torch.Tensor:
    """aten::resize_. A tensor of that size stays as it is, unless there is a memory format. Past the end of its
    storage the tensor gets another: torch has no way to give a storage other memory. Raises RuntimeError if other
    tensors share the storage, which would stay behind."""
    if memory_format is None and self.size() == torch.Size(size):
        return self
    stride = dense_strides(size, memory_format)
    _bytes(size, stride, self.dtype)  # raises RuntimeError
    elements = extent(size, stride)
    needed = (self.storage_offset() + elements) * self.element_size() if elements else 0
    storage, offset = self.untyped_storage(), self.storage_offset()
    if needed > storage.nbytes():
        kept = storage.nbytes()
        if kept and torch._C._storage_Use_Count(storage._cdata) > 2:  # the tensor and `storage`
            raise RuntimeError(
                f"resize_() to {list(size)}: the tensor shares its memory of {kept} bytes with other "
                f"tensors, and memory on '{NAME}' cannot grow: make a new tensor, or clone() it first"
            )
        fresh = new_bytes(int(needed), self.device)
        if kept:
            context_of(self).native.copy(fresh.data_ptr(), storage.data_ptr(), kept)
        storage = fresh.untyped_storage()
    metadata(_aten.set_.source_Storage_storage_offset)(self, storage, offset, size, stride)
    return self


# ---- Copies ----------------------------------------------------------------------------------------------------------


@answered_by_keys
def window(tensor: torch.Tensor) -> tuple[int, int]:
    """(device address, bytes) of the memory from the tensor's first to its last element."""
    return tensor.data_ptr(), extent(tensor.size(), tensor.stride()) * tensor.element_size()


@answered_by_keys
def host_view(tensor: torch.Tensor, memory: torch.Tensor, start: int) -> torch.Tensor:
    """The tensor over ``memory``, bytes on the host that stand for the device's from address ``start`` on, which
    lies a multiple of the element size below the tensor. It has the tensor's pending conjugation and negation."""
    offset = (tensor.data_ptr() - start) // tensor.element_size() if tensor.numel() else 0
    result = torch.empty(0, dtype=tensor.dtype).set_(memory.untyped_storage(), offset, tensor.size(), tensor.stride())
    if tensor.is_conj():
        result = result.conj()
    return torch._neg_view(result) if tensor.is_neg() else result


def shares_host_memory(context: Context) -> bool:
    """Whether the device is the processor, which has tensors' memory in place."""
    return context.native.host_addresses and context.device.api == "CPU"


@answered_by_keys
def in_host_memory(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """CPU tensors on the memory of ``tensors``, which are of one device that shares_host_memory(). All work that was
    submitted is done, so that no kernel writes to it. Those with one storage have one storage."""
    before_reading(tensors[0])
    storages: dict[tuple[int, int], Any] = {}
    hosts = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        start, bytes_ = place = storage.data_ptr(), storage.nbytes()
        if place not in storages:
            storages[place] = torch._C._construct_storage_from_data_pointer(start, _CPU, bytes_)
        host = torch.empty(0, dtype=tensor.dtype, device=_CPU)
        host.set_(storages[place], tensor.storage_offset(), tensor.size(), tensor.stride())
        host = host.conj() if tensor.is_conj() else host
        hosts.append(torch._neg_view(host) if tensor.is_neg() else host)
    context_of(tensors[0]).native.synchronize()
    return hosts


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its memory, copied as it is, is all of it."""
    is_strided = tensor.layout == torch.strided and tensor.dtype in DLPACK_CODES
    return is_strided and not tensor.is_conj() and not tensor.is_neg()


def copy_of_host(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The CPU tensor's values and strides in new memory of the device, with what lies between its elements."""
    if not is_plain(host):
        return host.to(device)
    made = _new(host.size(), host.stride(), host.dtype, device)
    write_back(made, host)
    return made


def before_reading(tensor: torch.Tensor) -> None:
    """Raise what kernels have noted: the host is about to read the tensor."""
    index = tensor.get_device()
    for check in BEFORE_READING:
        check(index)


def _host_copy(tensor: torch.Tensor, read: bool = True) -> torch.Tensor:
    """A CPU tensor of the same sizes and strides, with the same values if ``read``."""
    address, bytes_ = window(tensor)
    host = torch.empty(bytes_, dtype=torch.uint8)
    if bytes_ and read:
        before_reading(tensor)
        context_of(tensor).native.download(host.data_ptr(), address, bytes_)
    return host_view(tensor, host, address)


def write_back(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Write the memory of a host_view() to the device."""
    address, bytes_ = window(tensor)
    if bytes_:
        start = host.untyped_storage().data_ptr() + host.storage_offset() * host.element_size()
        with WRITING:
            context_of(tensor).native.upload(address, start, bytes_)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill the memory between the first and the last, each in its own place."""
    if tensor.is_contiguous():
        return True
    filled = 1
    for step, count in sorted(
        (step, count) for step, count in zip(tensor.stride(), tensor.size(), strict=True) if count != 1
    ):
        if step != filled:
            return False
        filled *= count
    return True


def is_captured(tensor: torch.Tensor) -> bool:
    """Whether a graph is captured of the tensor's device, which takes what kernels do."""
    return runtime.capturing(context_of(tensor)) is not None


def copies_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether one's memory, copied as it is, makes the other equal to it."""
    return (
        one.size() == other.size()
        and one.stride() == other.stride()
        and one.dtype == other.dtype
        and one.is_conj() == other.is_conj()
        and one.is_neg() == other.is_neg()
        and not one._is_zerotensor()
        and is_dense(one)
    )


@answered_by_keys
def copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """aten::_copy_from: copies ``self`` to ``dst``, as copy_() asks for it. The device copies from and to pinned memory
    by itself; with ``non_blocking`` nobody waits for that."""
    if dst.numel() == 0:
        if isinstance(self, torch.Tensor):  # torch's errors where it does not fit
            torch._C._infer_size(dst.size(), self.size())
            self.expand(dst.size())
        return dst
    if not isinstance(self, torch.Tensor):  # torch hands a number over as such: dst.copy_(2)
        self = torch.tensor(self, dtype={float: torch.float64, complex: torch.complex128}.get(type(self)))
    same = copies_bytes(self, dst)
    if not is_ours(dst):
        if same and dst.device.type == "cpu":
            address, bytes_ = window(self)
            context = context_of(self)
            pinned = pinned_address(context, dst, bytes_)
            if pinned is None or not non_blocking:
                before_reading(self)
            if pinned is None:
                context.native.download(dst.data_ptr(), address, bytes_)
            else:
                context.native.copy(pinned, address, bytes_)
                if not non_blocking:
                    context.native.synchronize_stream()
        else:
            dst.copy_(_host_copy(self))
        return dst
    address, bytes_ = window(dst)
    if is_ours(self):
        if same and self.device == dst.device:
            source = self.data_ptr()
            if source == address:
                return dst
            if max(source, address) - min(source, address) >= bytes_:
                context = context_of(dst)
                kernels_from = 0 if is_captured(dst) else context.capabilities.traits.kernel_copies
                if kernels_from is not None and bytes_ >= kernels_from and "copy" in KERNELS:
                    if KERNELS["copy"](self, dst):
                        return dst
                with WRITING:
                    context.native.copy(address, source, bytes_)
                    for watcher in WATCHERS:
                        watcher.copied(address, source, bytes_)
                return dst
        if not same and self.device == dst.device and "copy" in KERNELS and KERNELS["copy"](self, dst):
            return dst
        if same and self.device != dst.device and bytes_ >= _ACROSS:
            with WRITING:
                if copy_across(context_of(self), self.data_ptr(), context_of(dst), address, bytes_):
                    return dst
        self = _host_copy(self)
    if same and self.device.type == "cpu":
        context = context_of(dst)
        pinned = pinned_address(context, self, bytes_)
        with WRITING:
            if pinned is None:
                context.native.upload(address, self.data_ptr(), bytes_)
                return dst
            context.native.copy(address, pinned, bytes_)
        if not non_blocking:  # the caller may write to it next
            context.native.synchronize_stream()
        return dst
    _write(dst, lambda host: host.copy_(self))
    return dst


def _write(tensor: torch.Tensor, change: Callable[[torch.Tensor], Any]) -> None:
    """Write what ``change`` makes of a CPU copy, whose elements are all written."""
    if is_dense(tensor):
        host = _host_copy(tensor, read=False)
        change(host)
        write_back(tensor, host)
        return
    with WRITING:
        host = _host_copy(tensor)
        change(host)
        write_back(tensor, host)


def copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """aten::_copy_from_and_resize."""
    if dst.size() != self.size():
        dst.resize_(self.size())
    return copy_from(self, dst)


@cache
def few_elements() -> Any:
    """What does aten::_local_scalar_dense, and aten::_copy_from of less than is ever pinned (a native FewElements)."""
    return torch_native().FewElements(
        exchange=torch.Tensor.__dlpack_c_exchange_api__,
        native_of=lambda index: runtime.of_device(index).native,
        before_reading=BEFORE_READING,
        writing=WRITING,
        most=SMALLEST_COPY - 1,
        read_otherwise=lambda tensor: _host_copy(tensor).item(),
    )


def _takes_words(tensor: torch.Tensor, address: int, bytes_: int) -> bool:
    return is_dense(tensor) and address % 4 == 0 and bytes_ % 4 == 0 and not (bytes_ and is_captured(tensor))


def _fill_words(tensor: torch.Tensor, address: int, bytes_: int, word: int) -> None:
    with WRITING:
        context_of(tensor).native.fill(address, bytes_, word)
        for watcher in WATCHERS:
            watcher.filled(address, bytes_, word)


def fill(self: torch.Tensor, value: Any) -> torch.Tensor:
    """aten::fill_.Scalar, in words of 32 bits where the memory can be."""
    if self.numel() == 0:
        return self
    address, bytes_ = window(self)
    if _takes_words(self, address, bytes_) and not self.is_conj() and not self.is_neg():
        one = bytes(torch.full((1,), value, dtype=self.dtype).view(torch.uint8).tolist())
        word = (one * 4)[:4]
        if word * max(1, len(one) // 4) == (one * 4)[: max(4, len(one))]:
            _fill_words(self, address, bytes_, int.from_bytes(word, "little"))
            return self
    if "fill" not in KERNELS or not KERNELS["fill"](self, value):
        _write(self, lambda host: host.fill_(value))
    return self


def zero(self: torch.Tensor) -> torch.Tensor:
    """aten::zero_, of element types that have no numbers, too."""
    address, bytes_ = window(self)
    if _takes_words(self, address, bytes_):
        if bytes_:
            _fill_words(self, address, bytes_, 0)
        return self
    if "fill" not in KERNELS or not KERNELS["fill"](self, 0):
        _write(self, torch.Tensor.zero_)
    return self
