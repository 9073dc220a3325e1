"""Searches in sorted numbers, and what builds on them: searchsorted, bucketize, isin, unique, repeat_interleave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .dtypes import NAMES, OnHost, computed_in
from .elementwise import Body, run
from .pointwise import of_type
from .selection import counted, places
from .sorting import ordered

#: Test elements that are compared with one by one, instead of a search.
_FEW = 16
#: Elements of slices that are sorted one by one.
_MOST_COLUMNS = 64
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
#: Halves [low, end) of the row that begins at ``begin`` until nothing is left.
_SEARCH = """low = zero.to(tl.int64)
end = low + size
left = size
while left > 0:
    middle = (low + end) // 2
    open = mask & (low < end)
    other = tl.load(sorted + (begin + middle), mask=open).to(value.dtype)
    before = {before}
    low = tl.where(open & before, middle + 1, low)
    end = tl.where(open & (before == 0), middle, end)
    left = left // 2
out = low"""
#: torch's own comparisons of a search to the left and to the right, and one to the left in which NaN is the greatest.
_LEFT, _RIGHT = "(other >= value) == 0", "(other > value) == 0"
_IN_ORDER = "(other < value) | ((value != value) & (other == other))"


def _searched(boundaries: torch.Tensor, values: torch.Tensor, before: str, out: torch.Tensor) -> torch.Tensor:
    """Where in each row of the contiguous ``boundaries`` each number of the same row of ``values`` belongs."""
    kind = computed_in(boundaries.dtype)
    if boundaries.dtype != values.dtype or boundaries.dtype not in NAMES or values.dtype == torch.bool:
        raise OnHost("numbers of two types")
    if boundaries.device != values.device:
        raise OnHost("numbers on two devices")
    if not boundaries.numel():
        return out.zero_()
    size = boundaries.shape[-1]
    rows = boundaries.numel() // size
    begin = torch.zeros((), dtype=torch.int64, device=values.device)
    if boundaries.dim() > 1:
        begin = (torch.arange(rows, device=values.device) * size).view(*boundaries.shape[:-1], 1)
    operands = {
        "value": values,
        "begin": begin,
        "sorted": boundaries.view(-1).as_strided(values.shape, (0,) * values.dim()),
    }
    body = Body(_SEARCH.format(before=before), frozenset(("begin",)), frozenset(("sorted",)))
    run(body, {"out": out}, operands, kind, {"size": size})
    return out


def places_in(boundaries: torch.Tensor, values: torch.Tensor, right: bool) -> torch.Tensor:
    """Where in each sorted row of contiguous ``boundaries`` each number of the same row of ``values`` goes: int64."""
    out = torch.empty(values.shape, dtype=torch.int64, device=values.device)
    return _searched(boundaries, values, _RIGHT if right else _LEFT, out)


def _searchsorted(
    sorted_sequence: torch.Tensor,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    values = self if isinstance(self, torch.Tensor) else torch.tensor(self, device=sorted_sequence.device)
    if side not in (None, "left", "right") or (side == "left" and right) or not sorted_sequence.dim():
        raise OnHost("a side that is refused")
    if sorted_sequence.dim() > 1 and sorted_sequence.shape[:-1] != values.shape[:-1]:
        raise OnHost("shapes that are refused")
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape or sorter.dtype != torch.int64:
            raise OnHost("an order that is refused")
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    kind = torch.int32 if out_int32 else torch.int64
    if out is None:
        out = torch.empty(values.shape, dtype=kind, device=sorted_sequence.device)
    of_type(out, kind, values.shape)
    return _searched(sorted_sequence.contiguous(), values, _RIGHT if right or side == "right" else _LEFT, out)


def _bucketize(
    self: Any,
    boundaries: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    if boundaries.dim() != 1:
        raise OnHost("boundaries that are refused")
    return _searchsorted(boundaries, self, out_int32=out_int32, right=right, out=out)


def _isin(
    elements: torch.Tensor,
    test_elements: torch.Tensor,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: torch.Tensor,
) -> torch.Tensor:
    kind = torch.result_type(elements, test_elements)
    if kind not in NAMES or elements.device != test_elements.device or kind == torch.bool:
        raise OnHost("numbers that are refused, or on two devices")
    of_type(out, torch.bool, elements.shape)
    tests, elements = test_elements.reshape(-1).to(kind), elements.to(kind)
    if not tests.numel():
        return out.fill_(invert)
    if tests.numel() <= _FEW:
        found = (elements.unsqueeze(-1) == tests).any(-1)
    else:
        line, _ = ordered(tests, 0, False)
        at = torch.empty(elements.shape, dtype=torch.int64, device=elements.device)
        found = line[_searched(line, elements, _IN_ORDER, at).clamp_(max=line.numel() - 1)] == elements
    return out.copy_(found.logical_not_() if invert else found)


def _repeats(repeats: torch.Tensor, *, output_size: int | None = None) -> torch.Tensor:
    """Each place as often as ``repeats`` says: where each number up to the sum lies among the running sums."""
    if repeats.dim() != 1 or repeats.dtype not in (torch.int32, torch.int64):
        raise OnHost("repeats that are refused")
    if not repeats.numel():
        return torch.empty_like(repeats)
    ends = repeats.cumsum(0)
    # One copy to the host tells both the sum and whether a number is negative.
    least, total = torch.stack((repeats.amin().to(torch.int64), ends[-1])).tolist()
    if least < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and output_size != total:
        raise OnHost("repeats that are refused")
    out = torch.empty(total, dtype=torch.int64, device=repeats.device)
    if total:
        _searched(ends, torch.arange(total, device=repeats.device), _RIGHT, out)
    return out.to(repeats.dtype)


def _unique(
    self: torch.Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(numbers in order, for each element which it is, how often there is each)."""
    nothing = torch.empty(0, dtype=torch.int64, device=self.device)
    if self.dtype not in NAMES or not self.numel():
        raise OnHost("nothing, or complex numbers")
    line, order = ordered(self.reshape(-1), 0, False)
    first = torch.ones(line.shape, dtype=torch.bool, device=self.device)
    torch.ne(line[1:], line[:-1], out=first[1:])
    starts, groups, counts = _runs(first, return_inverse, return_counts)
    inverse = torch.empty_like(groups).scatter_(0, order.to(torch.int64), groups) if return_inverse else nothing
    return line[starts], inverse.view(self.shape) if return_inverse else nothing, counts


