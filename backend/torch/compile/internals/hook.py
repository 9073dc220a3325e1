"""A change to torch's private parts, and what happens if torch has moved the changed place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ....autoload.placeholder import NAME
from ....autoload.versions import release
from ..broken import BROKEN

#: Versions of torch that the tests were run with.
TORCH_VERSIONS = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

_log = logging.getLogger(__name__)


def first_module(*names: str) -> str:
    """The first of ``names`` ("torch.…") that is a file or folder of this torch, "" if none is. A name that only
    stands for another module, so that it is never imported, is none."""
    root = Path(torch.__file__).parent
    for name in filter(None, names):
        path = root.joinpath(*name.split(".")[1:])
        if path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file():
            return name
    return ""


@dataclass(frozen=True)
class Hook:
    """A change to a module of torch's, made when torch imports it. ``needs``: dotted names that must be there.
    ``formerly``: the module's name in older versions. ``since``, ``until``: the first torch that has what is changed,
    and the first that no longer has: others work without. ``otherwise``: what does not work where torch lacks what the
    change needs; "" of a hook without which the device would not compile, or compute wrong values: it is refused."""

    module: str
    needs: tuple[str, ...]
    change: Callable[[Any], None]
    formerly: str = ""
    since: str = ""
    until: str = ""
    otherwise: str = ""

    @property
    def name(self) -> str:
        """What messages call it: the change's own name."""
        return self.change.__name__

    @property
    def is_due(self) -> bool:
        """Whether this torch has what it changes."""
        here = release(torch.__version__)
        return not (self.since and here < release(self.since)) and not (self.until and here >= release(self.until))

    @property
    def place(self) -> str:
        """The module's name in this torch, "" if it has none."""
        return first_module(self.module, self.formerly)

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
        if absent:
            self.leave_out([f"{self.module}.{path}" for path in absent])
        else:
            self.change(module)

    def leave_out(self, absent: Sequence[str]) -> None:
        """Notes what this torch lacks of what the change needs, and what it costs."""
        lacks = (
            f"torch {torch.__version__} has no {', '.join(absent)}; "
            f"this backend was tried with torch {', '.join(TORCH_VERSIONS)}"
        )
        if self.otherwise:
            _log.warning("torch.compile for %s lacks the hook '%s': %s; %s", NAME, self.name, self.otherwise, lacks)
            return
        BROKEN[self.name] = lacks
        _log.warning("torch.compile for %s lacks the hook '%s': %s", NAME, self.name, lacks)
