"""A change to what torch keeps private, and what becomes of one whose place has moved."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from ...autoload import NAME
from ..broken import BROKEN

#: Versions of torch that the tests were run with.
TORCH_VERSIONS = ("2.13",)

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hook:
    """A change to a module of torch's, made when torch imports it. ``needs``: dotted names that must be there."""

    name: str
    module: str
    needs: tuple[str, ...]
    change: Callable[[Any], None]

    def missing(self, module: ModuleType) -> list[str]:
        """Which of ``needs`` the module lacks."""
        absent = []
        for path in self.needs:
            value: Any = module
            for part in path.split("."):
                value = getattr(value, part, None)
            if value is None:
                absent.append(path)
        return absent

    def apply(self, module: ModuleType) -> None:
        """Makes the change, or notes what it lacks."""
        absent = self.missing(module)
        if not absent:
            self.change(module)
            return
        BROKEN[self.name] = (
            f"torch {torch.__version__} has no {', '.join(f'{self.module}.{path}' for path in absent)}; "
            f"this backend was written for torch {', '.join(TORCH_VERSIONS)}"
        )
        _log.warning("torch.compile for %s lacks the hook '%s': %s", NAME, self.name, BROKEN[self.name])
