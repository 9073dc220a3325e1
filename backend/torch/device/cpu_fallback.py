"""Operations of the torch device ``spirv`` that torch's own kernels for the CPU do.

Where the device is the processor, they work on the memory of their arguments. Elsewhere they do so on copies; arguments
that share device memory share their copy, so that each sees what an operation writes to another.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch

from ... import runtime
from ...runtime import NAME
from ...settings import ERROR, TELL, TORCH_FALLBACK, WARN
from . import random_state
from .native_module import torch_native
from .tensor_memory import (
    WATCHERS,
    WRITING,
    before_reading,
    context_of,
    copy_of_host,
    host_view,
    in_host_memory,
    is_dense,
    is_ours,
    is_plain,
    shares_host_memory,
    window,
    with_room,
    write_back,
)

#: Operations that ran on the CPU, with copies both ways, by name.
FALLBACKS: Counter[str] = Counter()

_warned: set[str] = set()
_log = logging.getLogger(f"{__name__.rsplit('.', 2)[0]}.registration")
_TEMPORARY = 64 << 20  # bytes
_temporary = [0]  # bytes of results of torch's kernels, since the heap was trimmed
_LARGEST_ELEMENT = 16  # bytes: a copy begins at a multiple of it

#: Operations that resize tensors that are no outputs of theirs: observers of channels begin without elements.
_RESIZING = ("aten::_fused_moving_avg_obs_fq_helper",)
#: Operations that write all of their first argument and read none of it.
_OVERWRITING = frozenset(
    (
        "aten::uniform_",
        "aten::normal_",
        "aten::random_",
        "aten::random_.from",
        "aten::random_.to",
        "aten::exponential_",
        "aten::bernoulli_.float",
        "aten::arange.start_out",
        "aten::eye.m_out",
        "aten::linspace.out",
        "aten::randperm.generator_out",
    )
)

#: Arguments that operations write though their schemas do not say so.
_UNDECLARED = dict.fromkeys(
    ("aten::native_batch_norm", "aten::batch_norm_update_stats"), frozenset(("running_mean", "running_var"))
)


_INDICES, _LENGTHS = frozenset(("indices",)), frozenset(("input_lengths", "target_lengths"))
#: Operations → arguments whose CPU tensors are right: they are indices or lengths, as with CUDA tensors. None: all.
_MIXED: dict[str, frozenset[str] | None] = {
    **dict.fromkeys(("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"), _INDICES),
    **dict.fromkeys(("aten::_unsafe_index", "aten::_unsafe_index_put"), _INDICES),
    **dict.fromkeys(("aten::_ctc_loss", "aten::_ctc_loss_backward"), _LENGTHS),
    **dict.fromkeys(("aten::_pack_padded_sequence", "aten::_pad_packed_sequence", "aten::tensor_split")),
    **dict.fromkeys(("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::copy", "aten::set_")),
}


def _may_be_elsewhere(operation: str, argument: str) -> bool:
    """Whether an argument may be on the CPU where others are on the device."""
    arguments = _MIXED.get(operation, frozenset())
    return arguments is None or argument in arguments


@dataclass(frozen=True, slots=True)
class _Signature:
    """What calls of an operation need to know of it; ``arguments`` are (name, whether it is written, whether it is a
    tensor) in their order. ``resizes``: it may, of outputs that it is given."""

    name: str
    full_name: str
    arguments: tuple[tuple[str, bool, bool], ...]
    overwrites: bool
    resizes: bool


@cache
def _signature(op: Any) -> _Signature:
    schema = op._schema
    undeclared = _UNDECLARED.get(schema.name, ())
    arguments = tuple(
        (
            name := argument.name,
            (argument.alias_info is not None and argument.alias_info.is_write) or name in undeclared,
            str(argument.type) in ("Tensor", "Optional[Tensor]"),
        )
        for argument in schema.arguments
    )
    full_name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
    resizes = schema.name in _RESIZING or any(one.is_out for one in schema.arguments)
    return _Signature(schema.name, full_name, arguments, op.name() in _OVERWRITING, resizes)


@dataclass(frozen=True, slots=True)
class TorchsWay:
    """How torch's kernel for the CPU does an operation of the device: by an ``overload`` of it, None where torch's C
    interface cannot call it, and by ``write``. It is given the results behind what the operation takes, which are
    tensors; or it makes them, and the device ``adopts`` their memory."""

    overload: str | None
    write: Callable[..., Any]
    adopts: bool


@cache
def torchs_way(op: Any) -> TorchsWay | None:
    """That of an operation that is no other's way to write, and makes no views; None where there is none."""
    schema = op._schema
    if any(one.alias_info is not None for one in (*schema.arguments, *schema.returns)) or schema.name in _UNDECLARED:
        return None
    # torch 2.13 passes lists of SymInt as lists of another kind than its kernels take.
    is_callable = "SymInt[" not in str(schema)
    wanted = [*((one.name, str(one.type)) for one in schema.arguments), *["Tensor"] * len(schema.returns)]
    for name in op.overloadpacket.overloads() if torch.Tag.dynamic_output_shape not in op.tags else ():
        overload = getattr(op.overloadpacket, name)
        taken = [str(one.type) if one.is_out else (one.name, str(one.type)) for one in overload._schema.arguments]
        # Others make the results first, and copy them.
        if taken == wanted and torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CPU"):
            outs = [one.name for one in overload._schema.arguments if one.is_out]
            return TorchsWay(name if is_callable else None, partial(_write, overload, outs), False)
    if any(str(one.type) != "Tensor" for one in schema.returns):
        return None
    return TorchsWay(schema.overload_name if is_callable else None, partial(_make, op), True)


