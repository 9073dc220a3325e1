"""DLPack: tensors of the device ``spirv`` handed to other libraries, and taken from them."""

from __future__ import annotations

import enum
from typing import Any

import torch

from ...runtime import NAME

_CPU = 1  # DLDeviceType.kDLCPU


def teach_dlpack() -> None:
    """Makes tensors say where they are. DLPack has no number for this device: it is an extension device (kDLExtDev), as
    torch itself exports it, whose addresses only this process understands. For a library that asks for host memory
    (``dl_device`` is the CPU's) the tensor is copied."""
    tensors: Any = torch.Tensor
    place, export = tensors.__dlpack_device__, tensors.__dlpack__

    def dlpack_device(self: Any) -> tuple[enum.IntEnum, int]:
        if self.device.type != NAME:
            found: tuple[enum.IntEnum, int] = place(self)
            return found
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    def dlpack(self: Any, *, dl_device: Any = None, copy: Any = None, **options: Any) -> Any:
        if self.device.type == NAME:
            self.data_ptr()  # as an export asks for it, too: calls that are recorded notice
        if self.device.type == NAME and dl_device is not None and int(dl_device[0]) == _CPU:
            if copy is False:
                raise BufferError(f"a tensor on '{self.device}' is not in host memory: it has to be copied (copy=None)")
            return export(self.detach().cpu(), **{**options, "stream": None})
        return export(self, dl_device=dl_device, copy=copy, **options)

    tensors.__dlpack_device__, tensors.__dlpack__ = dlpack_device, dlpack
