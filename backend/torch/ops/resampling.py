"""Interpolation, pooling by mean and padding by what is there, with their gradients: all are, along each dimension in
turn, sums of a few elements (taps) with weights. Which ones is a table made on the host for a pair of sizes; one kernel
reads it. The gradient is the same with the table transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ...runtime import Graph
from .dtypes import IN_SOURCE, NAMES, OnHost, as_integer, computed_in, require
from .elementwise import Body, run
from .movement import retyped
from .prepared import note_staying
from .splitting import parts
from .strided_shapes import empty_in_order_of, resized

_TABLES = 256  # kept at most
_TEXT = """out = zero.to({number})
for tap in range(taps):
    at = tl.load(index + tap + zero, mask=mask, other=-1).to(tl.int64)
    use = mask & (at >= 0)
    value = tl.load(self + at * step + zero, mask=use, other=0).to({number})
    out += value * tl.load(weight + tap + zero, mask=use, other=0)"""
_PLACES = frozenset(("index", "weight", "self"))
_TAKEN = Body(
    "out = tl.load(self + index.to(tl.int64) * step + zero, mask=mask)", frozenset(("index",)), frozenset(("self",))
)


@dataclass(frozen=True)
class Taps:
    """``index``: int32 (outputs, taps) of elements of the input, -1 if there is no more; ``weight``: theirs."""

    index: torch.Tensor
    weight: torch.Tensor

    def to(self, device: torch.device) -> Taps:
        return Taps(self.index.to(device), self.weight.to(device))

    def transposed(self, size: int) -> Taps:
        """For each of the input's ``size`` elements the outputs that it is in."""
        outputs, taps = self.index.shape
        there = self.index.reshape(-1) >= 0
        sources = self.index.reshape(-1)[there].long()
        places = torch.arange(outputs).repeat_interleave(taps)[there]
        order = sources.argsort(stable=True)
        counts = torch.bincount(sources, minlength=size)
        slot = torch.arange(len(order)) - (counts.cumsum(0) - counts)[sources[order]]
        index = torch.full((size, max(int(counts.max()), 1)), -1, dtype=torch.int32)
        weight = torch.zeros(index.shape, dtype=self.weight.dtype)
        index[sources[order], slot] = places[order].int()
        weight[sources[order], slot] = self.weight.reshape(-1)[there][order]
        return Taps(index, weight)


# ---- Tables ------------------------------------------------------------------------------------------------------

_Number = torch.dtype


_Window = tuple[int, int, int, bool, float]


def _windows(size: int, outputs: int, how: _Window) -> tuple[torch.Tensor, torch.Tensor]:
    """(places of each window's elements, or -1, how many there are). ``how``: window, stride, padding, whether padding
    counts, and what to divide by instead if not 0."""
    window, stride, padding, counts_padding, divisor = how
    first = torch.arange(outputs) * stride - padding
    whole = (first + window).clamp(max=size + padding) - first
    index = first[:, None] + torch.arange(window)
    index = torch.where((index >= 0) & (index < size), index, -1)
    count = whole if counts_padding else (index >= 0).sum(1)
    return index.int(), count if not divisor else torch.full((outputs,), int(divisor))


def _average(size: int, outputs: int, how: _Window, dtype: _Number) -> Taps:
    index, count = _windows(size, outputs, how)
    return Taps(index, (1 / count.to(dtype))[:, None].expand(index.shape).contiguous())


def _total(size: int, outputs: int, how: _Window, dtype: _Number) -> Taps:
    index, _ = _windows(size, outputs, how)
    return Taps(index, torch.ones(index.shape, dtype=dtype))


def _adaptive(size: int, outputs: int, how: None, dtype: _Number) -> Taps:
    place = torch.arange(outputs)
    first, end = place * size // outputs, -(-(place + 1) * size // outputs)
    index = first[:, None] + torch.arange(int((end - first).max()))
    index = torch.where(index < end[:, None], index, -1)
    weight = 1 / (end - first).to(dtype)
    return Taps(index.int(), weight[:, None].expand(index.shape).contiguous())


