"""``torch.UntypedStorage`` on the device ``spirv``: how storages are made, copied, saved, loaded and sent to other
processes.

torch looks for an allocator written in C++ and ends the process if there is none. autoload/first_use.py decides
whether a storage is to be on this device, and has ``new_storage`` make it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.utils.data
from torch.multiprocessing.reductions import reduce_storage

from ...runtime import NAME
from .tensor_memory import context_of, new_bytes

_PACKAGE_PRIORITY = 15  # before torch's own for devices from outside, which knows no storage here
#: Methods that give a storage to another process.
_SHARING = ("share_memory_", "_share_fd_cpu_", "_share_filename_cpu_")


def new_storage(*args: Any, device: Any, **kwargs: Any) -> Any:
    """``torch.UntypedStorage(…)`` of a number of bytes, or of these, on a device of this kind."""
    content = args[0] if args else kwargs.get("size", kwargs.get("sequence", 0))
    if isinstance(content, int):
        return new_bytes(content, device).untyped_storage()
    return torch.tensor(content, dtype=torch.uint8, device=device).untyped_storage()


def teach_storages(received: Callable[[str, Any], Any]) -> None:
    """Makes storages of this device be copied, saved and loaded, and refuse to be shared with other processes; what
    workers of a DataLoader make is copied to the loader, where ``received``, a function of a module, gets the place and
    the storage on the CPU."""
    storages: Any = torch.UntypedStorage
    clone = storages.clone

    def clone_storage(self: Any) -> Any:
        if self.device.type != NAME:
            return clone(self)
        copied = new_bytes(self.nbytes(), self.device)
        if self.nbytes():
            context_of(copied).native.copy(copied.data_ptr(), self.data_ptr(), self.nbytes())
        return copied.untyped_storage()

    storages.clone = clone_storage
    resize = storages.resize_

    def resize_storage(self: Any, size: int) -> Any:
        return _resized(self, size) if self.device.type == NAME else resize(self, size)

    storages.resize_ = resize_storage
    for name in _SHARING:
        setattr(storages, name, _local(getattr(storages, name)))
    torch.serialization.register_package(_PACKAGE_PRIORITY, _location, restore)
    ForkingPickler.register(torch.UntypedStorage, partial(_reduced, received))


def _resized(storage: Any, size: int) -> Any:
    """``storage.resize_()``. torch lets C++ alone exchange a storage's memory. Raises RuntimeError except for the size
    that it has: who asks for another takes the size for whether there is anything in it."""
    if size != storage.nbytes():
        raise RuntimeError(
            f"resize_({size}): a storage on '{NAME}' keeps its {storage.nbytes()} bytes: make a new one; and "
            "instead of FullyShardedDataParallel use torch.distributed.fsdp.fully_shard (FSDP2)"
        )
    return storage


def _local(share: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == NAME:
            raise _not_shared()
        return share(self, *args, **kwargs)

    return refuse


def _not_shared() -> RuntimeError:
    return RuntimeError(
        f"a tensor on '{NAME}' cannot be shared between processes: send or share its copy on the CPU (x.cpu())"
    )


def _reduced(received: Callable[[str, Any], Any], storage: Any) -> Any:
    """What a queue between processes sends of a storage. A worker's queue writes in a thread, whose errors the loader
    would wait for in vain; and a worker gives its batches away, so that they need not be shared."""
    if storage.device.type != NAME:
        return reduce_storage(storage)
    if torch.utils.data.get_worker_info() is None:
        raise _not_shared()
    return received, (str(storage.device), storage.cpu())


def _location(storage: Any) -> str | None:
    """Where torch.save() says that a storage was; None for other devices'."""
    return str(storage.device) if storage.device.type == NAME else None


def restore(storage: Any, location: str) -> Any:
    """The storage, loaded on the CPU, on the device that torch.load() wants it on; None for other devices."""
    if location.partition(":")[0] != NAME:
        return None
    loaded = new_bytes(int(storage.nbytes()), location)
    if storage.nbytes():
        context_of(loaded).native.upload(loaded.data_ptr(), storage.data_ptr(), storage.nbytes())
    made = loaded.untyped_storage()
    if isinstance(storage, torch.UntypedStorage):
        return made
    return torch.TypedStorage(wrap_storage=made, dtype=storage.dtype, _internal=True)  # as torch.package passes them
