# mypy: allow-untyped-defs
"""Pooling by maximum, with the places of the maxima, and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from .launching import grid_of, launch
from .library import enter_by_name
from .pointwise import of_type
from .resampling import pooled
from .types import OnHost, require

_BLOCK = 256


def enter_pooling(library: torch.library.Library) -> None:
    """Enter all of them."""
    enter_by_name(library, _TABLE)


@triton.jit
def max_kernel(
    y, indices, x, n, H, W, P, Q, u, v, a, b, d, e, R: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """y and the places of its elements, of n elements, from contiguous x: strides (u, v), padding (a, b) …"""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    image, p, q = i // (P * Q), i // Q % P, i % Q
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    place = tl.full((BLOCK,), -1, tl.int32)
    for r in range(R):
        for s in range(S):
            h, t = p * u - a + r * d, q * v - b + s * e
            inside = (i < n) & (h >= 0) & (h < H) & (t >= 0) & (t < W)
            value = tl.load(x + image * H * W + h * W + t, mask=inside, other=float("-inf")).to(tl.float32)
            better = inside & ((value > best) | (value != value) | (place < 0))
            best = tl.where(better, value, best)
            place = tl.where(better, h * W + t, place)
    tl.store(y + i, best.to(y.dtype.element_ty), mask=i < n)
    tl.store(indices + i, place.to(tl.int64), mask=i < n)


def _pair(values: Sequence[int], otherwise: Sequence[int]) -> tuple[int, int]:
    values = values or otherwise
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _max_pool(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
    *,
    out: torch.Tensor,
    indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    require(self.dtype, self.device.index or 0)
    if self.dtype not in (torch.float32, torch.float16, torch.bfloat16) or max(self.numel(), out.numel()) >= 2**31:
        raise OnHost("numbers that are not floats of at most 32 bits")
    strides, paddings = _pair(stride, window := _pair(kernel_size, ())), _pair(padding, (0,))
    spans = [d * (k - 1) + 1 for d, k in zip(_pair(dilation, (1,)), window, strict=True)]
    lines = zip(self.shape[-2:], spans, strides, paddings, strict=True)
    shape = (*self.shape[:-2], *(pooled(*line, ceil_mode) for line in lines))
    of_type(out, self.dtype, shape)
    of_type(indices, torch.int64, shape)
    if self.numel() == 0 or out.numel() == 0 or not out.is_contiguous() or not indices.is_contiguous():
        raise OnHost("nothing to pool, or memory in another order")
    sizes = {"n": out.numel(), "H": self.shape[-2], "W": self.shape[-1], "P": out.shape[-2], "Q": out.shape[-1]}
    how = (*strides, *paddings, *_pair(dilation, (1,)))
    sizes |= dict(zip("uvabde", how, strict=True))
    constants = {"R": window[0], "S": window[1], "BLOCK": _BLOCK}
    tensors = {"y": out, "indices": indices, "x": self.contiguous()}
    launch(max_kernel, grid_of(-(-out.numel() // _BLOCK)), {**tensors, **sizes}, constants)
    return out, indices


def _max_pool_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    if self.numel() == 0:
        raise OnHost("nothing to pool")
    lead = self.shape[:-2]
    total = torch.zeros(*lead, self.shape[-2] * self.shape[-1], dtype=self.dtype, device=self.device)
    total.scatter_add_(-1, indices.reshape(*lead, -1), grad_output.reshape(*lead, -1))
    return grad_input.copy_(total.view(self.shape))


_TABLE: dict[str, Callable[..., Any]] = {
    "max_pool2d_with_indices.out": _max_pool,
    "max_pool2d_with_indices_backward.grad_input": _max_pool_backward,
}
