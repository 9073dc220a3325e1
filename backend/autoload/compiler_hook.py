"""torch's compiler learns of our devices when it is imported itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

#: Imported by all of torch's compiler before it asks anything about a device.
_TORCH_COMPILER = "torch.utils._triton"

#: Gives the module that teaches torch's compiler, which importing imports with triton (torch/compile/internals).
Internals = Callable[[], Any]


class _BeforeTorchCompiler(MetaPathFinder):
    """Makes torch's compiler know our devices when it is about to be imported."""

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's own spec, with what the installed hooks make of it."""
        if fullname != _TORCH_COMPILER:
            return None
        sys.meta_path.remove(self)
        self._internals().install()
        return find_spec(fullname)


def teach_compiler(internals: Internals) -> None:
    """Make torch's compiler know our devices, now or when it is imported. A second call does nothing."""
    if _TORCH_COMPILER in sys.modules:
        internals().install()
    elif not any(isinstance(finder, _BeforeTorchCompiler) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeTorchCompiler(internals))
