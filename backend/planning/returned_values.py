"""Kernels that return a value, which a launch gives to nobody: a warning at the line of the ``return``."""

from __future__ import annotations

import warnings
from typing import Any

from ..transforms.kernel_function import kernel_of
from ..ttgir.ir import Module

#: What was warned of, so that a kernel that is planned by several schedules is named once.
_WARNED: dict[Any, Any] = {}


def warn_of_returned_values(source: Module) -> None:
    """Warns (UserWarning) where the kernel of ``source`` returns values. Upstream discards them without a word."""
    kernel = kernel_of(source)
    if not kernel.type.results:
        return
    for operation in kernel.walk():
        # Where the source has no `return`, the front end makes one of a value that does not exist.
        if operation.name == "tt.return" and any(_is_made(value.owner) for value in operation.operands):
            warnings.warn_explicit(
                f"kernel '{kernel.name}' returns a value, which a launch discards: write it to a tensor with tl.store",
                UserWarning,
                operation.location.file or "kernel",
                operation.location.line,
                registry=_WARNED,
            )
            return


def _is_made(owner: Any) -> bool:
    return getattr(owner, "name", "") != "ub.poison"
