"""Parameters are moved in place to this device and from it by ``nn.Module._apply``, which all moves and conversions go
through: modules and optimizers that share one keep sharing it, and it keeps its class and attributes.

torch does so between the devices that it knows. For others it makes a new parameter in each place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .placeholder import NAME

if TYPE_CHECKING:
    import torch


def moved_in_place(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Gives a leaf the place and the memory of ``value``, where one of them is on this device and torch cannot set its
    data. Its gradient is lost, and a graph that it was in no longer reaches it. False: nothing was changed."""
    import torch

    private: Any = torch._C
    if not tensor.is_leaf or NAME not in (tensor.device.type, value.device.type):
        return False
    if torch._has_compatible_shallow_copy_type(tensor, value):
        return False
    private._swap_tensor_impl(tensor, value.detach().requires_grad_(tensor.requires_grad))
    return True


def keep_shared_parameters() -> None:
    """Makes modules keep their parameters."""
    import torch

    modules: Any = torch.nn.Module
    apply = modules._apply

    def move_all(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        def move(tensor: torch.Tensor) -> torch.Tensor:
            value: torch.Tensor = fn(tensor)
            if not isinstance(tensor, torch.nn.Parameter):
                return value
            gradient = tensor.grad
            if not moved_in_place(tensor, value):
                return value
            tensor.grad = None if gradient is None else fn(gradient)
            return tensor

        result: torch.nn.Module = apply(self, move, recurse)
        return result

    modules._apply = move_all
