"""Collectives of ``torch.distributed`` on tensors of the device ``spirv``: done by the process group's backend for CPU
tensors (gloo, say), on copies.

A copy comes back when the collective is done, in its own thread, so that later calls go on meanwhile.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ...runtime import NAME

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


def _on_host(value: Any, copies: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """``value`` with CPU copies instead of the device's tensors, which are noted with them."""
    if isinstance(value, (list, tuple)):
        return [_on_host(item, copies) for item in value]
    if not isinstance(value, torch.Tensor) or value.device.type != NAME:
        return value
    if id(value) not in copies:
        copies[id(value)] = value, value.detach().cpu().contiguous()
    return copies[id(value)][1]


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


def _finish(work: Any, outputs: list[tuple[torch.Tensor, torch.Tensor]], future: Any, result: Any) -> None:
    try:
        work.wait()
        with torch.no_grad():
            for tensor, host in outputs:
                tensor.copy_(host)
    except BaseException as error:  # which the caller's wait() raises
        future.set_exception(error)
    else:
        future.set_result(result)


def _through_host(op: Any, writes: bool) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        from torch._C import _distributed_c10d as c10d

        copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        try:
            done = op(*(_on_host(value, copies) for value in args))
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
        outputs = [copies[id(leaf)] for leaf in _leaves(args[0]) if id(leaf) in copies]
        future: Any = torch.futures.Future()
        waiting = (c10d.Work.unbox(work), outputs, future, _leaves(args[0]))
        threading.Thread(target=_finish, args=waiting, daemon=True).start()
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
