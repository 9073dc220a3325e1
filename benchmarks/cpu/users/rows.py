"""A row: a kernel, and the same by other means."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

Run = Callable[[], object]


@dataclass
class Row:
    """``run`` computes ``out``; ``others``: the same by name; ``expected``: of float64, with the largest absolute
    ``error`` that is allowed."""

    name: str
    run: Run
    out: torch.Tensor
    expected: Any
    others: dict[str, Run]
    error: float = 1e-4


@dataclass
class Data:
    """Random tensors, the same each time. ``inductor``: torch's functions are compiled, too."""

    inductor: bool = False
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def normal(self, *shape: int) -> torch.Tensor:
        """Of the normal distribution, float32."""
        return torch.from_numpy(self.random.standard_normal(shape, dtype=np.float32))

    def integers(self, most: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Integers from 0 below ``most``."""
        return torch.from_numpy(self.random.integers(0, most, shape)).to(dtype)

    def sides(self, function: Callable[..., Any], *arguments: Any, **more: Run | None) -> dict[str, Run]:
        """What torch's function takes, and ``more`` by name: None is left out."""
        found: dict[str, Run] = {"torch": lambda: function(*arguments)}
        if self.inductor:
            compiled = torch.compile(function, dynamic=False)
            found["inductor"] = lambda: compiled(*arguments)
        return found | {name: run for name, run in more.items() if run is not None}


def numba(function: Callable[..., Any], *arguments: Any) -> Run | None:
    """A call of a function that numba compiles; None where numba is not installed. Tensors are passed as arrays."""
    if importlib.util.find_spec("numba") is None:
        return None
    import numba as package

    compiled = package.njit(function, fastmath=True)
    arrays = [value.numpy() if isinstance(value, torch.Tensor) else value for value in arguments]
    return lambda: compiled(*arrays)
