"""Which torch device a program should put tensors on for kernels of this backend."""

from __future__ import annotations

import torch

from .. import runtime
from ..autoload.others import asked_for, other_accelerator
from ..runtime import NAME, cuda_index
from ..settings import ZERO_COPY
from . import registration


def active_device() -> torch.device:
    """The torch device whose tensors kernels take with no copy, as far as there is one:

    - ``cpu`` where host memory is device memory;
    - ``spirv:<index>`` on a GPU, which is made known to torch;
    - if torch has another accelerator that is there, and ``spirv`` was not asked for by itself: ``cuda:<index>`` where
      the kernels run on that GPU, and otherwise ``cpu``, whose tensors each launch copies.
    """
    context = runtime.current()
    if context.host_memory == ZERO_COPY:
        return torch.device("cpu")
    if torch._C._get_privateuse1_backend_name() != NAME and not asked_for():
        other = other_accelerator()
        if other == "cuda" and not torch.cuda.is_available():
            other = None  # its driver is installed, and shows torch no GPU
        if other is not None:
            if other == "cuda" and context.shares_memory:
                torch.cuda.init()  # from now on its current device is that of launches
                context = runtime.current()
            index = cuda_index(context.device.uuid) if other == "cuda" and context.shares_memory else None
            return torch.device("cpu") if index is None else torch.device("cuda", index)
    registration.register()
    return torch.device(NAME, context.index)
