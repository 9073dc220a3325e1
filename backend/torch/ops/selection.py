"""Elements that a condition selects: nonzero, masked_select, masked_scatter, and the same elements in another order.

Their number is read on the host, as everywhere in torch.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from .dtypes import NAMES, OnHost, as_integer
from .elementwise import Body, run
from .launching import grid_of, launch
from .movement import retyped

_CHOSEN = frozenset(("chosen", "count"))
_SCATTER = Body(
    "taken = tl.load(source + (count - 1) + zero, mask=mask & chosen)\nout = tl.where(chosen, taken, self)",
    _CHOSEN,
    frozenset(("source",)),
)
_BLOCK = 1024  # elements of a program


@triton.jit
def count_kernel(out, chosen, n, BLOCK: tl.constexpr):
    """How many elements of each block are chosen."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    i = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    some = tl.load(chosen + i, mask=i < n, other=0).to(tl.int32)
    tl.store(out + program, tl.sum(some, 0), mask=program.to(tl.int64) * BLOCK < n)


@triton.jit
def list_kernel(out, x, chosen, ends, n, NUMBERED: tl.constexpr, BLOCK: tl.constexpr):
    """The chosen elements of ``x``, or their numbers, one after the other. ``ends``: how many are chosen up to the end
    of each block."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    i = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    some = tl.load(chosen + i, mask=i < n, other=0).to(tl.int32)
    before = tl.load(ends + program - 1, mask=(program > 0) & (program.to(tl.int64) * BLOCK < n), other=0)
    value = i if NUMBERED else tl.load(x + i, mask=i < n)
    tl.store(out + before + (tl.cumsum(some, 0) - 1), value, mask=some != 0)


def counted(mask: torch.Tensor) -> torch.Tensor:
    """For each element of a contiguous bool tensor how many are True up to it, int64, in one line."""
    return mask.reshape(-1).cumsum(0)


def _listed(chosen: torch.Tensor, x: torch.Tensor | None) -> torch.Tensor:
    """The elements of contiguous ``x``, or of None the numbers of the elements, int64, that a contiguous bool tensor
    with elements chooses."""
    n = chosen.numel()
    grid, counts = grid_of(-(-n // _BLOCK)), chosen.new_empty(-(-n // _BLOCK), dtype=torch.int32)
    launch(count_kernel, grid, (counts, chosen, n), {"BLOCK": _BLOCK})
    ends = counts.cumsum(0)
    total = int(ends[-1].item())
    out = torch.empty(total, dtype=torch.int64 if x is None else x.dtype, device=chosen.device)
    if total:
        form = {"NUMBERED": x is None, "BLOCK": _BLOCK}
        launch(list_kernel, grid, (out, out if x is None else x, chosen, ends, n), form)
    return out


def places(mask: torch.Tensor) -> torch.Tensor:
    """aten::nonzero of a tensor on the device: int64 (n, dimensions). Raises OnHost."""
    if mask.dtype not in NAMES and not mask.is_complex():
        raise OnHost(f"numbers of {mask.dtype}")
    chosen = (mask if mask.dtype == torch.bool else mask != 0).contiguous()
    if not chosen.numel():
        return torch.empty((mask.dim(), 0), dtype=torch.int64, device=mask.device).t()
    found = _listed(chosen, None)
    if mask.dim() == 1:
        return found[None].t()
    # With the strides that the CPU gives it: each dimension's indices lie together.
    out = torch.empty((mask.dim(), found.numel()), dtype=torch.int64, device=mask.device).t()
    for d in range(mask.dim() - 1, 0, -1):
        torch.remainder(found, mask.shape[d], out=out[:, d])
        found = found // mask.shape[d]
    if mask.dim():
        out[:, 0] = found
    return out


def masked_select(self: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """aten::masked_select. Raises OnHost."""
    if mask.dtype != torch.bool or mask.device != self.device:
        raise OnHost("a mask that is not bool, or elsewhere")
    tensor, mask = torch.broadcast_tensors(self, mask)
    if not mask.numel():
        return self.new_empty(0)
    found = _listed(mask.contiguous(), retyped(tensor, as_integer(self.dtype)).contiguous())
    return retyped(found, self.dtype)


def _masked_scatter(self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    if mask.dtype != torch.bool or source.dtype != self.dtype or self.device != mask.device != source.device:
        raise OnHost("a mask that is not bool, or a source of another type")
    chosen = mask.expand(self.shape).contiguous()
    if not self.numel():
        return self
    count = counted(chosen)
    total = int(count[-1].item())
    if total > source.numel():
        raise OnHost("a source that is too short")
    if not total:
        return self
    kind = as_integer(self.dtype)
    flat = retyped(source.contiguous(), kind).as_strided(self.shape, (0,) * self.dim())
    operands = {"chosen": chosen, "count": count.view(self.shape), "self": retyped(self, kind), "source": flat}
    run(_SCATTER, {"out": operands["self"]}, operands, kind)
    return self


def _flip(self: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    if len({d % max(self.dim(), 1) for d in dims}) != len(dims) or any(not -self.dim() <= d < self.dim() for d in dims):
        raise OnHost("dimensions that are refused")
    out = self
    for d in dims:
        if self.shape[d] > 1:
            out = out.index_select(d, torch.arange(self.shape[d] - 1, -1, -1, device=self.device))
    like = torch.empty_like(self)
    return out if out is not self and out.stride() == like.stride() else like.copy_(out)


def _equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    if self.device != other.device or self.dtype != other.dtype:
        raise OnHost("tensors of two types or devices")
    return self.shape == other.shape and bool((self == other).all().item())


def _take(self: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if index.dtype != torch.int64 or index.device != self.device or (index.numel() and not self.numel()):
        raise OnHost("an index that is refused")
    if not index.numel():
        return self.new_empty(index.shape)
    return torch.ops.aten.index.Tensor(self.reshape(-1), [index])  # an index of no dimensions would give a view


def _roll(self: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    if not dims and len(shifts) == 1:
        return _roll(self.reshape(-1), shifts, (0,)).view(self.shape)
    if not shifts or len(dims) != len(shifts) or any(not -self.dim() <= d < self.dim() for d in dims):
        raise OnHost("shifts that are refused")
    out = self
    for shift, d in zip(shifts, dims, strict=True):
        size = self.shape[d]
        if size and shift % size:
            head = size - shift % size
            out = torch.cat((out.narrow(d, head, size - head), out.narrow(d, 0, head)), d)
    return out.clone(memory_format=torch.contiguous_format) if out is self else out


def _put(self: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    if index.dtype != torch.int64 or index.device != self.device or source.numel() != index.numel():
        raise OnHost("an index that is refused, or another number of elements")
    if source.dtype != self.dtype or source.device != self.device or not self.numel():
        raise OnHost("elements of another type or device, or nothing")
    if index.numel():
        line = self.reshape(-1)  # a copy where it has to be
        line.index_put_((index.reshape(-1),), source.reshape(-1), accumulate)
        if not self.is_contiguous():
            self.copy_(line.view(self.shape))
    return self


def _nonzero_static(self: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    if size < 0:
        raise OnHost("a size that is refused")
    found = places(self)[:size]
    out = torch.full((size, self.dim()), fill_value, dtype=torch.int64, device=self.device)
    out[: found.shape[0]].copy_(found)
    return out


TABLE: dict[str, Callable[..., Any]] = {
    "nonzero nonzero.out": places,
    "masked_select masked_select.out": masked_select,
    "masked_scatter_": _masked_scatter,
    "equal": _equal,
    "take take.out": _take,
    "put_": _put,
    "nonzero_static": _nonzero_static,
    "flip": _flip,
    "roll": _roll,
}
