"""Reductions of elements that an index, lengths or offsets group together: scatter_reduce, index_reduce,
segment_reduce.

Elements are put in the order of what they belong to; then each result goes through its own, so that it is the same each
time, and right for every type and what is not a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..device.tensor_memory import is_ours
from .bounds import CHECK_SEGMENT, SEGMENT, fault_of, note_outside
from .dtypes import IN_SOURCE, NAMES, OnHost, computed_in
from .elementwise import Body, run
from .indexing import added_at, along, check_index, fitting, flat, lines_of
from .pointwise import of_type
from .searching import places_in
from .sorting import ordered

#: Reduction → (what changes nothing, how two are combined, what a mean divides by the count for).
_FOLDS = {
    "sum": ("0", "acc + value"),
    "mean": ("0", "acc + value"),
    "prod": ("1", "acc * value"),
    "amax": ("fn.lowest(acc)", "fn.maximum(acc, value)"),
    "amin": ("fn.highest(acc)", "fn.minimum(acc, value)"),
}
_NAME = "segment_reduce"
_NAMES = {"max": "amax", "min": "amin"}
_TEXT = """{check}acc = zero.to({number})
acc = acc + {start}
n = end - begin
left = tl.max(tl.where(mask, n, n * 0))
at = begin + zero
while left > 0:
    use = mask & (at < end)
    value = tl.load(source + at * step + zero, mask=use).to({number})
    acc = tl.where(use, {combined}, acc).to({number})
    at += 1
    left -= 1
{finish}"""
_CHECKED = f"size = source_size\n{CHECK_SEGMENT}"


def _kind(how: str, dtype: torch.dtype) -> str:
    """The reduction by its name in _FOLDS; for bool, the greatest or the smallest."""
    how = _NAMES.get(how, how)
    if how not in _FOLDS or dtype not in NAMES or (how == "mean" and dtype == torch.bool):
        raise OnHost(f"the reduction {how} of {dtype}")
    return {"sum": "amax", "prod": "amin"}.get(how, how) if dtype == torch.bool else how


def reduced(
    out: Tensor,
    dim: int,
    how: str,
    source: Tensor,
    begin: Tensor,
    end: Tensor,
    mine: str | None,
    initial: float | None = None,
    checked: str | None = None,
) -> None:
    """Each element of ``out`` from the elements of ``source`` at begin … end along ``dim``. These are int64 and
    broadcast to it. ``mine``: the old value is 'included', or 'kept' if there are no elements; None if every
    element is written, without elements with ``initial`` or the neutral element. ``checked``: the operation whose
    callers say where elements begin and end, which may be wrong."""
    compute = computed_in(out.dtype)
    number, how = IN_SOURCE[NAMES[compute]], _kind(how, out.dtype)
    start, combined = _FOLDS[how]
    if mine == "included":
        start = "self"
    elif mine is None and initial is not None:
        start = "initial"
    finish = "out = acc"
    if how == "mean":
        count = f"tl.maximum({'n + 1' if mine == 'included' else 'n'}, 1).to({number})"
        finish = f"out = {'acc / ' + count if compute.is_floating_point else f'fn.floor_div(acc, {count})'}"
        if mine is None:  # an initial number is one more in the sum, and the mean where there is nothing else
            finish += f"\nout = tl.where(n > 0, out, {'acc / 0.0' if initial is None else 'initial'})"
    if mine == "kept":
        finish += "\nout = tl.where(n > 0, out, self)"
    text = _TEXT.format(check=_CHECKED if checked else "", number=number, start=start, combined=combined, finish=finish)
    operands: dict[str, Any] = {"begin": begin, "end": end, "source": flat(source, dim, out.shape)}
    if mine is not None:
        operands["self"] = out
    if start == "initial":
        operands["initial"] = float(initial or 0)
    counts = {"step": source.stride(dim)}
    if checked:
        operands["fault"] = fault_of(out.device, checked)
        counts["source_size"] = source.shape[dim]
    body = Body(text, frozenset(("begin", "end")), frozenset(("source", "fault")))
    run(body, {"out": out}, operands, compute, counts)


def _scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Tensor
) -> Tensor:
    check_index(index, self)
    _kind(reduce, self.dtype)
    if src.dtype != self.dtype or src.device != self.device:
        raise OnHost("tensors of two types or devices")
    dim = fitting(dim, index, self, src)
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    if not index.numel():
        return out
    place, index, src = lines_of(out, index, src)
    src = src[tuple(slice(n) for n in index.shape)]
    if reduce == "sum" and include_self and place.dtype == torch.float32:
        added_at("scatter_reduce", place, dim, index, src)
        return out
    _check_range(index, place.shape[dim])
    rows, order = ordered(index.to(torch.int64), dim, False)
    sorted_source = src.movedim(dim, -1).gather(-1, order.to(torch.int64))
    numbers = torch.arange(place.shape[dim], device=self.device).expand(*rows.shape[:-1], -1)
    begin, end = (places_in(rows, numbers.contiguous(), right) for right in (False, True))
    target = place[tuple(slice(None if d == dim else n) for d, n in enumerate(index.shape))].movedim(dim, -1)
    reduced(target, target.dim() - 1, reduce, sorted_source, begin, end, "included" if include_self else "kept")
    return out


def _check_range(index: Tensor, size: int) -> None:
    """Raises OnHost for an index that is out of range: the CPU says so."""
    low, high = torch.stack((index.amin(), index.amax())).tolist()
    if low < 0 or high >= size:
        raise OnHost("an index that is out of range")


def _index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor
) -> Tensor:
    check_index(index, self)
    _kind(reduce, self.dtype)
    if source.dtype != self.dtype or source.device != self.device:
        raise OnHost("tensors of two types or devices")
    along(self, dim, index, source)
    if out is not self:
        of_type(out, self.dtype, self.shape).copy_(self)
    if not index.numel() or not out.numel():
        return out
    place, source = lines_of(out, source)
    dim %= place.dim()
    _check_range(index, place.shape[dim])
    line, order = ordered(index.view(-1).to(torch.int64), 0, False)
    numbers = torch.arange(place.shape[dim], device=self.device)
    after = (1,) * (place.dim() - 1 - dim)
    begin, end = (places_in(line, numbers, right).view(-1, *after) for right in (False, True))
    reduced(place, dim, reduce, source.index_select(dim, order), begin, end, "included" if include_self else "kept")
    return out


def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    given = offsets if lengths is None else lengths
    try:
        if indices is not None:
            raise OnHost("segments that are refused")
        ends = _ends(data, lengths, offsets, axis)
    except OnHost:
        if (
            given is not None
            and is_ours(given)
            and not given.dtype.is_floating_point
            and -data.dim() <= axis < data.dim()
        ):
            note_outside(given, 0, data.shape[axis], SEGMENT, _NAME)
        raise
    if lengths is not None and not unsafe:
        note_outside(ends.select(axis, -1), data.shape[axis], data.shape[axis], SEGMENT, _NAME)
    begin, end = _begins_and_ends(ends, data, axis)
    shape = (*data.shape[:axis], ends.shape[axis] - 1, *data.shape[axis + 1 :])
    out = torch.empty(shape, dtype=data.dtype, device=data.device)
    reduced(out, axis, reduce, data, begin, end, None, initial, _NAME)
    return out


def _ends(data: Tensor, lengths: Tensor | None, offsets: Tensor | None, axis: int) -> Tensor:
    """Where segments along ``axis`` end, after where the first begins: int64, of the dimensions up to that."""
    given = offsets if lengths is None else lengths
    if (lengths is None) == (offsets is None) or not data.numel() or axis < 0:
        raise OnHost("segments that are refused")
    if given is None or given.dim() != axis + 1 or given.shape[:axis] != data.shape[:axis] or not given.numel():
        raise OnHost("segments that are refused")
    if not data.dtype.is_floating_point or given.dtype not in (torch.int64, torch.int32) or given.device != data.device:
        raise OnHost("segments that are refused, or numbers that are not floats")
    return given.to(torch.int64) if lengths is None else _running(given)


def _begins_and_ends(ends: Tensor, data: Tensor, axis: int) -> list[Tensor]:
    """Where segments begin and end, in a shape that broadcasts to the results of ``data``."""
    count, after = ends.shape[axis] - 1, (1,) * (data.dim() - 1 - axis)
    return [ends.narrow(axis, at, count).reshape(*ends.shape[:axis], count, *after) for at in (0, 1)]


def _segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: Any = None,
) -> Tensor:
    """The gradient of ``data``: 0 of elements that are in no segment."""
    given = offsets if lengths is None else lengths
    if given is not None and is_ours(given) and -data.dim() <= axis < data.dim():
        note_outside(given, 0, data.shape[axis], SEGMENT, _NAME)
    ends, kind = _ends(data, lengths, offsets, axis), computed_in(data.dtype)
    if not grad.numel():
        return torch.zeros(data.shape, dtype=data.dtype, device=data.device)
    begin, end = _begins_and_ends(ends, data, axis)
    numbers = torch.arange(data.shape[axis], device=data.device).expand(*ends.shape[:axis], -1).contiguous()
    place = places_in(ends.contiguous(), numbers, True) - 1  # of each element, the segment that it is in
    inside = (place >= 0) & (place < ends.shape[axis] - 1)
    after = (1,) * (data.dim() - 1 - axis)
    place, inside = (x.view(*x.shape, *after).expand(data.shape) for x in (torch.where(inside, place, 0), inside))

    def of_each(results: Tensor) -> Tensor:
        return results.expand(grad.shape).gather(axis, place).to(kind)

    def together(how: str, elements: Tensor, start: float | None = None) -> Tensor:
        out = torch.empty(grad.shape, dtype=elements.dtype, device=data.device)
        reduced(out, axis, how, elements, begin, end, None, start, _NAME)
        return of_each(out)

    how, slope, x = _kind(reduce, data.dtype), of_each(grad), data.to(kind)
    if how == "mean":
        slope = slope / of_each((end - begin).clamp(min=1))
    elif how in ("amax", "amin"):
        chosen = (x == of_each(output)) | x.isnan()
        count = together("sum", chosen.to(kind))
        slope = torch.where((count > 1) & (slope > 0), slope / count, slope)  # torch shares no negative ones
        slope = torch.where(chosen, slope, 0)
    elif how == "prod":
        zero, nan = x == 0, x.isnan()
        others = together("prod", torch.where(zero | nan, 1, x), initial)
        zeros, nans = (together("sum", one.to(kind)) - one.to(kind) for one in (zero, nan))
        others = torch.where(zeros > 0, others * 0, others)
        others = torch.where(nans > 0, float("nan"), others)
        slope = torch.where(zero | nan, slope * others, slope * of_each(output) / x)
    return torch.where(inside, slope, 0).to(data.dtype)


def _running(lengths: Tensor) -> Tensor:
    ends = lengths.to(torch.int64).cumsum(-1)
    return torch.nn.functional.pad(ends, (1, 0))


TABLE: dict[str, Callable[..., Any]] = {
    "scatter_reduce.two_out": _scatter_reduce,
    "index_reduce.out": _index_reduce,
    "segment_reduce": _segment_reduce,
    "_segment_reduce_backward": _segment_reduce_backward,
}