def _write(
    overload: Any, outs: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], results: Any, device: torch.device
) -> None:
    given = *args, *kwargs.values(), *((results,) if isinstance(results, torch.Tensor) else results)
    values = _in_place(given)
    overload(*values[: len(args)], **dict(zip((*kwargs, *outs), values[len(args) :], strict=True)))


def _make(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device) -> Any:
    values = _in_place((*args, *kwargs.values()))
    make = partial(op, *values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))
    results = with_room(runtime.of_device(device.index or 0), make)
    return _each(lambda x: _taken(x, device) if isinstance(x, torch.Tensor) else x, results)


def fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Runs ``op`` on the CPU and brings back what it made and what it wrote.

    Raises RuntimeError if tensors are on several devices, the CPU's with one element and no dimensions left out, or
    TRITON_SPIRV_TORCH_FALLBACK is ``error``.
    """
    return _run(op, args, kwargs, counts=True)


def by_torchs_kernel(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Does the same where the device shares_host_memory(), and counts nothing: torch's kernel is the device's own.
    The memory of results is the device's from then on; prepared calls may write them (ops/prepared.py)."""
    signature = _signature(op)
    call = _read(signature, args, kwargs)
    if call.written or call.numbers or call.device is not None:
        return _run(op, args, kwargs, counts=False)
    device = _common_device(signature.name, call.tensors.values(), (), call.others)
    _trim()
    return _make(op, args, kwargs, device)


