"""embedding_bag: sums, means and maxima of rows of a table, a bag of indices each, and their gradients."""

# mypy: allow-untyped-defs
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from ..device.tensor_memory import is_ours
from . import bounds
from .bounds import fault_of, note_outside
from .dtypes import OnHost, require
from .indexing import added_at, added_in, by_frequency, check_index, lines_added
from .launching import grid_of, launch
from .reducing import SUM, reduce
from .searching import places_in

_SUM, _MEAN, _MAX = 0, 1, 2  # torch's EmbeddingBagMode
INDEX, SEGMENT = tl.constexpr(bounds.INDEX), tl.constexpr(bounds.SEGMENT)
_Optional = torch.Tensor | None
_BLOCK = 256  # columns of a program


@triton.jit
def bag_kernel(
    out, sizes, best, weight, indices, offsets, weights, fault, bags, width, rows, count, padding, stride_row,
    stride_column, stride_index, stride_weight, MODE: tl.constexpr, WEIGHTED: tl.constexpr, LAST: tl.constexpr,
    PADDED: tl.constexpr, WIDE: tl.constexpr, ONE: tl.constexpr, EVEN: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """A bag's columns: ``ONE`` block, whole blocks if ``EVEN``. Of equal numbers the first is the greatest, as is NaN.
    Without ``PADDED`` no index is left out."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    blocks = 1 if ONE else (width + BLOCK - 1) // BLOCK
    bag, first = program // blocks, program % blocks * BLOCK
    there = bag < bags
    begin = tl.load(offsets + bag, mask=there, other=0).to(tl.int64)
    end = tl.load(offsets + bag + 1, mask=there & (LAST | (bag + 1 < bags)), other=count).to(tl.int64)
    wrong = (begin < 0) | (end < begin) | (end > count) | (tl.load(offsets) != 0)
    tl.store(fault, SEGMENT, mask=there & wrong)
    end = tl.where(there & (wrong == 0), end, begin)
    column = first + tl.arange(0, BLOCK)
    mask = column < width
    total = tl.zeros([BLOCK], tl.float64 if WIDE else tl.float32)
    chosen = tl.zeros([BLOCK], tl.int64) - 1
    n = begin * 0
    outside = begin < 0
    for at in range(begin, end):
        index = tl.load(indices + at * stride_index).to(tl.int64)
        bad = (index < 0) | (index >= rows)
        outside |= bad
        taken = (index != padding) & (bad == 0)
        place = weight + tl.where(bad, 0, index) * stride_row + column * stride_column
        value = (tl.load(place) if EVEN else tl.load(place, mask=mask, other=0)).to(total.dtype)
        if PADDED:
            value = tl.where(taken, value, 0)
        if MODE == 2:
            better = taken & ((chosen < 0) | (value > total) | ((value != value) & (total == total)))
            total = tl.where(better, value, total)
            chosen = tl.where(better, index, chosen)
        elif WEIGHTED:
            total += value * tl.load(weights + at * stride_weight).to(total.dtype)
        else:
            total += value
        n += taken.to(tl.int64)
    tl.store(fault, INDEX, mask=outside)
    if MODE == 1:
        total = total / tl.maximum(n, 1).to(total.dtype)
    place = bag.to(tl.int64) * width + column
    tl.store(out + place, total.to(out.dtype.element_ty), mask=mask & there)
    tl.store(sizes + bag, n, mask=there & (first == 0))
    if MODE == 2:
        tl.store(best + place, chosen, mask=mask & there)


def _embedding_bag(
    weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, *how: Any, trains: bool = True
) -> tuple[torch.Tensor, ...]:
    """(bags, the bag of each index if it ``trains``, indices that are in each bag, the rows of maxima)."""
    try:
        return _bags(weight, indices, offsets, *how, trains=trains)
    except OnHost:
        if is_ours(offsets) and not offsets.dtype.is_floating_point:
            note_outside(offsets, 0, indices.numel(), bounds.SEGMENT, "embedding_bag")
        raise


def _bags(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: _Optional = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    trains: bool,
) -> tuple[torch.Tensor, ...]:
    for index in (indices, offsets):
        check_index(index, weight)
    require(weight.dtype, weight.device.index or 0)
    if weight.dim() != 2 or indices.dim() != 1 or offsets.dim() != 1 or not offsets.numel():
        raise OnHost("a table, indices or offsets that are refused")
    if not weight.dtype.is_floating_point or (per_sample_weights is not None and mode != _SUM) or not weight.numel():
        raise OnHost("a table or weights that are refused")
    if per_sample_weights is not None and (
        per_sample_weights.dtype != weight.dtype or per_sample_weights.shape != indices.shape
    ):
        raise OnHost("weights that are refused")
    bags, width = offsets.numel() - include_last_offset, weight.shape[1]
    out, sizes = weight.new_empty((bags, width)), offsets.new_empty(bags, dtype=torch.int64)
    best = offsets.new_empty(out.shape if mode == _MAX else 0, dtype=torch.int64)
    weights = weight if per_sample_weights is None else per_sample_weights  # no weights are read
    given = indices if indices.numel() else sizes  # of no index none is read
    tensors = out, sizes, best, weight, given, offsets.contiguous(), weights, fault_of(weight.device, "embedding_bag")
    numbers = bags, width, weight.shape[0], indices.numel(), padding_idx
    form = {"MODE": mode, "WEIGHTED": per_sample_weights is not None, "LAST": include_last_offset}
    block = min(_BLOCK, triton.next_power_of_2(width))
    form |= {"PADDED": padding_idx >= 0, "WIDE": weight.dtype == torch.float64}
    form |= {"ONE": width <= block, "EVEN": width % block == 0, "BLOCK": block}
    grid, strides = grid_of(bags * -(-width // form["BLOCK"])), (*weight.stride(), given.stride(0), weights.stride(0))
    launch(bag_kernel, grid, (*tensors, *numbers, *strides), form, num_warps=1)
    of_index = sizes.new_empty(0)
    if trains:
        starts = offsets[:bags].to(torch.int64)
        of_index = places_in(starts, torch.arange(indices.numel(), device=weight.device), True) - 1
    return out, of_index, sizes, best


def _dense_backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum_indices: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: _Optional,
    padding_idx: int = -1,
) -> torch.Tensor:
    check_index(indices, grad)
    if not grad.dtype.is_floating_point:
        raise OnHost("gradients that are not floats")
    total = torch.zeros(num_weights, grad.shape[1], dtype=added_in(grad.dtype, grad.device), device=grad.device)
    if mode == _MAX:
        found = maximum_indices.clamp(min=0)
        added_at("embedding_bag", total, 0, found, torch.where(maximum_indices < 0, torch.zeros_like(grad), grad))
        return total.to(grad.dtype)
    bags = offset2bag.to(torch.int64)
    if mode == _MEAN:
        grad = grad / bag_size.clamp(min=1).to(grad.dtype)[:, None]
    rows = grad.index_select(0, bags)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        rows = by_frequency("embedding_bag", rows, indices, num_weights)
    lines_added("embedding_bag", total, indices, rows, padding_idx)
    return total.to(grad.dtype)


def _backward(grad: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, *args: Any) -> torch.Tensor:
    """``args``: as _dense_backward()'s, and behind the mode whether the gradient is to be sparse."""
    *given, sparse = args[:7]
    if sparse:
        raise OnHost("a sparse gradient")
    return _dense_backward(grad, indices, *given, *args[7:])


def _weights_backward(
    grad: torch.Tensor,
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    mode: int,
    padding_idx: int = -1,
) -> torch.Tensor:
    """The gradient of each index's weight: its row times that of its bag."""
    check_index(indices, grad)
    if mode != _SUM:
        raise OnHost("weights of a mode that is refused")
    rows = {"a": grad.index_select(0, offset2bag.to(torch.int64)), "b": weight.index_select(0, indices)}
    found = reduce("a * b", SUM, rows, (1,), dtype=grad.dtype)
    return found.masked_fill_(indices == padding_idx, 0)


TABLE: dict[str, Callable[..., Any]] = {
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": functools.partial(_embedding_bag, trains=False),
    "_embedding_bag_backward": _backward,
    "_embedding_bag_dense_backward": _dense_backward,
    "_embedding_bag_per_sample_weights_backward": _weights_backward,
}
