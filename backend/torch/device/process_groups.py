"""Collectives of ``torch.distributed`` on tensors of the device ``spirv``: done by the process group's backend for CPU
tensors (gloo, say), on the tensors' own memory where that is the host's, and on copies in pinned memory elsewhere.

A copy comes back when the collective is done, in its own thread, so that later calls go on meanwhile.
"""

from __future__ import annotations

import functools
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch

from ...runtime import NAME
from .pinned_tensors import empty_pinned, host_memory_of, pins
from .tensor_memory import before_reading, context_of, dense_strides

#: Operations of ``torch.ops.c10d``; each writes its first argument.
_WRITING = (
    "allreduce_",
    "allreduce_coalesced_",
    "broadcast_",
    "allgather_",
    "_allgather_base_",
    "allgather_coalesced_",
    "allgather_into_tensor_coalesced_",
    "reduce_scatter_",
    "_reduce_scatter_base_",
    "reduce_scatter_tensor_coalesced_",
    "reduce_",
    "gather_",
    "scatter_",
    "alltoall_",
    "alltoall_base_",
    "recv_",
    "recv_any_source_",
)
_READING = ("send", "barrier")
_THREAD = "triton-spirv collective"
#: Seconds that the end of a process waits for collectives that are on their way. A rank may wait for one that died.
_SECONDS_AT_END = 2.0


@dataclass
class _Twin:
    """A tensor of the device, and the CPU tensor in its place. ``shared``: they have the same memory."""

    tensor: torch.Tensor
    host: torch.Tensor
    shared: bool


def _twin(tensor: torch.Tensor) -> _Twin:
    """The CPU tensor has no gaps. A copy is not waited for."""
    tensor = tensor.detach()
    context = context_of(tensor)
    plain = tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()
    bytes_ = tensor.numel() * tensor.element_size()
    host = host_memory_of(context, tensor, bytes_) if plain else None
    if host is not None:
        before_reading(tensor)
        return _Twin(tensor, host, True)
    if not bytes_ or not pins(context):
        return _Twin(tensor, tensor.cpu().contiguous(), False)
    host = empty_pinned(tensor.size(), dense_strides(tensor.size()), tensor.dtype, bytes_)
    return _Twin(tensor, host.copy_(tensor, non_blocking=True), False)


def _on_host(value: Any, twins: dict[int, _Twin]) -> Any:
    """``value`` with CPU tensors instead of the device's, which are noted with them."""
    if isinstance(value, (list, tuple)):
        return [_on_host(item, twins) for item in value]
    if not isinstance(value, torch.Tensor) or value.device.type != NAME:
        return value
    if id(value) not in twins:
        twins[id(value)] = _twin(value)
    return twins[id(value)].host


def _wait_for_copies(twins: Collection[_Twin]) -> None:
    for context in {context_of(twin.tensor) for twin in twins if not twin.shared}:
        context.native.synchronize()
    for twin in twins:
        if not twin.shared:
            before_reading(twin.tensor)


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _finish(work: Any, outputs: list[_Twin], future: Any, result: Any) -> None:
    try:
        work.wait()
        with torch.no_grad():
            for twin in outputs:
                twin.tensor.copy_(twin.host, non_blocking=True)
    except BaseException as error:  # which the caller's wait() raises
        future.set_exception(error)
    else:
        future.set_result(result)


@functools.cache
def _wait_at_end() -> None:
    weakref.finalize(_Twin, _end)  # made after the device was opened, so that it runs before that is closed


def _end() -> None:
    """Python ends a thread that asks for its lock after this; within C++, as in set_result(), that aborts a process."""
    until = time.monotonic() + _SECONDS_AT_END
    for thread in threading.enumerate():
        if thread.name == _THREAD:
            thread.join(max(0, until - time.monotonic()))


def _through_host(op: Any, writes: bool) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        from torch._C import _distributed_c10d as c10d

        twins: dict[int, _Twin] = {}
        values = [_on_host(value, twins) for value in args]
        _wait_for_copies(twins.values())
        try:
            done = op(*values)
        except RuntimeError as error:
            if "No backend type associated with device type cpu" not in str(error):
                raise
            raise RuntimeError(
                f"tensors of '{NAME}' go through the process group's backend for CPU tensors, and this group has none: "
                'use torch.distributed.init_process_group("gloo")'
            ) from error
        with_tensors = isinstance(done, tuple)
        work = done[1] if with_tensors else done
        if not writes or work is None:
            return done
        outputs = [twin for leaf in _leaves(args[0]) if (twin := twins.get(id(leaf))) and not twin.shared]
        future: Any = torch.futures.Future()
        waiting = (c10d.Work.unbox(work), outputs, future, _leaves(args[0]))
        _wait_at_end()
        threading.Thread(target=_finish, name=_THREAD, args=waiting, daemon=True).start()
        ours = c10d._create_work_from_future(future).boxed()  # type: ignore[attr-defined]
        return (args[0], ours) if with_tensors else ours

    return run


def enter_collectives() -> tuple[torch.library.Library, ...]:
    """Enter the collectives, where torch was built with them. The library is to be kept."""
    if not torch.distributed.is_available():
        return ()
    library = torch.library.Library("c10d", "IMPL")
    with warnings.catch_warnings():  # torch has kernels for devices that a process group has a backend for
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
        for name in (*_WRITING, *_READING):
            packet = getattr(torch.ops.c10d, name, None)
            if packet is not None:
                library.impl(name, _through_host(packet.default, name in _WRITING), "PrivateUse1", allow_override=True)
    return (library,)