def _taken(result: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The result on the device, where its memory is if nothing else refers to it."""
    _temporary[0] += result.nbytes
    if is_plain(result) and torch_native().has_torch_operations():
        context = runtime.of_device(device.index or 0)
        handle = torch._C._aoti.unsafe_alloc_void_ptr_from_tensor(result)
        capsule = torch_native().adopted_tensor(handle, context.native, context.memory.pool, context.index)
        if capsule is not None:
            made: torch.Tensor = torch._C._from_dlpack(capsule)
            for watcher in WATCHERS:
                watcher.allocated(made, result.untyped_storage().nbytes())
            return made
    return copy_of_host(result, device)


def _trim() -> None:
    """Returns what glibc's heap holds free after _TEMPORARY bytes of results: what is kept of calls lies between them,
    so that results of growing sizes find no room."""
    if _temporary[0] > _TEMPORARY:
        _temporary[0] = 0
        getattr(ctypes.pythonapi, "malloc_trim", abs)(0)


def _in_place(values: tuple[Any, ...]) -> Any:
    """These, with CPU tensors on the memory of those of the device."""
    leaves = [leaf for one in values for leaf in (one if isinstance(one, (list, tuple)) else (one,)) if is_ours(leaf)]
    hosts = dict(zip(map(id, leaves), in_host_memory(leaves), strict=True))
    return _each(lambda value: hosts.get(id(value), value), values)


@dataclass(slots=True)
class _Call:
    """A call's arguments. ``device``: the one that is named, if one is; ``tensors`` of the device, and what is
    ``written``, by their ids; ``others``: tensors elsewhere that may not be there; ``numbers``:
    names of arguments that are numbers in the place of tensors."""

    device: torch.device | None
    tensors: dict[int, torch.Tensor]
    written: dict[int, torch.Tensor]
    others: list[torch.Tensor]
    numbers: set[str]


def _read(signature: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    call = _Call(None, {}, {}, [], set())
    for position, (name, writes, is_tensor) in enumerate(signature.arguments):
        value = args[position] if position < len(args) else kwargs.get(name)
        if is_tensor and isinstance(value, (int, float, complex)):
            call.numbers.add(name)
        for leaf in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(leaf, torch.Tensor):
                if writes:
                    call.written[id(leaf)] = leaf
                if is_ours(leaf):
                    call.tensors[id(leaf)] = leaf
                    continue
                if leaf.dim() and not writes and not _may_be_elsewhere(signature.name, name):
                    call.others.append(leaf)
            elif isinstance(leaf, torch.device) and leaf.type == NAME:
                call.device = leaf
    return call


def _drawing(signature: _Signature, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments, with a generator if the operation takes one, was given none, and is not to draw from the CPU's."""
    names = [] if random_state.CPU_DRAWS else [name for name, _, _ in signature.arguments]
    if "generator" not in names:
        return args, kwargs
    place = names.index("generator")
    if place >= len(args):
        return args, kwargs | {"generator": kwargs.get("generator") or random_state.generator_on_cpu()}
    return (*args[:place], args[place] or random_state.generator_on_cpu(), *args[place + 1 :]), kwargs


def _run(op: Any, args: Any, kwargs: dict[str, Any], counts: bool) -> Any:
    signature = _signature(op)
    args, kwargs = _drawing(signature, args, kwargs)
    call = _read(signature, args, kwargs)
    device, tensors, written = call.device, call.tensors, call.written
    if tensors:
        device = _common_device(signature.name, tensors.values(), written.values(), call.others)
    if counts:
        _count(signature.full_name)
    unread = set(written) if signature.overwrites else set()
    originals: dict[int, torch.Tensor] = {}
    called = _taking_numbers(op, frozenset(call.numbers)) if call.numbers else op

    def run(in_place: bool) -> Any:
        every = list(tensors.values())
        hosts = dict(zip(tensors, in_host_memory(every), strict=True)) if in_place else _host_views(every, unread)

        def to_host(value: Any) -> Any:
            if isinstance(value, torch.device) and value.type == NAME:
                return torch.device("cpu")
            return hosts.get(id(value), value)

        result = called(*_each(to_host, args), **{name: _each(to_host, value) for name, value in kwargs.items()})
        for key in written:
            if key in tensors:
                _bring_back(tensors[key], hosts[key], in_place)
                originals[id(hosts[key])] = tensors[key]
        return result

    in_place = bool(tensors) and shares_host_memory(context_of(next(iter(tensors.values()))))
    # Between the elements of a view lie others, which are written back with it.
    with WRITING if written and (in_place or not all(map(is_dense, written.values()))) else nullcontext():
        try:
            alone = in_place and not written
            result = with_room(context_of(next(iter(tensors.values()))), partial(run, True)) if alone else run(in_place)
        except RuntimeError:
            if not in_place or not signature.resizes:
                raise
            # An output may be of another size: torch resizes it before it writes anything, which memory in place
            # refuses. What else is wrong is so again.
            result = run(False)

    def to_device(value: Any) -> Any:
        if device is None or not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        original = originals.get(id(value))
        return copy_of_host(value, device) if original is None else original

    return _each(to_device, result)


def _count(name: str) -> None:
    """Count an operation that is to run on the CPU. Raises RuntimeError if TRITON_SPIRV_TORCH_FALLBACK says so."""
    FALLBACKS[name] += 1
    _log.debug("%s runs on the CPU", name)
    policy = TORCH_FALLBACK.get()
    if policy == ERROR:
        raise RuntimeError(
            f"{name} is not implemented on the device '{NAME}' for these arguments, and {TORCH_FALLBACK.name}={ERROR} "
            "does not let it run on the CPU: move its arguments with .cpu(), or set the variable to 'warn'"
        )
    if policy == WARN and name not in _warned:
        _warned.add(name)
        warnings.warn(f"{name} runs on the CPU, on copies: the device '{NAME}' does not have it", stacklevel=3)


@atexit.register
def _tell() -> None:
    if TORCH_FALLBACK.get() == TELL:
        print(summary(), file=sys.stderr)


def summary() -> str:
    """How often each operation ran on the CPU, in a line, the most frequent first."""
    named = ", ".join(f"{name} {count}" for name, count in FALLBACKS.most_common())
    count = f"{FALLBACKS.total()} operation{'' if FALLBACKS.total() == 1 else 's'}"
    return f"torch on '{NAME}': {count} ran on the CPU, on copies: {named}".removesuffix(": ")


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    """``value`` with ``function`` of all that is in its lists and tuples."""
    if isinstance(value, (list, tuple)):
        items = [_each(function, item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return function(value)


def _common_device(
    name: str, tensors: Iterable[torch.Tensor], written: Iterable[torch.Tensor], others: Iterable[torch.Tensor]
) -> torch.device:
    devices = sorted({str(tensor.device) for tensor in tensors})
    found = [*devices, *sorted({str(tensor.device) for tensor in others})]
    if len(found) > 1:
        raise RuntimeError(
            f"{name}: all tensors have to be on one device, but there are some on {' and '.join(found)}: move them "
            "with .to()"
        )
    for tensor in written:
        if not is_ours(tensor):
            raise RuntimeError(
                f"{name}: all tensors have to be on one device, but it would write to a tensor on "
                f"{tensor.device} and there are others on {devices[0]}: move one with .to()"
            )
    return torch.device(devices[0])


@cache
def _taking_numbers(op: Any, numbers: frozenset[str]) -> Any:
    """The overload that takes numbers as those arguments, if there is one. torch hands over a number instead of a
    tensor where a number was passed, as in ``x.remainder(5)``."""

    def types(overload: Any, given: frozenset[str]) -> list[tuple[str, str]]:
        return [
            (argument.name, "number" if argument.name in given else str(argument.type))
            for argument in overload._schema.arguments
        ]

    wanted = types(op, numbers)
    packet = op.overloadpacket
    overloads = (getattr(packet, name) for name in packet.overloads())
    return next((overload for overload in overloads if types(overload, frozenset()) == wanted), op)


def _host_views(tensors: list[torch.Tensor], unread: set[int]) -> dict[int, torch.Tensor]:
    """CPU copies of tensors, by their id; tensors in ``unread`` need no values."""
    hosts: dict[int, torch.Tensor] = {}
    group: list[torch.Tensor] = []
    begin = end = 0

    def close() -> None:
        if not group:
            return
        memory = torch.empty(end - begin, dtype=torch.uint8)
        alone = group[0]
        if end > begin and not (len(group) == 1 and id(alone) in unread and is_dense(alone)):
            before_reading(alone)
            context_of(alone).native.download(memory.data_ptr(), begin, end - begin)
        for tensor in group:
            hosts[id(tensor)] = host_view(tensor, memory, begin)
        group.clear()

    for address, bytes_, tensor in sorted(((*window(tensor), tensor) for tensor in tensors), key=lambda item: item[:2]):
        if address >= end or not bytes_:
            close()
            begin, end = address // _LARGEST_ELEMENT * _LARGEST_ELEMENT, address
        group.append(tensor)
        end = max(end, address + bytes_)
    close()
    return hosts


def _bring_back(tensor: torch.Tensor, host: torch.Tensor, in_place: bool) -> None:
    """Give the tensor what the operation made of its copy, or its form alone where it worked in place."""
    same = (
        host.size() == tensor.size()
        and host.stride() == tensor.stride()
        and host.is_conj() == tensor.is_conj()
        and host.is_neg() == tensor.is_neg()
    )
    if same:
        if not in_place:
            write_back(tensor, host)
        return
    if in_place:
        tensor.resize_(host.size()).as_strided_(host.size(), host.stride())
        return
    if host.size() != tensor.size():  # it may be a part of a longer result
        reach = sum((size - 1) * stride for size, stride in zip(host.size(), host.stride(), strict=True)) + 1
        tensor.resize_(reach if host.numel() else 0).as_strided_(host.size(), host.stride())
    tensor.copy_(host)
