# mypy: allow-untyped-defs
"""Pooling by maximum of one to three dimensions, with the places of the maxima, and its gradient; windows of a size, or
as many as asked for (adaptive). Of windows at places that random numbers say (fractional) the gradient is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch._prims_common import suggest_memory_format

from .dtypes import OnHost, require
from .launching import grid_of, launch
from .pointwise import of_type
from .resampling import pooled
from .strided_shapes import empty_in_order_of

_BLOCK = 256
_AXES = 3


@triton.jit
def _window(o, size, outputs, stride, padding, k, dilation, ADAPTIVE: tl.constexpr):
    """(the k-th place of output o's window along an axis, whether there is one)."""
    if ADAPTIVE:
        place = o * size // outputs + k
        return place, place < ((o + 1) * size + outputs - 1) // outputs
    else:
        place = o * stride - padding + k * dilation
        return place, (place >= 0) & (place < size)


@triton.jit
def max_kernel(
    y, indices, x, n, D, H, W, O, P, Q, u0, u1, u2, a0, a1, a2, d0, d1, d2,  # noqa: E741
    ADAPTIVE: tl.constexpr, T: tl.constexpr, R: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y and the places of its elements, of n elements, from contiguous x: windows (T, R, S), strides u, padding a …"""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    image, o, p, q = i // (O * P * Q), i // (P * Q) % O, i // Q % P, i % Q
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.full((BLOCK,), -1, tl.int32)
    for t in range(T):
        f, deep = _window(o, D, O, u0, a0, t, d0, ADAPTIVE)
        for r in range(R):
            g, down = _window(p, H, P, u1, a1, r, d1, ADAPTIVE)
            for s in range(S):
                h, right = _window(q, W, Q, u2, a2, s, d2, ADAPTIVE)
                inside = (i < n) & deep & down & right
                here = (f * H + g) * W + h
                value = tl.load(x + image * D * H * W + here, mask=inside, other=float("-inf")).to(tl.float32)
                better = inside & ((value > best) | (value != value) | (place < 0))
                best = tl.where(better, value, best)
                place = tl.where(better, here, place)
    tl.store(y + i, best.to(y.dtype.element_ty), mask=i < n)
    tl.store(indices + i, place.to(tl.int64), mask=i < n)


def _each(values: Sequence[int], otherwise: Sequence[int], count: int) -> tuple[int, ...]:
    """One number stands for all dimensions."""
    values = values or otherwise
    return tuple(values) * count if len(values) == 1 else tuple(values)


def _axes(values: Sequence[int], fill: int) -> tuple[int, ...]:
    return (*(fill,) * (_AXES - len(values)), *values)


def _run(
    self: torch.Tensor,
    sizes: Sequence[int],
    window: Sequence[int],
    how: Sequence[tuple[int, ...]],
    out: torch.Tensor,
    indices: torch.Tensor,
    adaptive: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``sizes``: of the output; ``how``: strides, padding and dilation."""
    count = len(sizes)
    require(self.dtype, self.device.index or 0)
    shape = (*self.shape[:-count], *sizes)
    elements = max(self.numel(), torch.Size(shape).numel())
    if self.dtype not in (torch.float32, torch.float16, torch.bfloat16) or elements >= 2**31:
        raise OnHost("numbers that are not floats of at most 32 bits")
    if self.dim() not in (count + 1, count + 2) or min(sizes) < 1 or not self.numel():
        raise OnHost("nothing to pool, or sizes that are refused")
    of_type(out, self.dtype, shape)
    of_type(indices, torch.int64, shape)
    made = tuple(t if t.is_contiguous() else torch.empty(shape, dtype=t.dtype, device=t.device) for t in (out, indices))
    numbers: dict[str, int] = {"n": out.numel()}
    numbers |= dict(zip("DHW", _axes(self.shape[-count:], 1), strict=True))
    numbers |= dict(zip("OPQ", _axes(sizes, 1), strict=True))
    for name, values, fill in zip("uad", how, (1, 0, 1), strict=True):
        numbers |= {f"{name}{axis}": value for axis, value in enumerate(_axes(values, fill))}
    constants = {"ADAPTIVE": adaptive, **dict(zip("TRS", _axes(window, 1), strict=True)), "BLOCK": _BLOCK}
    tensors = {"y": made[0], "indices": made[1], "x": self.contiguous()}
    launch(max_kernel, grid_of(-(-out.numel() // _BLOCK)), {**tensors, **numbers}, constants)
    for result, wanted in zip(made, (out, indices), strict=True):
        if result is not wanted:
            wanted.copy_(result)
    return out, indices


def _max_pool(count: int) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    def pool(
        self: torch.Tensor,
        kernel_size: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
        *,
        out: torch.Tensor | None = None,
        indices: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        window = _each(kernel_size, (), count)
        how = _each(stride, window, count), _each(padding, (0,), count), _each(dilation, (1,), count)
        if any(2 * p > k or p < 0 for p, k in zip(how[1], window, strict=True)) or min((*window, *how[0], *how[2])) < 1:
            raise OnHost("windows that are refused")
        spans = [d * (k - 1) + 1 for d, k in zip(how[2], window, strict=True)]
        lines = zip(self.shape[-count:], spans, how[0], how[1], strict=True)
        sizes = [pooled(*line, ceil_mode) for line in lines]
        return _run(self, sizes, window, how, *_outputs(self, sizes, out, indices), False)

    return pool


def _adaptive(count: int) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    def pool(
        self: torch.Tensor, output_size: Sequence[int], *, out: torch.Tensor, indices: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        sizes = _each(output_size, (), count)
        if self.dim() < count or min(sizes) < 1:
            raise OnHost("sizes that are refused")
        lines = zip(self.shape[-count:], sizes, strict=True)
        window = [max(-(-(o + 1) * n // m) - o * n // m for o in range(m)) for n, m in lines]
        plain = (1,) * count, (0,) * count, (1,) * count
        return _run(self, sizes, window, plain, out, indices, True)

    return pool


def _outputs(
    like: torch.Tensor, sizes: Sequence[int], out: torch.Tensor | None, indices: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if out is None or indices is None:
        ordered = like.dim() == len(sizes) + 2 and min(sizes) > 0
        out = empty_in_order_of(like, (*like.shape[: -len(sizes)], *sizes)) if ordered else like.new_empty(0)
        return out, torch.empty_like(out, dtype=torch.int64)
    return out, indices


def _gradient(count: int) -> Callable[..., torch.Tensor]:
    """torch's gradients name the indices last, or by name."""

    def backward(
        grad_output: torch.Tensor, self: torch.Tensor, *how: Any, indices: torch.Tensor | None = None
    ) -> torch.Tensor:
        indices = how[-1] if indices is None else indices
        if grad_output.dtype != self.dtype or grad_output.shape != indices.shape:
            raise OnHost("gradients that are refused")
        lead = self.shape[:-count]
        total = torch.zeros(*lead, self.shape[-count:].numel(), dtype=self.dtype, device=self.device)
        if grad_output.numel():
            total.scatter_add_(-1, indices.reshape(*lead, -1), grad_output.reshape(*lead, -1))
        return total.view(self.shape)

    return backward


def _unpool(count: int) -> Callable[..., torch.Tensor]:
    """Each element at the place that it was the maximum of; of several at one place any."""

    def unpool(self: torch.Tensor, indices: torch.Tensor, output_size: Sequence[int], *how: Any) -> torch.Tensor:
        if self.dim() not in (count + 1, count + 2) or self.shape != indices.shape or indices.dtype != torch.int64:
            raise OnHost("indices that are refused")
        if len(output_size) != count or min(output_size) < 1 or not self.numel() or self.device != indices.device:
            raise OnHost("sizes that are refused")
        if how and (any(step < 1 for step in how[0]) or len(how[0]) != count or len(how[1]) != count):
            raise OnHost("strides that are refused")
        lead = self.shape[:-count]
        result = torch.zeros(*lead, torch.Size(output_size).numel(), dtype=self.dtype, device=self.device)
        result.scatter_(-1, indices.reshape(*lead, -1), self.reshape(*lead, -1))
        result = result.view(*lead, *output_size)
        ordered = count == 2 and self.dim() == 4
        return result.contiguous(memory_format=suggest_memory_format(self)) if ordered else result

    return unpool


TABLE: dict[str, Callable[..., Any]] = {
    "max_pool2d_with_indices.out": _max_pool(2),
    "max_pool2d_with_indices_backward.grad_input": _gradient(2),
    "max_pool3d_with_indices max_pool3d_with_indices.out": _max_pool(3),
    "max_pool3d_with_indices_backward max_pool3d_with_indices_backward.grad_input": _gradient(3),
    "max_unpool2d max_unpool2d.out": _unpool(2),
    "max_unpool3d max_unpool3d.out": _unpool(3),
    "fractional_max_pool2d_backward.grad_input": _gradient(2),
    "fractional_max_pool3d_backward fractional_max_pool3d_backward.grad_input": _gradient(3),
    "adaptive_max_pool2d.out": _adaptive(2),
    "adaptive_max_pool2d_backward.grad_input": _gradient(2),
    "adaptive_max_pool3d.out": _adaptive(3),
    "adaptive_max_pool3d_backward.grad_input": _gradient(3),
}
