# mypy: allow-untyped-defs
"""Convolutions of channels that are each convolved alone, whose images are read and written in memory of any order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import triton
import triton.language as tl

from .convolution_axes import (
    Axes,
    distances,
    first_place,
    is_deep,
    named,
    seeing,
    split_position,
    taken,
    window_place,
    within,
)
from .convolution_images import Image
from .device_facts import kind_of, share_out
from .launching import launch
from .reducing import SUM, reduce
from .strided_shapes import power_of_two
from .tiles import MOST_PARTS, shared

#: Elements of a tile, and channels of one whose channels follow each other in memory.
_TILE, _CHANNELS = 1024, 64
#: A part of a weight's gradient sums so many products at least.
_SHORTEST = 512


@triton.jit
def _tile_of_channels(positions, channels, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """(positions, channels) of a tile, from the first of each; positions are its last axis if ACROSS."""
    if ACROSS:
        return positions + tl.arange(0, ROWS)[None, :], channels + tl.arange(0, COLUMNS)[:, None]
    else:
        return positions + tl.arange(0, ROWS)[:, None], channels + tl.arange(0, COLUMNS)[None, :]


@triton.jit
def depthwise_kernel(
    out, image, weights, bias, rows, O, P, Q, D, H, W, K, image_n, image_c, image_d, image_h, image_w,  # noqa: E741
    step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w, T, R, S,
    depth, first, weight_t, weight_r, weight_s, begin, out_n, out_c, out_d, out_h, out_w, terms, each,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out at positions (rows = N O P Q) of ``image``, as convolution_kernels.py has them: channel k of K is the sum of
    ``terms`` of weights (channels, depth), from k terms on, of which ``each`` belong to one channel of the image."""
    tiles = tl.cdiv(K, COLUMNS)
    at = tl.program_id(0)
    row, k = _tile_of_channels(at // tiles * ROWS, at % tiles * COLUMNS, ACROSS, ROWS, COLUMNS)
    n, o, p, q = split_position(row, O, P, Q, DEEP)
    f, g, h = o * step_d + start_d, p * step_h + start_h, q * step_w + start_w
    place = n * image_n + f * image_d + g * image_h + h * image_w
    known = (row < rows) & (k < K)
    total = tl.zeros((COLUMNS, ROWS) if ACROSS else (ROWS, COLUMNS), tl.float32)
    for i in range(0, terms * T * R * S):
        term, e = i // (T * R * S), i % (T * R * S)
        t, r, s = window_place(e, R, S, DEEP)
        c = k * terms + term
        w = tl.load(weights + c * depth + first + t * weight_t + r * weight_r + s * weight_s, mask=k < K, other=0.0).to(
            tl.float32
        )
        t, r, s = t * move_d, r * move_h, s * move_w
        inside = known & within(f + t, g + r, h + s, D, H, W, DEEP)
        moved = place + t * image_d + r * image_h + s * image_w
        total += w * tl.load(image + moved + c // each * image_c, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        total += tl.load(bias + k, mask=k < K, other=0.0).to(tl.float32)
    place = begin + n * out_n + k * out_c + o * out_d + p * out_h + q * out_w
    tl.store(out + place, total.to(out.dtype.element_ty), mask=known)


@triton.jit
def depthwise_weight_kernel(
    out, image, grad, share, rows, O, P, Q, D, H, W, K, image_n, image_c, image_d, image_h, image_w,  # noqa: E741
    grad_n, grad_c, grad_d, grad_h, grad_w, step_d, step_h, step_w, start_d, start_h, start_w, move_d, move_h, move_w,
    T, R, S, each, DEEP: tl.constexpr, ACROSS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out (parts, K, T, R, S), the gradient of weights. A program has a tile's channels and a window's element; the
    third axis of the grid are parts of the sum over ``rows``, of ``share`` each."""
    at = tl.program_id(0)
    e, part = tl.program_id(1), tl.program_id(2)
    t, r, s = window_place(e, R, S, DEEP)
    total = tl.zeros((COLUMNS, ROWS) if ACROSS else (ROWS, COLUMNS), tl.float32)
    end = min(part * share + share, rows)
    for start in range(part * share, end, ROWS):
        row, k = _tile_of_channels(start, at * COLUMNS, ACROSS, ROWS, COLUMNS)
        n, o, p, q = split_position(row, O, P, Q, DEEP)
        f, g, h = (
            o * step_d + start_d + t * move_d,
            p * step_h + start_h + r * move_h,
            q * step_w + start_w + s * move_w,
        )
        known = (row < end) & (k < K)
        y = tl.load(grad + n * grad_n + k * grad_c + o * grad_d + p * grad_h + q * grad_w, mask=known, other=0.0)
        place = n * image_n + k // each * image_c + f * image_d + g * image_h + h * image_w
        x = tl.load(image + place, mask=known & within(f, g, h, D, H, W, DEEP), other=0.0)
        total += x.to(tl.float32) * y.to(tl.float32)
    total = tl.sum(total, 1 if ACROSS else 0)
    k = at * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out + (part * K + k) * (T * R * S) + e, total.to(out.dtype.element_ty), mask=k < K)


def _tile(rows: int, channels: int, across: bool) -> dict[str, Any]:
    """Positions and channels of a tile, most of those that follow each other in memory."""
    columns = min(_CHANNELS, power_of_two(channels))
    count = min(_TILE if across else _TILE // columns, power_of_two(rows))
    return {"ROWS": count, "COLUMNS": min(_TILE // count, columns), "ACROSS": across}


def to_images(
    image: Image, w: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, classes: Sequence[Axes], to_input: bool
) -> None:
    """Write y of an image x, or x of an image y if ``to_input``, at the positions of all ``classes``."""
    x, channels = image.dense, out.shape[1]
    terms = w.shape[0] // image.groups
    for axes in classes:
        numbers = seeing(axes, x, out) | taken(axes, w) | named("image", x.stride(), "ncdhw")
        numbers |= named("out", distances(axes, out), "ncdhw") | {"begin": first_place(axes, out)}
        numbers |= {"terms": terms if to_input else 1, "each": 1 if to_input else terms}
        numbers |= {"depth": w.shape[2:].numel(), "K": channels}
        tile = _tile(numbers["rows"], channels, out.stride(1) != 1)
        tensors = {"out": out, "image": x, "weights": w, "bias": w if bias is None else bias.contiguous()}
        constants = {"HAS_BIAS": bias is not None, "DEEP": is_deep(axes, x), **tile}
        grid = -(-numbers["rows"] // tile["ROWS"]) * -(-channels // tile["COLUMNS"]), 1, 1
        launch(depthwise_kernel, grid, tensors | numbers, constants, fusion=True, divisible=frozenset())


def to_weight(x: Image, y: Image, w: torch.Tensor, axes: Axes) -> None:
    """Write the gradient of w (K, 1, T, R, S), which is contiguous, of x and the gradient of y."""
    channels = w.shape[0]
    numbers = seeing(axes, x.given, y.given) | named("image", x.dense.stride(), "ncdhw")
    numbers |= named("grad", y.dense.stride(), "ncdhw") | {"K": channels, "each": y.channels}
    tile = _tile(numbers["rows"], channels, not y.has_channels_last)
    grid = -(-channels // tile["COLUMNS"]), w.shape[2:].numel()
    on, reach = kind_of(w.device.index or 0), numbers["rows"]
    wanted = 1 if on.cpu else min(share_out(prod(grid), on.units, reach, _SHORTEST), MOST_PARTS)
    parts, share = shared(reach, wanted, tile["ROWS"])
    out = w if parts == 1 else w.new_empty((parts, *w.shape), dtype=torch.float32)
    arguments = {"out": out, "image": x.dense, "grad": y.dense, "share": share, **numbers}
    constants = {"DEEP": is_deep(axes, x.given), **tile}
    launch(depthwise_weight_kernel, (*grid, parts), arguments, constants, fusion=True, divisible=frozenset())
    if parts > 1:
        reduce("x", SUM, {"x": out}, (0,), dtype=w.dtype, compute=torch.float32, out=w)
