"""The device ``spirv`` in torch: the device itself, its operations, and what torch's compiler asks of it."""

from __future__ import annotations


def register() -> None:
    """Make the device ``spirv`` known to torch where that did not happen when torch was imported: it has another
    accelerator, or calls no entry points (TORCH_DEVICE_BACKEND_AUTOLOAD=0). A second call does nothing. From then on
    torch computes no gradients of tensors of another accelerator in this process.

    Raises RuntimeError if another backend took the place of torch's one device from outside (PrivateUse1), and where
    torch is too old."""
    from . import registration  # imports torch

    registration.register()