def _scale(size: int, outputs: int, scale: float | None, dtype: _Number) -> torch.Tensor:
    if scale is not None and scale > 0:
        return torch.tensor(1.0 / scale, dtype=dtype)
    return torch.tensor(size, dtype=dtype) / outputs


def _nearest(size: int, outputs: int, how: tuple[bool, float | None], dtype: _Number) -> Taps:
    """torch's nearest_idx and nearest_exact_idx, which compute in float32."""
    exact, scale = how
    place = torch.arange(outputs)
    if exact:
        index = ((place + 0.5) * _scale(size, outputs, scale, torch.float32)).floor().long()
    elif outputs == size:
        index = place
    elif outputs == 2 * size:
        index = place // 2
    else:
        index = (place * _scale(size, outputs, scale, torch.float32)).floor().long()
    index = index.clamp(max=size - 1).int()[:, None]
    return Taps(index, torch.ones(index.shape, dtype=dtype))


def _source(size: int, outputs: int, align: bool, scale: float | None, dtype: _Number) -> torch.Tensor:
    """Where outputs lie among the inputs: torch's area_pixel_compute_source_index."""
    place = torch.arange(outputs, dtype=dtype)
    if align:
        return place * (torch.tensor(size - 1, dtype=dtype) / (outputs - 1) if outputs > 1 else 0)
    return _scale(size, outputs, scale, dtype) * (place + 0.5) - 0.5


def _linear(size: int, outputs: int, how: tuple[bool, float | None], dtype: _Number) -> Taps:
    source = _source(size, outputs, *how, dtype).clamp(min=0) if outputs != size else torch.arange(outputs, dtype=dtype)
    first = source.long().clamp(max=size - 1)
    second = (first + 1).clamp(max=size - 1)
    share = (source - first).clamp(0, 1)
    return Taps(torch.stack((first, second), 1).int(), torch.stack((1 - share, share), 1))


def _cubic(size: int, outputs: int, how: tuple[bool, float | None], dtype: _Number) -> Taps:
    source = _source(size, outputs, *how, dtype)
    first = source.floor()
    place = torch.arange(-1, 3)
    index = (first.long()[:, None] + place).clamp(0, size - 1)
    return Taps(index.int(), _keys((place - (source - first)[:, None]).abs(), -0.75))


def _antialiased(reach: int, shape: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Taps]:
    """The table of a filter, ``shape`` of the distance from an output's center, which ends at ``reach``: as wide as the
    outputs are apart where there are fewer of them than inputs. Its weights sum to 1."""

    def table(size: int, outputs: int, how: tuple[bool, float | None], dtype: _Number) -> Taps:
        align, scale = how
        ends = (size - 1) / torch.tensor(outputs - 1, dtype=dtype) if outputs > 1 else torch.zeros((), dtype=dtype)
        apart = ends if align else _scale(size, outputs, scale, dtype)
        wide = apart.clamp(min=1)
        center = apart * (torch.arange(outputs, dtype=dtype) + 0.5)
        first = (center - reach * wide + 0.5).long().clamp(min=0)
        end = (center + reach * wide + 0.5).long().clamp(max=size)
        index = first[:, None] + torch.arange(max(int((end - first).max()), 1))
        weight = shape(((index - center[:, None] + 0.5) / wide).abs())
        weight = torch.where(index < end[:, None], weight, 0)
        total = weight.sum(1, keepdim=True)
        weight = torch.where(total != 0, weight / total, weight)
        return Taps(torch.where(index < end[:, None], index, -1).int(), weight)

    return table


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x).clamp(min=0)


