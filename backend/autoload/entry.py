"""torch's entry point, and the only place here that knows the modules that a use of the device imports, with triton."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .compiler_hook import teach_compiler
from .others import asked_for, make_segments_expandable, other_accelerator, step_aside
from .placeholder import PARTS, Placeholder
from .private_use import claim
from .versions import is_too_old

PARTS["registration"] = lambda: import_module("triton.backends.spirv.torch.registration")
PARTS["spirv_module"] = lambda: import_module("triton.backends.spirv.torch.device.spirv_module")
PARTS["storages"] = lambda: import_module("triton.backends.spirv.torch.device.storages")
PARTS["accelerator_functions"] = lambda: import_module("triton.backends.spirv.torch.device.accelerator_functions")
PARTS["random_state"] = lambda: import_module("triton.backends.spirv.torch.device.random_state")
PARTS["torch_streams"] = lambda: import_module("triton.backends.spirv.torch.device.torch_streams")


def compile_internals() -> Any:
    """torch/compile/internals/hooks.py."""
    return import_module("triton.backends.spirv.torch.compile.internals.hooks")


def _others_are_loaded() -> bool:
    """Whether torch calls other backends too, which may want the place: torch's list of them, as it is loading them."""
    points = sys._getframe(2).f_locals.get("backend_extensions")
    return points is not None and any(point.module != __name__.rpartition(".")[0] for point in points)


def autoload() -> None:
    """torch's entry point."""
    import torch

    if find_spec("triton") is None or is_too_old(torch.__version__):
        return
    teach_compiler(compile_internals)
    if torch._C._get_privateuse1_backend_name() != "privateuseone" or _others_are_loaded():
        return
    other = other_accelerator()
    if other == "cuda" and torch.version.hip is None:
        make_segments_expandable()
    if other is not None and not asked_for():
        step_aside(other)
        return
    claim(Placeholder())
