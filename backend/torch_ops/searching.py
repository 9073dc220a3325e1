"""Searches in sorted numbers, and what is made of them: searchsorted, bucketize, isin, unique, repeat_interleave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .elementwise import Body, run
from .library import enter_by_name
from .pointwise import of_type
from .selection import counted, places
from .sorting import ordered
from .types import NAMES, OnHost, computed_in

#: Test elements that are compared with one by one, in place of a search.
_FEW = 16
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


def enter_searching(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


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
    self: torch.Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,  # noqa: A002
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(numbers in order, for each element which it is, how often there is each)."""
    nothing = torch.empty(0, dtype=torch.int64, device=self.device)
    if self.dtype not in NAMES or not self.numel():
        raise OnHost("nothing, or complex numbers")
    line, order = ordered(self.reshape(-1), 0, False)
    first = torch.ones(line.shape, dtype=torch.bool, device=self.device)
    torch.ne(line[1:], line[:-1], out=first[1:])
    starts = places(first).view(-1)
    values, inverse, counts = line[starts], nothing, nothing
    if return_inverse:
        inverse = torch.empty(line.shape, dtype=torch.int64, device=self.device)
        inverse = inverse.scatter_(0, order.to(torch.int64), counted(first) - 1).view(self.shape)
    if return_counts:
        ends = torch.cat((starts[1:], torch.full((1,), line.numel(), device=self.device)))
        counts = ends - starts
    return values, inverse, counts


_TABLE: dict[str, Callable[..., Any]] = {
    "searchsorted.Tensor": _searchsorted,
    "searchsorted.Tensor_out": _searchsorted,
    "searchsorted.Scalar": _searchsorted,
    "bucketize.Tensor": _bucketize,
    "bucketize.Tensor_out": _bucketize,
    "isin.Tensor_Tensor_out": _isin,
    "repeat_interleave.Tensor": _repeats,
    "_unique2": _unique,
    "_unique": lambda self, sorted=True, return_inverse=False: _unique(self, sorted, return_inverse)[:2],
}
