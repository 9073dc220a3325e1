"""Sorting along a dimension, with the places that elements come from, and operations built on it: topk, kthvalue,
median.

Runs of a few elements are sorted by counting what goes before each; then pairs of runs are merged, each element finding
its place by a binary search in the other run. Both are stable, and one kernel each, whatever the length.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .launching import grid_of, launch
from .pointwise import of_type
from .types import OnHost, require

#: Elements of the runs that are sorted by counting, and of a program.
_RUN, _BLOCK = 32, 256


@triton.jit
def _number(x):
    """What is compared: 16-bit floats as float32, bool as an integer."""
    return (
        x.to(tl.int32)
        if x.dtype == tl.int1
        else x.to(tl.float32)
        if x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16
        else x
    )  # noqa: E501


@triton.jit
def _before(a, b, DESCENDING: tl.constexpr):  # noqa: N803
    """Whether a goes before b and is not equal to it; NaN is the greatest."""
    if DESCENDING:
        return (a > b) | ((a != a) & (b == b))
    else:
        return (a < b) | ((b != b) & (a == a))


@triton.jit
def count_kernel(keys, places, x, total, n, RUN: tl.constexpr, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    """Sort runs of RUN elements of rows of n of contiguous x."""
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    mask = i < total
    j = i % n
    stored = tl.load(x + i, mask=mask)
    key = _number(stored)
    first = j // RUN * RUN
    rank = first
    for k in range(RUN):
        inside = mask & (first + k < n)
        other = _number(tl.load(x + (i - j) + first + k, mask=inside))
        earlier = _before(other, key, DESCENDING) | ((first + k < j) & (_before(key, other, DESCENDING) == 0))
        rank += (inside & earlier).to(tl.int32)
    tl.store(keys + (i - j) + rank, stored, mask=mask)
    tl.store(places + (i - j) + rank, j, mask=mask)


@triton.jit
def merge_kernel(
    keys, places, from_keys, from_places, total, n, run, DESCENDING: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Merge pairs of sorted runs of ``run`` elements."""
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    mask = i < total
    j = i % n
    stored = tl.load(from_keys + i, mask=mask)
    key = _number(stored)
    pair = j // (2 * run) * (2 * run)
    second = (j - pair) >= run
    low = tl.minimum(tl.where(second, pair, pair + run), n)
    start, end = low, tl.minimum(low + run, n)
    left = run
    while left > 0:
        middle = (low + end) // 2
        search = mask & (low < end)
        other = _number(tl.load(from_keys + (i - j) + middle, mask=search))
        # Among equal elements, the elements of the first run come first.
        earlier = tl.where(second, _before(key, other, DESCENDING) == 0, _before(other, key, DESCENDING))
        low = tl.where(search & earlier, middle + 1, low)
        end = tl.where(search & (earlier == 0), middle, end)
        left = left // 2
    place = pair + (j - pair - tl.where(second, run, 0)) + (low - start)
    tl.store(keys + (i - j) + place, stored, mask=mask)
    tl.store(places + (i - j) + place, tl.load(from_places + i, mask=mask), mask=mask)


