"""The exponential of matrices, composed of products: Taylor's polynomial of a power of two's part, squared as often.

Its differential, and so its gradient, is torch's own: the exponential of larger matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .dtypes import OnHost, require

#: Type → the degree of the polynomial, whose rest is below half a unit in the last place for matrices of norm 1/2.
_DEGREES = {torch.float32: 9, torch.float64: 15, torch.complex64: 9, torch.complex128: 15}


def _matrix_exp(self: torch.Tensor) -> torch.Tensor:
    kind = self.dtype  # what torch's CPU makes of halves is mostly NaN
    if self.dim() < 2 or self.shape[-1] != self.shape[-2] or kind not in _DEGREES:
        raise OnHost("matrices that are refused")
    require(self.real.dtype, self.device.index or 0)
    if not self.numel():
        return torch.empty_like(self, memory_format=torch.contiguous_format)
    matrices = self
    if self.shape[-1] == 1:
        return self.exp().contiguous()
    norms = matrices.abs().sum(-2).amax(-1)[..., None, None]
    squarings = torch.where(norms > 0.5, norms.log2().ceil() + 1, 0.0)
    most = squarings.amax().item()
    if not math.isfinite(most):  # an infinity, or NaN, is in all of the result
        squarings = torch.where(squarings.isfinite(), squarings, 0.0)
        matrices = torch.where(norms.isfinite(), matrices, math.nan)
        most = squarings.amax().item()
    # In two steps: a power of two may be past the largest number.
    half = (squarings / 2).floor()
    part = matrices * (-half).exp2() * (half - squarings).exp2()
    one = torch.eye(self.shape[-1], dtype=kind, device=self.device)
    result = one + part / _DEGREES[kind]
    for order in range(_DEGREES[kind] - 1, 0, -1):
        result = one + part @ result / order
    for done in range(int(most)):
        result = torch.where(squarings > done, result @ result, result)
    return result


TABLE: dict[str, Callable[..., Any]] = {"linalg_matrix_exp": _matrix_exp}
