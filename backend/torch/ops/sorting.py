"""Sorting along a dimension, with the places that elements come from, and operations built on it: topk, kthvalue,
median.

A program sorts a run of a row, as numbers of 64 bits that have an element's rank and its place. Then pairs of runs are
merged, each element finding its place by a binary search in the other run. Both are stable. For topk the first elements
of each run are enough.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from .dtypes import OnHost, require
from .launching import grid_of, launch
from .pointwise import of_type

#: Elements of the runs that a program sorts: of short rows, of others, and where an element has 64 bits. 64 rows of
#: 1,000 took 505 µs of a processor in runs of 1,024, and 4,300 in runs of 32 that were then merged.
_SHORT_RUN, _LONG_RUN, _WIDE_RUN = 128, 1024, 256
#: Elements that a program merges.
_BLOCK = 256


@triton.jit
def _rank(x, DESCENDING: tl.constexpr):
    """An integer that is less the earlier x comes, of 64 bits if x is and else of 32. NaN is the greatest."""
    WIDE: tl.constexpr = x.dtype.primitive_bitwidth == 64
    INTEGER: tl.constexpr = tl.int64 if WIDE else tl.int32
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if WIDE else 0x7FFFFFFF
    if x.dtype.is_floating():
        x = x if WIDE else x.to(tl.float32)
        bits = x.to(INTEGER, bitcast=True)
        rank = tl.where(x != x, MOST, tl.where(x == 0, 0, tl.where(bits < 0, bits ^ MOST, bits)))
    elif x.dtype == tl.uint32 or x.dtype == tl.uint64:
        rank = x.to(INTEGER, bitcast=True) ^ (-1 - MOST)
    else:
        rank = x.to(INTEGER)
    return -1 - rank if DESCENDING else rank


@triton.jit
def run_kernel(keys, places, x, rows, n, RUN: tl.constexpr, DESCENDING: tl.constexpr):
    """Sort runs of RUN elements of rows of n of contiguous x; elements of 64 bits by their low halves first."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    runs = tl.cdiv(n, RUN)
    row, first = program // runs, program % runs * RUN
    lane = tl.arange(0, RUN)
    j = first + lane
    inside = (j < n) & (row < rows)
    keys, places, x = keys + row * n, places + row * n, x + row * n
    rank = _rank(tl.load(x + j, mask=inside, other=0), DESCENDING)
    # What is outside goes last: it is equal to the last elements at most, which have lower places.
    if rank.dtype == tl.int64:
        rank = tl.where(inside, rank, 0x7FFFFFFFFFFFFFFF)
        low = rank.to(tl.int32) ^ (-0x80000000)
        at = tl.sort((low.to(tl.int64) << 32) | lane).to(tl.int32)
        high = tl.gather((rank >> 32).to(tl.int32), at, 0)
        at = tl.gather(at, tl.sort((high.to(tl.int64) << 32) | lane).to(tl.int32), 0)
    else:
        rank = tl.where(inside, rank, 0x7FFFFFFF)
        at = tl.sort((rank.to(tl.int64) << 32) | lane).to(tl.int32)
    tl.store(places + j, first + at, mask=inside)
    tl.store(keys + j, tl.load(x + first + at, mask=inside), mask=inside)


