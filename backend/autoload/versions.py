"""Which versions of torch have tensors on the device."""

from __future__ import annotations

#: The first release of torch whose tensors can be on the device. Kernels take CPU tensors of older ones, too.
OLDEST_TORCH = "2.10"


def is_too_old(torch_version: str) -> bool:
    """Whether a version of torch comes before OLDEST_TORCH."""
    return release(torch_version) < release(OLDEST_TORCH)


def release(version: str) -> tuple[int, ...]:
    """(major, minor) of a version."""
    return tuple(map(int, version.split(".")[:2]))
