"""How results of matrices get into a caller's tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .dtypes import OnHost
from .strided_shapes import resized, same_view


def in_order_of_columns(out: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """``out`` with the shape of a result. If it has to be resized, its columns follow each other, as the CPU's."""
    if out.shape != torch.Size(shape):
        resized(out, shape)
        if out.dim() > 1 and out.is_floating_point():
            out.as_strided_(out.shape, torch.empty_like(out.mT, device="meta").contiguous().mT.stride())
    return out


def put(out: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Copy matrices into an output, of which they may be the memory. Raises OnHost for an output of another type."""
    _check(out, value)
    in_order_of_columns(out, value.shape)
    return out if same_view(out, value) else out.copy_(value)


def put_numbers(out: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Copy what is not a matrix into an output. Raises OnHost for an output of another type."""
    _check(out, value)
    return resized(out, value.shape).copy_(value)


def _check(out: torch.Tensor, value: torch.Tensor) -> None:
    if out.dtype != value.dtype:
        raise OnHost("an output that is refused")
