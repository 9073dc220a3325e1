"""How many numbers are in each part of a range: histc, histogram."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .dtypes import OnHost, require
from .searching import places_in

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _histc(self: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> torch.Tensor:  # noqa: A002
    """How many elements are in each of ``bins`` parts of min … max, the last of which has its end. Of integers, which
    torch's CPU refuses, as CUDA's: parts begin at whole numbers, and counts are of their type."""
    whole = self.dtype in _INTEGERS
    if not whole and self.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise OnHost("numbers that are refused")
    low, high = (int(min), int(max)) if whole else (float(min), float(max))
    if bins < 1 or high < low:
        raise OnHost("a range that is refused")
    if low == high and self.numel():
        low, high = torch.stack((self.amin(), self.amax())).tolist()
        low, high = (low - 1, high + 1) if low == high else (low, high)
    if not math.isfinite(low) or not math.isfinite(high):
        raise OnHost("a range that is refused")
    kind = torch.int64 if whole else torch.float32
    total = torch.zeros(bins, dtype=kind, device=self.device)
    if self.numel():
        x = self.reshape(-1).to(kind)
        parts = (x - low) * bins
        place = parts.div(high - low, rounding_mode="trunc") if whole else (parts / (high - low)).to(torch.int64)
        total.scatter_add_(0, place.clamp_(0, bins - 1), ((x >= low) & (x <= high)).to(kind))
    return total.to(self.dtype)


def _counted(
    self: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor | None, density: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """(how many numbers, or the sum of their weights, between each pair of neighbours of ``edges``, the edges): of
    parts that begin at their lower edge, the last of which has its end, too."""
    x = self.reshape(-1)
    if weight is not None and (weight.shape != self.shape or weight.dtype != x.dtype or weight.device != x.device):
        raise OnHost("weights of another shape, type or device")
    count = edges.numel() - 1
    total = x.new_zeros(count)
    if x.numel():
        inside = (x >= edges[0]) & (x <= edges[-1])
        place = (places_in(edges, x, right=True) - 1).clamp_(0, count - 1)
        share = torch.ones_like(x) if weight is None else weight.reshape(-1)
        total.scatter_add_(0, place, torch.where(inside, share, 0.0))
    return total / (total.sum() * edges.diff()) if density else total, edges


def _floats(self: torch.Tensor) -> None:
    if self.dtype not in (torch.float32, torch.float64):
        raise OnHost("numbers that are refused")
    require(self.dtype, self.device.index or 0)


def _between(
    self: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    _floats(self)
    if bins.dim() != 1 or bins.numel() < 2 or bins.dtype != self.dtype or bins.device != self.device:
        raise OnHost("edges that are refused")
    return _counted(self, bins.clone(memory_format=torch.contiguous_format), weight, density)


def _of_count(
    self: torch.Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,  # noqa: A002 (torch's name)
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    _floats(self)
    low, high = 0.0, 1.0
    if range is not None:
        if len(range) != 2:
            raise OnHost("a range that is refused")
        low, high = float(range[0]), float(range[1])
    elif self.numel():
        low, high = torch.stack((self.amin(), self.amax())).tolist()
    if bins < 1 or not math.isfinite(low) or not math.isfinite(high) or low > high:
        raise OnHost("a range that is refused")
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = torch.linspace(low, high, bins + 1, dtype=self.dtype, device=self.device)
    return _counted(self, edges, weight, density)


TABLE: dict[str, Callable[..., Any]] = {
    "histc histc.out": _histc,
    "histogram.bins_tensor histogram.bins_tensor_out": _between,
    "histogram.bin_ct histogram.bin_ct_out": _of_count,
}
