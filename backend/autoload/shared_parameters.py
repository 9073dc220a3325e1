"""Parameters that modules share are kept when ``nn.Module._apply``, which all moves and conversions go through, moves
them to this device or from it.

torch moves a parameter in place between the devices that it knows. For others it makes a new one in each place, so that
a parameter that two modules share would become two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .placeholder import NAME

if TYPE_CHECKING:
    import torch

    #: (module, name): where a parameter is.
    _Place = tuple[torch.nn.Module, str]


class _Depth(threading.local):
    inside = False


def keep_shared_parameters() -> None:
    """Makes modules keep the ties of their tensors."""
    import torch

    modules: Any = torch.nn.Module
    apply, depth = modules._apply, _Depth()

    def apply_to_all(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        if depth.inside:  # of a module within
            return apply(self, fn, recurse)
        ties = _ties(self)
        depth.inside = True
        try:
            result: torch.nn.Module = apply(self, fn, recurse)
        finally:
            depth.inside = False
        for before, places in ties:
            _tie(before, places)
        return result

    modules._apply = apply_to_all


def _ties(root: torch.nn.Module) -> list[tuple[torch.nn.Parameter, list[_Place]]]:
    """The parameters that are in several places of a module, with those."""
    found: dict[int, tuple[torch.nn.Parameter, list[_Place]]] = {}
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                found.setdefault(id(parameter), (parameter, []))[1].append((module, name))
    return [(parameter, places) for parameter, places in found.values() if len(places) > 1]


def _tie(before: torch.nn.Parameter, places: list[_Place]) -> None:
    from torch.nn import RNNBase

    now = [module._parameters[name] for module, name in places]
    kept = next((parameter for parameter in now if parameter is not before), before)
    if kept is None or NAME not in (kept.device.type, before.device.type):
        return
    for module, name in places:
        if module._parameters[name] is not kept:
            module._parameters[name] = kept
            if isinstance(module, RNNBase):
                module._init_flat_weights()  # its own list
