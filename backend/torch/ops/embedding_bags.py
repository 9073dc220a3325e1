"""embedding_bag: sums, means and maxima of rows of a table, a bag of indices each, and their gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ..device.tensor_memory import is_ours
from .bounds import CHECK, CHECK_SEGMENT, SEGMENT, fault_of, note_outside
from .dtypes import IN_SOURCE, NAMES, OnHost, computed_in, require
from .elementwise import Body, run
from .indexing import added_at, added_in, by_frequency, check_index, lines_added
from .reducing import SUM, reduce
from .searching import places_in

_SUM, _MEAN, _MAX = 0, 1, 2  # torch's EmbeddingBagMode
_Optional = torch.Tensor | None
#: Rows of a tile go through the indices of their bags; of equal numbers the first is the greatest, as is NaN. A row
#: that is no bag has bounds of no meaning, which are within the indices, too, once they were looked at.
_TEXT = """out = zero.to({number})
{best}size = count
{segment}size = rows
n = begin * 0
left = tl.max(tl.where(mask, end - begin, (end - begin) * 0))
at = begin
while left > 0:
    there = at < end
    index = tl.load(indices + at * index_step, mask=there, other=0).to(tl.int64)
    __CHECK__
    taken = there & (index != padding) & (bad == 0)
    use = mask & taken
    value = tl.load(self + index * step + zero, mask=use, other=0).to({number})
    {action}
    n += taken.to(tl.int64)
    at += 1
    left -= 1
{finish}"""
#: The first bag begins with the first index.
_SEGMENT = CHECK_SEGMENT.replace("(end > size)", "(end > size) | (first != 0)")
_OF_ROWS = CHECK.replace("fault + zero", "fault + at * 0").replace("mask & bad", "there & bad")
_TEXT = _TEXT.replace("    __CHECK__\n", "".join(f"    {line}\n" for line in _OF_ROWS.splitlines()))
_NONE = "best = zero.to(tl.int64) - 1\n"
_ADDED = "out += value"
_WEIGHTED = "out += value * tl.load(weights + at * weight_step, mask=there, other=0).to({number})"
_GREATEST = (
    "better = use & ((best < 0) | (value > out) | ((value != value) & (out == out)))\n"
    "    out = tl.where(better, value, out)\n"
    "    best = tl.where(better, index, best)"
)


def _embedding_bag(
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
    trains: bool = True,
) -> tuple[torch.Tensor, ...]:
    """(bags, the bag of each index if it ``trains``, indices that are in each bag, the rows of maxima)."""
    try:
        return _bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, trains)
    except OnHost:
        if is_ours(offsets) and not offsets.dtype.is_floating_point:
            note_outside(offsets, 0, indices.numel(), SEGMENT, "embedding_bag")
        raise


def _bags(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    mode: int,
    per_sample_weights: _Optional,
    include_last_offset: bool,
    padding_idx: int,
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
    starts = offsets.to(torch.int64)
    end = starts[1:] if include_last_offset else torch.cat((starts[1:], starts.new_full((1,), indices.numel())))
    begin = starts[:-1] if include_last_offset else starts
    compute, count = computed_in(weight.dtype), begin.numel()
    number = IN_SOURCE[NAMES[compute]]
    out = torch.empty((count, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    results = {"out": out, "n": torch.empty(out.shape, dtype=torch.int64, device=weight.device)}
    if mode == _MAX:
        results["best"] = torch.empty_like(results["n"])
    action = _GREATEST if mode == _MAX else _ADDED if per_sample_weights is None else _WEIGHTED.format(number=number)
    finish = f"out = out / tl.maximum(n, 1).to({number})" if mode == _MEAN else ""
    operands: dict[str, Any] = {"begin": begin[:, None], "end": end[:, None], "first": starts[:1, None]}
    operands |= {"self": weight[0].expand(out.shape), "fault": fault_of(weight.device, "embedding_bag")}
    counts = {"rows": weight.shape[0], "step": weight.stride(0), "padding": padding_idx, "count": indices.numel()}
    for name, step, tensor in (("indices", "index_step", indices), ("weights", "weight_step", per_sample_weights)):
        if tensor is not None:
            places = tensor if tensor.numel() else tensor.new_empty(1)  # of no index none is read
            operands[name] = places.as_strided(out.shape, (0, 0), places.storage_offset())
            counts[step] = tensor.stride(0)
    body = Body(
        _TEXT.format(best=_NONE if mode == _MAX else "", segment=_SEGMENT, number=number, action=action, finish=finish),
        frozenset(("begin", "end", "first")),
        frozenset(("self", "fault", "indices", "weights")),
    )
    run(body, results, operands, compute, counts)
    sizes = results["n"][:, 0].contiguous()
    bags = best = sizes.new_empty(0)
    if trains:
        bags = places_in(starts[:count], torch.arange(indices.numel(), device=weight.device), True) - 1
    return out, bags, sizes, results.get("best", best)


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


def _backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum_indices: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    *rest: Any,
    **more: Any,
) -> torch.Tensor:
    if sparse:
        raise OnHost("a sparse gradient")
    given = indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode
    weights = rest[0] if rest else more.get("per_sample_weights")
    padding = rest[1] if len(rest) > 1 else more.get("padding_idx", -1)
    return _dense_backward(grad, *given, weights, padding)


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
