"""How many numbers are in each part of a range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .dtypes import OnHost

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _histc(self: torch.Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> torch.Tensor:
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


TABLE: dict[str, Callable[..., Any]] = {"histc histc.out": _histc}