@triton.jit
def merge_kernel(
    keys, places, from_keys, from_places, total, n, run, DESCENDING: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Merge pairs of sorted runs of ``run`` elements."""
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    mask = i < total
    j = i % n
    stored = tl.load(from_keys + i, mask=mask)
    key = _rank(stored, DESCENDING)
    pair = j // (2 * run) * (2 * run)
    second = (j - pair) >= run
    low = tl.minimum(tl.where(second, pair, pair + run), n)
    start, end = low, tl.minimum(low + run, n)
    left = run
    while left > 0:
        middle = (low + end) // 2
        search = mask & (low < end)
        other = _rank(tl.load(from_keys + (i - j) + middle, mask=search), DESCENDING)
        # Among equal elements, the elements of the first run come first.
        earlier = (other < key) | (second & (other == key))
        low = tl.where(search & earlier, middle + 1, low)
        end = tl.where(search & (earlier == 0), middle, end)
        left = left // 2
    place = pair + (j - pair - tl.where(second, run, 0)) + (low - start)
    tl.store(keys + (i - j) + place, stored, mask=mask)
    tl.store(places + (i - j) + place, tl.load(from_places + i, mask=mask), mask=mask)


def _contiguous(x: torch.Tensor, dim: int) -> torch.Tensor:
    """``x`` with the dimension as the last in memory. Raises OnHost."""
    require(x.dtype, x.device.index or 0)
    if x.numel() >= 2**30 or x.is_neg():  # the end of a pair of runs is a number of 32 bits, too
        raise OnHost("a sort of that many elements")
    return (x.movedim(dim, -1) if x.dim() else x.view(1)).contiguous()


def _run(x: torch.Tensor) -> int:
    return _WIDE_RUN if x.element_size() == 8 else _SHORT_RUN if x.shape[-1] <= _SHORT_RUN else _LONG_RUN


def _in_runs(x: torch.Tensor, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, int32 places) of the rows of contiguous ``x``, each run of which is sorted."""
    n, rows = x.shape[-1], x.numel() // x.shape[-1]
    keys, places = torch.empty_like(x), torch.empty_like(x, dtype=torch.int32)
    arguments = {"keys": keys, "places": places, "x": x, "rows": rows, "n": n}
    grid = grid_of(rows * -(-n // _run(x)))
    launch(run_kernel, grid, arguments, {"RUN": _run(x), "DESCENDING": descending})
    return keys, places


def ordered(x: torch.Tensor, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(values, int32 places they come from) of ``x`` sorted along ``dim``, stable, NaN as the greatest; the sorted
    dimension is the last in memory. Raises OnHost."""
    x = _contiguous(x, dim)
    n, total = x.shape[-1], x.numel()
    if not total:
        return x, torch.empty_like(x, dtype=torch.int32)
    keys, places = _in_runs(x, descending)
    run = _run(x)
    other = (torch.empty_like(keys), torch.empty_like(places)) if run < n else (keys, places)
    while run < n:
        tensors = {"keys": other[0], "places": other[1], "from_keys": keys, "from_places": places}
        sizes = {"total": total, "n": n, "run": run}
        launch(merge_kernel, grid_of(-(-total // _BLOCK)), tensors | sizes, {"DESCENDING": descending, "BLOCK": _BLOCK})
        (keys, places), other = other, (keys, places)
        run *= 2
    return keys, places


def _first(x: torch.Tensor, k: int, dim: int, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The first k elements that ordered() finds, and their places. Each run has k candidates."""
    x = _contiguous(x, dim)
    whole, rest = divmod(n := x.shape[-1], _run(x))
    if whole < 2 or 2 * k > _run(x) or not x.numel():
        keys, places = ordered(x, -1, descending)
        return keys[..., :k], places[..., :k]
    keys, places = (
        torch.cat((runs[..., : n - rest].unflatten(-1, (whole, -1))[..., :k].flatten(-2), runs[..., n - rest :]), -1)
        for runs in _in_runs(x, descending)
    )
    keys, at = _first(keys, k, -1, descending)
    return keys, places.gather(-1, at.long())


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
    sorted: bool = True,
    *,
    values: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    if not 0 <= k <= (self.shape[dim] if self.dim() else 1) or not (k or self.dim()):
        raise OnHost("a k that is refused")
    keys, places = (_back(found, self, dim) for found in _first(self, k, dim, largest))
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
    "mode mode.values": _mode,
    "sort.values_stable": _sort,
    "topk.values": _topk,
    "kthvalue.values": _kth,
    "median.dim_values": _median(False),
    "nanmedian.dim_values": _median(True),
    "median": _median_of_all(False),
    "nanmedian": _median_of_all(True),
}