def _keys(x: torch.Tensor, a: float) -> torch.Tensor:
    """R. Keys' kernel, of distances."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return torch.where(x < 1, near, torch.where(x < 2, far, 0))


def _lanczos(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 3, torch.sinc(x) * torch.sinc(x / 3), 0)


_ANTIALIASED = {
    "_upsample_bilinear2d_aa": _antialiased(1, _triangle),
    "_upsample_bicubic2d_aa": _antialiased(2, lambda x: _keys(x, -0.5)),
    "_upsample_lanczos2d_aa": _antialiased(3, _lanczos),
}


def _padding(size: int, outputs: int, how: tuple[bool, int], dtype: _Number) -> Taps:
    """``how``: whether the input is reflected at its ends, which are not repeated, and how much is before it."""
    reflected, before = how
    index = torch.arange(outputs) - before
    if reflected:
        index = index.abs()
        index = torch.where(index >= size, 2 * (size - 1) - index, index)
    index = index.clamp(0, size - 1).int()[:, None]
    return Taps(index, torch.ones(index.shape, dtype=dtype))


@lru_cache(maxsize=_TABLES)
def _table(kind: Any, size: int, outputs: int, how: Any, dtype: _Number, transposed: bool, device: str) -> Taps:
    taps: Taps = kind(size, outputs, how, dtype)
    with Graph.uncaptured():
        return (taps.transposed(size) if transposed else taps).to(torch.device(device))


# ---- Running them ------------------------------------------------------------------------------------------------


def _along(x: torch.Tensor, dim: int, taps: Taps, out: torch.Tensor, plain: bool) -> None:
    """out[…, i, …] = the sum over t of x[…, index[i, t], …] weight[i, t]. ``plain``: one tap each, of weight 1."""
    strides = [0 if d == dim % x.dim() else stride for d, stride in enumerate(x.stride())]
    source = x.as_strided(out.shape, strides)
    after = (1,) * (x.dim() - 1 - dim % x.dim())
    for table in (taps.index, taps.weight):
        note_staying(table)
    index, weight = (table[:, 0].view(-1, *after) for table in (taps.index, taps.weight))
    counts = {"step": x.stride(dim)}
    if plain:
        kind = as_integer(x.dtype)
        run(_TAKEN, {"out": retyped(out, kind)}, {"index": index, "self": retyped(source, kind)}, kind, counts)
        return
    compute = computed_in(out.dtype)
    body = Body(_TEXT.format(number=IN_SOURCE[NAMES[compute]]), frozenset(), _PLACES)
    operands = {"index": index, "weight": weight, "self": source}
    run(body, {"out": out}, operands, compute, {**counts, "taps": taps.index.shape[1]})


def resample(
    x: torch.Tensor, out: torch.Tensor, kind: Any, how: Sequence[Any], transposed: bool = False
) -> torch.Tensor:
    """Resamples the last ``len(how)`` dimensions of ``x`` into ``out``, of the same type. Raises OnHost."""
    if x.is_complex() and x.dtype == out.dtype:
        for part, result in zip(parts(x.resolve_conj().resolve_neg()), parts(out), strict=True):
            resample(part, result, kind, how, transposed)
        return out
    weighted = transposed or kind not in (_nearest, _padding)
    if x.dtype not in NAMES or (weighted and not x.dtype.is_floating_point and kind is not _total):
        raise OnHost("numbers that are not floats")
    for tensor in (x, out):
        require(tensor.dtype, x.device.index or 0)
    if x.is_neg() or x.dtype != out.dtype:
        raise OnHost("another type")
    if not out.numel():
        return out
    if not x.numel():
        if not transposed:
            raise OnHost("a mean of nothing")
        return out.zero_()
    compute = computed_in(x.dtype)
    device, count, at = str(x.device), len(how), x
    for place, dim in enumerate(range(-1, -count - 1, -1)):
        sizes = (out.shape[dim], x.shape[dim]) if transposed else (x.shape[dim], out.shape[dim])
        taps = _table(kind, *sizes, how[dim], compute if weighted else torch.float32, transposed, device)
        target = out
        if place < count - 1:
            shape = [*at.shape]
            shape[dim] = out.shape[dim]
            target = torch.empty(shape, dtype=compute if weighted else x.dtype, device=x.device)
        _along(at, dim, taps, target, not weighted)
        at = target
    return out


def pooled(size: int, window: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows there are: the last begins within the input or its padding before it."""
    count = (size + 2 * padding - window + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def _window(values: Sequence[int], count: int) -> Sequence[int]:
    return [values[0]] * count if len(values) == 1 else values


def _means(kernel: Any, stride: Any, padding: Any, counts_padding: bool, divisor: int | None, count: int) -> list[Any]:
    kernel, padding = _window(kernel, count), _window(padding, count)
    stride = _window(stride, count) if stride else kernel
    divisors = [1.0] * (count - 1) + [float(divisor)] if divisor else [0.0] * count
    return [
        (k, s, p, counts_padding, d) for k, s, p, d in zip(kernel, stride, padding, divisors, strict=True)
    ]  # fmt: skip


def _mean_pool(count: int) -> Callable[..., torch.Tensor]:
    def pool(
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        out: torch.Tensor,
    ) -> torch.Tensor:
        how = _means(kernel_size, stride, padding, count_include_pad, divisor_override, count)
        if (
            self.dim() not in (count + 1, count + 2)
            or divisor_override == 0
            or any(s < 1 or not 0 <= 2 * p <= k for k, s, p, *_ in how)
        ):
            raise OnHost("windows that are refused")
        sizes = [pooled(n, k, s, p, ceil_mode) for n, (k, s, p, *_) in zip(self.shape[-count:], how, strict=True)]
        resized(out, (*self.shape[:-count], *sizes))
        if self.dtype == torch.int64 == out.dtype:
            return _integer_means(self, out, how)
        return resample(self, out, _average, how)

    return pool


def _integer_means(x: torch.Tensor, out: torch.Tensor, how: Sequence[_Window]) -> torch.Tensor:
    """Sums of windows, divided by how many elements they have; the fraction is cut off."""
    count = torch.ones((), dtype=torch.int64)
    for size, outputs, window in zip(x.shape[-len(how) :], out.shape[-len(how) :], how, strict=True):
        count = count[..., None] * _windows(size, outputs, window)[1]
    return torch.div(
        resample(x, torch.empty_like(out), _total, how), count.to(x.device), rounding_mode="trunc", out=out
    )


def _mean_pool_backward(count: int) -> Callable[..., torch.Tensor]:
    def backward(
        grad_output: torch.Tensor,
        self: torch.Tensor,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
        *,
        grad_input: torch.Tensor,
    ) -> torch.Tensor:
        how = _means(kernel_size, stride, padding, count_include_pad, divisor_override, count)
        return resample(grad_output, resized(grad_input, self.shape), _average, how, transposed=True)

    return backward


def _of_means(like: torch.Tensor, shape: Sequence[int], count: int) -> torch.Tensor:
    """Channels come last where they do in ``like``, of two dimensions alone, as on the CPU."""
    plain = torch.empty(shape, dtype=like.dtype, device=like.device)
    return empty_in_order_of(like, shape) if count == 2 else plain


def _adaptive_pool(count: int) -> Callable[..., torch.Tensor]:
    def pool(self: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
        if self.dim() not in (count + 1, count + 2) or not all(output_size):
            raise OnHost("sizes that are refused")
        shape = (*self.shape[:-count], *output_size)
        out = _of_means(self, shape, count)
        return resample(self, out, _adaptive, [None] * count)

    return pool


def _adaptive_pool_backward(count: int) -> Callable[..., torch.Tensor]:
    def backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
        out = _of_means(self, self.shape, count)
        return resample(grad_output, out, _adaptive, [None] * count, transposed=True)

    return backward


def _upsample(kind: Any, fixed: bool | None, count: int) -> Callable[..., torch.Tensor]:
    """``fixed``: the first part of ``how``; None if align_corners is it, which torch passes."""

    def upsample(self: torch.Tensor, output_size: Any, *rest: Any, out: torch.Tensor) -> torch.Tensor:
        resized(out, (*self.shape[:-count], *output_size))
        return resample(self, out, kind, _scaled(rest, fixed, count))

    return upsample


def _upsample_backward(kind: Any, fixed: bool | None, count: int) -> Callable[..., torch.Tensor]:
    def backward(
        grad_output: torch.Tensor, output_size: Any, input_size: Any, *rest: Any, grad_input: torch.Tensor
    ) -> Any:
        resized(grad_input, input_size)
        return resample(grad_output, grad_input, kind, _scaled(rest, fixed, count), transposed=True)

    return backward


def _scaled(rest: tuple[Any, ...], fixed: bool | None, count: int) -> list[Any]:
    first, scales = (rest[0], rest[1:]) if fixed is None else (fixed, rest)
    return [(first, scale) for scale in (*scales, *(None,) * count)[:count]]


def _pad(name: str, reflected: bool, count: int) -> Callable[..., torch.Tensor]:
    meta = getattr(torch.ops.aten, name).default

    def pad(self: torch.Tensor, padding: Sequence[int], *, out: torch.Tensor | None = None) -> torch.Tensor:
        shape = meta(torch.empty(self.shape, device="meta", dtype=self.dtype), padding).shape
        if out is None:
            out = empty_in_order_of(self, shape)
        return resample(self, resized(out, shape), _padding, _before(padding, reflected, count))

    return pad


def _pad_backward(reflected: bool, count: int) -> Callable[..., torch.Tensor]:
    def backward(
        grad_output: torch.Tensor, self: torch.Tensor, padding: Sequence[int], *, grad_input: torch.Tensor | None = None
    ) -> torch.Tensor:
        out = grad_input
        if out is None:
            # torch's compiler asserts that the gradient of replication is contiguous, which the CPU's is not.
            out = empty_in_order_of(self, self.shape) if reflected else self.new_empty(self.shape)
        return resample(
            grad_output, resized(out, self.shape), _padding, _before(padding, reflected, count), transposed=True
        )

    return backward


def _before(padding: Sequence[int], reflected: bool, count: int) -> list[Any]:
    return [(reflected, padding[2 * (count - 1 - d)]) for d in range(count)]


TABLE: dict[str, Callable[..., Any]] = {}
for _name, _kind in _ANTIALIASED.items():
    TABLE[f"{_name}.out"] = _upsample(_kind, None, 2)
    TABLE[f"{_name}_backward.grad_input"] = _upsample_backward(_kind, None, 2)
for _count in (1, 2, 3):
    for _name, _kind, _fixed in (
        ("upsample_nearest", _nearest, False),
        ("_upsample_nearest_exact", _nearest, True),
        (f"upsample_{('', 'bi', 'tri')[_count - 1]}linear", _linear, None),
        *((("upsample_bicubic", _cubic, None),) if _count == 2 else ()),
    ):
        TABLE[f"{_name}{_count}d.out"] = _upsample(_kind, _fixed, _count)
        TABLE[f"{_name}{_count}d_backward.grad_input"] = _upsample_backward(_kind, _fixed, _count)
    for _name, _reflected in (("reflection_pad", True), ("replication_pad", False)):
        TABLE[f"{_name}{_count}d"] = TABLE[f"{_name}{_count}d.out"] = _pad(f"{_name}{_count}d", _reflected, _count)
        TABLE[f"{_name}{_count}d_backward"] = _pad_backward(_reflected, _count)
        TABLE[f"{_name}{_count}d_backward.grad_input"] = _pad_backward(_reflected, _count)
for _count in (2, 3):
    TABLE[f"avg_pool{_count}d.out"] = _mean_pool(_count)
    TABLE[f"avg_pool{_count}d_backward.grad_input"] = _mean_pool_backward(_count)
    TABLE[f"_adaptive_avg_pool{_count}d"] = _adaptive_pool(_count)
    TABLE[f"_adaptive_avg_pool{_count}d_backward"] = _adaptive_pool_backward(_count)
