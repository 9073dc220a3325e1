"""Whether a GPU may be in this machine, as far as that is known without a Vulkan loader."""

from __future__ import annotations

import os
from collections.abc import Mapping
from glob import iglob

from ...system import WINDOWS
from . import manifests

#: Files by which processes reach GPUs: those of the kernel's own drivers, NVIDIA's, Qualcomm's, Arm's and, in WSL,
#: Windows'.
NODES = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/kgsl-3d0", "/dev/mali[0-9]*", "/dev/dxg")


def gpu_may_be_there(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether one of NODES is there, or the environment names drivers for the loader, which may need none. Windows has
    no such files; nearly all machines with Windows have a GPU."""
    names = (*manifests.REPLACING, manifests.ADDING, manifests.SELECTING)
    return WINDOWS or any(environment.get(name) for name in names) or any(any(iglob(node)) for node in NODES)
