"""Parameters are moved in place to this device and from it by ``nn.Module._apply``, which all moves and conversions go
through: modules and optimizers that share one keep sharing it, and it keeps its class and attributes.

torch does so between the devices that it knows. For others it makes a new parameter in each place. So it does here,
too, where it is told to (``torch.__future__``) and where C++ holds the parameters (TorchScript), one for all places.
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
    known = torch._has_compatible_shallow_copy_type(tensor, value)
    if known or not tensor.is_leaf or NAME not in (tensor.device.type, value.device.type):
        return False
    private._swap_tensor_impl(tensor, value.detach().requires_grad_(tensor.requires_grad))
    return True


class _Move:
    """A conversion of one module's tensors, for ``_apply``. Those of the modules within share what it has moved."""

    def __init__(self, convert: Any, in_place: bool) -> None:
        self._in_place, is_within = in_place, isinstance(convert, _Move)
        self._convert: Callable[..., Any] = convert._convert if is_within else convert
        #: id of a parameter → that, and what stands for it now.
        self.moved: dict[int, tuple[Any, Any]] = convert.moved if is_within else {}

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        import torch

        value: torch.Tensor = self._convert(tensor)
        if self._in_place and isinstance(tensor, torch.nn.Parameter) and id(tensor) not in self.moved:
            gradient = tensor.grad
            if moved_in_place(tensor, value):
                tensor.grad = None if gradient is None else self._convert(gradient)
                return tensor
        return value


def keep_shared_parameters() -> None:
    """Makes modules keep their parameters."""
    import torch

    modules: Any = torch.nn.Module
    apply, future = modules._apply, torch.__future__

    def move_all(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        asked = future.get_overwrite_module_params_on_conversion() or future.get_swap_module_params_on_conversion()
        move = _Move(fn, not asked and not isinstance(self, torch.jit.ScriptModule))
        before = [(name, parameter) for name, parameter in self._parameters.items() if parameter is not None]
        result: torch.nn.Module = apply(self, move, recurse)
        for name, old in before:
            now: Any = self._parameters[name]
            if now is not old and NAME in (old.device.type, now.device.type):
                self._parameters[name] = move.moved.setdefault(id(old), (old, now))[1]
        return result

    modules._apply = move_all
