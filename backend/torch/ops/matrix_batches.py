"""Batches of matrices: how they lie in memory, and how results get into a caller's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from .dtypes import OnHost, require
from .strided_shapes import resized

#: Types of matrices that are decomposed.
_TYPES = (torch.float32, torch.float64)


def require_matrices(*given: torch.Tensor) -> None:
    """Raises OnHost unless all are matrices of one type that the device decomposes."""
    for a in given:
        if a.dim() < 2 or a.dtype not in _TYPES or a.dtype != given[0].dtype:
            raise OnHost("what is no matrix, or of other numbers")
    require(given[0].dtype, given[0].device.index or 0)


def count_of(a: torch.Tensor) -> int:
    """How many matrices there are in (…, m, n)."""
    return prod(a.shape[:-2])


def as_columns(a: torch.Tensor) -> torch.Tensor:
    """A copy of (…, m, n) as (…, n, m): a matrix's columns follow each other in memory."""
    return a.mT.clone(memory_format=torch.contiguous_format)


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
    same = out.data_ptr() == value.data_ptr() and out.stride() == value.stride()
    return out if same and value.numel() else out.copy_(value)


def put_numbers(out: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Copy what is not a matrix into an output. Raises OnHost for an output of another type."""
    _check(out, value)
    return resized(out, value.shape).copy_(value)


def _check(out: torch.Tensor, value: torch.Tensor) -> None:
    if out.dtype != value.dtype:
        raise OnHost("an output that is refused")


def columns_for(out: torch.Tensor, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """Memory (…, n, m) for a result (…, m, n) of the type of ``like``: that of ``out``, where its columns follow each
    other. put() of its ``mT`` finishes. Raises OnHost for an output of another type."""
    _check(out, like)
    in_order_of_columns(out, shape)
    if out.mT.is_contiguous():
        return out.mT
    return like.new_empty((*shape[:-2], shape[-1], shape[-2]))