def _runs(first: torch.Tensor, inverse: bool, counts: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What runs are that begin where ``first`` is True: (where they begin, the run of each place, how long they are),
    the last two empty unless asked for."""
    nothing = torch.empty(0, dtype=torch.int64, device=first.device)
    starts = places(first).view(-1)
    lengths = nothing
    if counts:
        lengths = torch.cat((starts[1:], torch.full((1,), first.numel(), device=first.device))) - starts
    return starts, counted(first) - 1 if inverse else nothing, lengths


def _begins(rows: torch.Tensor) -> torch.Tensor:
    """Whether each row of a matrix differs from the one before it."""
    first = torch.ones(rows.shape[0], dtype=torch.bool, device=rows.device)
    if rows.shape[0] > 1:
        first[1:].copy_((rows[1:] != rows[:-1]).any(1))
    return first


def _unique_consecutive(
    self: torch.Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if self.dtype not in NAMES or not self.numel() or (dim is not None and not -self.dim() <= dim < self.dim()):
        raise OnHost("nothing, complex numbers, or a dimension that is refused")
    lines = self.reshape(-1, 1) if dim is None else self.movedim(dim, 0).flatten(1) if self.dim() > 1 else self[:, None]
    starts, inverse, counts = _runs(_begins(lines), return_inverse, return_counts)
    if dim is not None:
        return _slices(self, dim, starts), inverse, counts
    return self.reshape(-1)[starts], inverse.view(self.shape) if return_inverse else inverse, counts


def _unique_dim(
    self: torch.Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The slices along ``dim`` in order: sorted by each of their elements, from the last to the first."""
    if self.dtype not in NAMES or not self.numel() or not -self.dim() <= dim < self.dim():
        raise OnHost("nothing, complex numbers, or a dimension that is refused")
    lines = self.movedim(dim, 0).flatten(1) if self.dim() > 1 else self[:, None]
    if lines.shape[1] > _MOST_COLUMNS:
        raise OnHost("slices of that many elements")
    order = torch.arange(lines.shape[0], device=self.device)
    for column in range(lines.shape[1] - 1, -1, -1):
        order = order[ordered(lines[:, column][order], 0, False)[1].to(torch.int64)]
    lines = lines.index_select(0, order)
    starts, groups, counts = _runs(_begins(lines), return_inverse, return_counts)
    inverse = torch.empty_like(groups).scatter_(0, order, groups) if return_inverse else groups
    return _slices(self, dim, order[starts]), inverse, counts


def _slices(self: torch.Tensor, dim: int, which: torch.Tensor) -> torch.Tensor:
    """The slices ``which`` along ``dim``, one after the other in memory, as on the CPU."""
    return self.movedim(dim, 0).index_select(0, which).movedim(0, dim)


def _bincount(self: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    if self.dim() != 1 or self.dtype not in _INTEGERS:
        raise OnHost("numbers that are refused")
    if weights is not None and (weights.dtype != torch.float32 or weights.shape != self.shape):
        raise OnHost("weights that are not float32")
    kind = torch.int64 if weights is None else torch.float32
    if not self.numel():
        return torch.zeros(max(minlength, 0), dtype=torch.int64, device=self.device)
    low, high = torch.stack((self.amin(), self.amax())).tolist()
    if low < 0 or minlength < 0:
        raise OnHost("numbers that are refused")
    out = torch.zeros(max(high + 1, minlength), dtype=kind, device=self.device)
    return out.scatter_add_(0, self.to(torch.int64), torch.ones_like(self, dtype=kind) if weights is None else weights)


TABLE: dict[str, Callable[..., Any]] = {
    "searchsorted.Tensor searchsorted.Tensor_out searchsorted.Scalar": _searchsorted,
    "bucketize.Tensor bucketize.Tensor_out": _bucketize,
    "isin.Tensor_Tensor_out": _isin,
    "repeat_interleave.Tensor": _repeats,
    "unique_dim": _unique_dim,
    "unique_consecutive": _unique_consecutive,
    "bincount": _bincount,
    "_unique2": _unique,
    "_unique": lambda self, sorted=True, return_inverse=False: _unique(self, sorted, return_inverse)[:2],
}
