"""``nn.utils.parametrizations.weight_norm``: weights that are a direction ``v`` times a magnitude ``g`` along
one dimension, w = g v / |v|, with |v| over all other dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dtypes import OnHost


def _others(v: torch.Tensor, dim: int) -> list[int]:
    if not v.dtype.is_floating_point or not v.numel() or dim not in (0, v.dim() - 1):
        raise OnHost("weights that are refused")
    return [d for d in range(v.dim()) if d != dim]


def _weight_norm(v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """(w, |v|)."""
    norms = torch.linalg.vector_norm(v, 2, _others(v, dim), keepdim=True)
    return v * (g / norms), norms


def _backward(
    grad_w: torch.Tensor, saved_v: torch.Tensor, saved_g: torch.Tensor, saved_norms: torch.Tensor, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of v and g: with s = the sum of grad w v, (g / |v|) (grad w - v s / |v|^2) and s / |v|."""
    total = (grad_w * saved_v).sum(_others(saved_v, dim), keepdim=True)
    grad_v = (saved_g / saved_norms) * (grad_w - saved_v * (total / (saved_norms * saved_norms)))
    return grad_v, total / saved_norms


TABLE: dict[str, Callable[..., Any]] = {
    "_weight_norm_interface": _weight_norm,
    "_weight_norm_interface_backward": _backward,
}