def ordered(x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, int32 places they come from) of ``x`` sorted along ``dim``, stable, NaN as the greatest; the sorted
    dimension is the last in memory. Raises OnHost."""
    require(x.dtype, x.device.index or 0)
    if x.numel() >= 2**31 or x.is_neg():
        raise OnHost("a sort of that many elements")
    x = (x.movedim(dim, -1) if x.dim() else x.view(1)).contiguous()
    n, total = x.shape[-1], x.numel()
    keys, places = torch.empty_like(x), torch.empty_like(x, dtype=torch.int32)
    if total:
        grid, how = grid_of(-(-total // _BLOCK)), {"DESCENDING": descending, "BLOCK": _BLOCK}
        sizes = {"total": total, "n": n}
        launch(count_kernel, grid, {"keys": keys, "places": places, "x": x, **sizes}, {"RUN": _RUN, **how})
        run = _RUN
        other = (torch.empty_like(keys), torch.empty_like(places)) if run < n else (keys, places)
        while run < n:
            tensors = {"keys": other[0], "places": other[1], "from_keys": keys, "from_places": places}
            launch(merge_kernel, grid, {**tensors, **sizes, "run": run}, how)
            (keys, places), other = other, (keys, places)
            run *= 2
    return keys, places


def _back(tensor: torch.Tensor, like: torch.Tensor, dim: int) -> torch.Tensor:
    return tensor.movedim(-1, dim) if like.dim() else tensor[0]


def _sort(
    self: torch.Tensor,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
    values: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    keys, places = ordered(self, dim, descending)
    of_type(values, self.dtype, self.shape)
    of_type(indices, torch.int64, self.shape)
    return values.copy_(_back(keys, self, dim)), indices.copy_(_back(places, self, dim))


def _topk(
    self: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 (torch's name)
    *,
    values: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    if not 0 <= k <= (self.shape[dim] if self.dim() else 1) or not (k or self.dim()):
        raise OnHost("a k that is refused")
    keys, places = (_back(tensor[..., :k], self, dim) for tensor in ordered(self, dim, largest))
    of_type(values, self.dtype, keys.shape)
    of_type(indices, torch.int64, keys.shape)
    return values.copy_(keys), indices.copy_(places)


def _kth(
    self: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False, *, values: torch.Tensor, indices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    size = self.shape[dim] if self.dim() else 1
    if not 1 <= k <= size or self.dtype == torch.bool:
        raise OnHost("a k that is refused")
    return _chosen(self, torch.full((), k - 1, device=self.device), dim, keepdim, values, indices)


def _chosen(
    self: torch.Tensor, rank: torch.Tensor, dim: int, keepdim: bool, values: torch.Tensor, indices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The element of each row that is ``rank``-th, which is of the shape of the result or broadcast to it."""
    found = ordered(self, dim, False)
    at = rank.expand(found[0].shape[:-1]).unsqueeze(-1)
    for out, source in zip((values, indices), found, strict=True):
        chosen = _back(source.gather(-1, at), self, dim)
        chosen = chosen if keepdim or not self.dim() else chosen.squeeze(dim)
        of_type(out, self.dtype if out is values else torch.int64, chosen.shape)
        out.copy_(chosen)
    return values, indices


def _median(ignore: bool) -> Callable[..., Any]:
    def median(
        self: torch.Tensor, dim: int, keepdim: bool = False, *, values: torch.Tensor, indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        size = self.shape[dim] if self.dim() else 1
        if not size or self.dtype == torch.bool:
            raise OnHost("the median of nothing")
        return _chosen(self, _middle(self, dim, ignore), dim, keepdim, values, indices)

    return median


def _middle(self: torch.Tensor, dim: int, ignore: bool) -> torch.Tensor:
    """The rank of the median: the lower of two, and of rows with NaN the first of them, unless they do not count."""
    line = self if self.dim() else self.view(1)
    size = line.shape[dim]
    if not self.dtype.is_floating_point:
        return torch.full((), (size - 1) // 2, device=self.device)
    numbers = size - line.isnan().sum(dim)
    middle = (numbers - 1).div(2, rounding_mode="floor").clamp(min=0)
    return middle if ignore else torch.where(numbers < size, numbers, middle)


def _median_of_all(ignore: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    def median(self: torch.Tensor) -> torch.Tensor:
        if not self.numel() or self.dtype == torch.bool:
            raise OnHost("the median of nothing")
        flat = self.reshape(-1)
        values, _ = ordered(flat, 0, False)
        return values.gather(0, _middle(flat, 0, ignore).view(1)).view(())

    return median


def _mode(self: torch.Tensor, dim: int = -1, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The most frequent value of each row, the smallest of several, and the last place that has it."""
    if not self.dim() or not self.numel():
        raise OnHost("the mode of nothing, or of a number")
    values, places = ordered(self, dim, False)
    size = values.shape[-1]
    line = torch.arange(size, device=self.device)
    begins = (values != torch.cat((values[..., :1], values[..., :-1]), -1)) | (line == 0)
    run = line - (begins * line).cummax(-1).values
    last = run.argmax(-1, keepdim=True)  # the first of the longest
    value, place = (t.gather(-1, last).squeeze(-1).contiguous() for t in (values, places.long()))
    return (value.unsqueeze(dim), place.unsqueeze(dim)) if keepdim else (value, place)


TABLE: dict[str, Callable[..., Any]] = {
    "mode": _mode,
    "sort.values_stable": _sort,
    "topk.values": _topk,
    "kthvalue.values": _kth,
    "median.dim_values": _median(False),
    "nanmedian.dim_values": _median(True),
    "median": _median_of_all(False),
    "nanmedian": _median_of_all(True),
}
