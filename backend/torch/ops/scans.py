"""Running sums, products and extremes along a dimension, by one kernel of tiles that hands on what came before.

A scan of few rows is done in three kernels, so that it is spread over the device: each part's own, that of the parts'
last elements, and what came before each part put in front of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .dtypes import IN_SOURCE, NAMES, OnHost, computed_in, require
from .launching import grid_of, launch
from .source import kernel_of
from .splitting import parts
from .strided_shapes import power_of_two, resized

#: Elements of a tile, and at most so many along the dimension.
_TILE, _LONGEST = 1024, 256
#: A scan of fewer rows than this, of more than so many elements each, is split into parts of so many.
_FEW_ROWS, _LONG = 64, 4096


#: Texts of kernels, for ``combine``, a function of functions.py, and ``number``, the type that is computed in.
_SCAN = """def scan(out, x, start, rows, n, inner, share, R: tl.constexpr, C: tl.constexpr):
    parts = tl.cdiv(n, share)
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    part = program % parts
    row = program // parts * R + tl.arange(0, R)
    base = (row // inner * n * inner + row % inner)[:, None]
    before = (tl.zeros((R,), {number}) + start).to({number})
    for first in range(part * share, min(part * share + share, n), C):
        j = first + tl.arange(0, C)[None, :]
        mask = (row < rows)[:, None] & (j < n)
        value = tl.load(x + base + j * inner, mask=mask).to({number})
        value = {combine}(before[:, None], tl.associative_scan(value, 1, {combine}))
        tl.store(out + base + j * inner, value.to(out.dtype.element_ty), mask=mask)
        before = fn.last_column(value).to({number})
"""
#: The same of pairs of a number and its place, in one part.
_EXTREME = """def scan(out, places, x, start, rows, n, inner, R: tl.constexpr, C: tl.constexpr):
    row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * R + tl.arange(0, R)
    base = (row // inner * n * inner + row % inner)[:, None]
    before = (tl.zeros((R,), {number}) + start).to({number})
    place_before = tl.zeros((R,), tl.int32)
    for first in range(0, n, C):
        j = first + tl.arange(0, C)[None, :]
        mask = (row < rows)[:, None] & (j < n)
        value = tl.load(x + base + j * inner, mask=mask).to({number})
        value, place = tl.associative_scan((value, (j + (row * 0)[:, None]).to(tl.int32)), 1, {combine})
        value, place = {combine}(before[:, None], place_before[:, None], value, place)
        tl.store(out + base + j * inner, value.to(out.dtype.element_ty), mask=mask)
        tl.store(places + base + j * inner, place.to(tl.int64), mask=mask)
        before, place_before = fn.last_column(value).to({number}), fn.last_column(place)
"""
_ADD, _MULTIPLY, _LOG_ADD = "fn.plus", "fn.times", "fn.log_add_exp"


def _kernel(text: str, combine: str, compute: torch.dtype) -> Any:
    return kernel_of("scan", text.format(combine=combine, number=IN_SOURCE[NAMES[compute]]))


def _sizes(x: torch.Tensor, dim: int) -> tuple[int, int, int]:
    """(elements of the dimensions before, of this one, after)."""
    if not x.dim():
        return 1, 1, 1
    dim %= x.dim()
    return math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])


def _tile(rows: int, n: int) -> dict[str, int]:
    columns = min(_LONGEST, power_of_two(n))
    return {"R": min(power_of_two(rows), _TILE // columns), "C": columns}


def _checked(x: torch.Tensor, compute: torch.dtype) -> torch.Tensor:
    for dtype in (x.dtype, compute):
        require(dtype, x.device.index or 0)
    if x.numel() >= 2**31 or x.is_neg() or x.is_conj():
        raise OnHost(f"a scan of {x.dtype}, or of that many elements")
    return x.contiguous()


def scanned(x: torch.Tensor, dim: int, combine: str, start: float | int, out: torch.Tensor) -> torch.Tensor:
    """The running combination of ``x`` along ``dim`` in ``out``, whose type it is computed in. Raises OnHost."""
    compute = computed_in(out.dtype)
    x = _checked(x, compute)
    if not x.numel():
        return out
    outer, n, inner = _sizes(x, dim)
    split = outer * inner < _FEW_ROWS and n > 2 * _LONG
    plain = out.is_contiguous() and not (split and out.dtype != compute)
    target = out if plain else torch.empty(x.shape, dtype=compute if split else out.dtype, device=x.device)
    share = _LONG if split else n
    tile = _tile(outer * inner, share)
    sizes = {"rows": outer * inner, "n": n, "inner": inner, "share": share}
    grid = grid_of(-(-outer * inner // tile["R"]) * -(-n // share))
    launch(_kernel(_SCAN, combine, compute), grid, {"out": target, "x": x, "start": start, **sizes}, tile)
    if split:
        _join(target.view(outer, n, inner), share, combine, start)
    return out if plain else out.copy_(target)


def _join(parts: torch.Tensor, share: int, combine: str, start: float | int) -> None:
    """Put what came before each part of (outer, n, inner), of ``share`` elements, in front of it."""
    outer, n, inner = parts.shape
    whole = n // share
    ends = parts[:, share - 1 :: share]
    before = scanned(ends, 1, combine, start, torch.empty(ends.shape, dtype=parts.dtype, device=parts.device))
    middle = parts[:, share : whole * share].unflatten(1, (whole - 1, share))
    _IN_FRONT[combine](middle, before[:, : whole - 1, None])
    if n % share:
        _IN_FRONT[combine](parts[:, whole * share :], before[:, whole - 1 :])


_IN_FRONT: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    _ADD: torch.Tensor.add_,
    _MULTIPLY: torch.Tensor.mul_,
    _LOG_ADD: lambda part, before: part.copy_(torch.logaddexp(part, before)),
}


def _scan(combine: str, start: float) -> Callable[..., torch.Tensor]:
    def cumsum(self: torch.Tensor, dim: int, *, dtype: Any = None, out: torch.Tensor) -> torch.Tensor:
        if out.dtype == torch.bool:
            raise OnHost("a running sum as bool")
        if not -max(self.dim(), 1) <= dim < max(self.dim(), 1):
            raise OnHost("a dimension that is refused")
        if combine == _ADD and self.is_complex() and self.dtype == out.dtype != torch.complex32:
            resized(out, self.shape)
            for part, result in zip(parts(self.resolve_conj().resolve_neg()), parts(out), strict=True):
                scanned(part, dim, combine, start, result)
            return out
        if combine == _LOG_ADD and not self.dtype.is_floating_point:
            raise OnHost("logarithms of integers")
        resized(out, self.shape)
        return scanned(self, dim, combine, start if out.dtype.is_floating_point else int(start), out)

    return cumsum


def _running_extreme(combine: str, greatest: bool) -> Callable[..., None]:
    def cummax(self: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, dim: int) -> None:
        compute = computed_in(self.dtype)
        x = _checked(self, compute)
        outer, n, inner = _sizes(x, dim)
        if not x.numel():
            return
        out, places = (t if t.is_contiguous() else torch.empty_like(x, dtype=t.dtype) for t in (values, indices))
        tile = _tile(outer * inner, n)
        sizes = {"rows": outer * inner, "n": n, "inner": inner}
        grid = grid_of(-(-outer * inner // tile["R"]))
        tensors = {"out": out, "places": places, "x": x, "start": _end(compute, greatest)}
        launch(_kernel(_EXTREME, combine, compute), grid, {**tensors, **sizes}, tile)
        for made, wanted in ((out, values), (places, indices)):
            if made is not wanted:
                wanted.copy_(made)

    return cummax


def _end(dtype: torch.dtype, lowest: bool) -> float | int:
    """What no number of the type is below, or above."""
    if dtype.is_floating_point:
        return -math.inf if lowest else math.inf
    return torch.iinfo(dtype).min if lowest else torch.iinfo(dtype).max


TABLE: dict[str, Callable[..., Any]] = {
    "cumsum.out": _scan(_ADD, 0.0),
    "cumprod.out": _scan(_MULTIPLY, 1.0),
    "_logcumsumexp.out": _scan(_LOG_ADD, -math.inf),
    "_logcumsumexp": lambda self, dim: _scan(_LOG_ADD, -math.inf)(
        self, dim, out=torch.empty(self.shape, dtype=self.dtype, device=self.device)
    ),
    "_cummax_helper": _running_extreme("fn.later_greater", True),
    "_cummin_helper": _running_extreme("fn.later_smaller", False),
}
