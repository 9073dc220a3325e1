"""What torchvision's detection models ask of a device in its own operations: nms, and roi_align with its gradient.

They are entered whether torchvision is installed or not: its library finds them when it is imported.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import triton
import triton.language as tl

from ..device.cpu_fallback import fallback
from .dtypes import OnHost, require
from .functions import div
from .launching import grid_of, launch
from .library import ON_DEVICE
from .strided_shapes import power_of_two

_KEY = "PrivateUse1"
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: Boxes of one call of nms(): a bit of memory for each two.
_MOST_BOXES = 1 << 15
_BITS = 32
_BLOCK = 256


def detection_library() -> torch.library.Library:
    """torchvision's operations of the device, which last as long as the result."""
    library = torch.library.Library("torchvision", "IMPL")
    for name, function in _TABLE.items():
        ON_DEVICE[f"torchvision::{name}"] = function
        library.impl(name, _or_host(name, function), _KEY)
    return library


def _or_host(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any) -> Any:
        try:
            return function(*args)
        except OnHost:
            return fallback(getattr(torch.ops.torchvision, name).default, *args)

    return run


@triton.jit
def overlap_kernel(words, boxes, n, count, threshold, ROWS: tl.constexpr):
    """words (n, count): the bit of each later box of ``boxes`` (n, 4: x1, y1, x2, y2) whose intersection over union
    with the row's is above the threshold."""
    program = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    word = program % count
    i = program // count * ROWS + tl.arange(0, ROWS)[:, None]
    bit = tl.arange(0, 32)[None, :]
    j = word * 32 + bit
    left = tl.load(boxes + i * 4, mask=i < n, other=0.0)
    top = tl.load(boxes + i * 4 + 1, mask=i < n, other=0.0)
    right = tl.load(boxes + i * 4 + 2, mask=i < n, other=0.0)
    bottom = tl.load(boxes + i * 4 + 3, mask=i < n, other=0.0)
    other_left = tl.load(boxes + j * 4, mask=j < n, other=0.0)
    other_top = tl.load(boxes + j * 4 + 1, mask=j < n, other=0.0)
    other_right = tl.load(boxes + j * 4 + 2, mask=j < n, other=0.0)
    other_bottom = tl.load(boxes + j * 4 + 3, mask=j < n, other=0.0)
    width = tl.maximum(tl.minimum(right, other_right) - tl.maximum(left, other_left), 0.0)
    height = tl.maximum(tl.minimum(bottom, other_bottom) - tl.maximum(top, other_top), 0.0)
    both = width * height
    area = (right - left) * (bottom - top)
    either = area + (other_right - other_left) * (other_bottom - other_top) - both
    over = (div(both, either) > threshold) & (j > i) & (j < n)
    bits = tl.sum(tl.where(over, 1 << bit, 0), 1)[:, None]
    tl.store(words + i * count + word, bits, mask=i < n)


@triton.jit
def keep_kernel(keep, words, n, count, BLOCK: tl.constexpr):
    """Whether each box overlaps no earlier one that is kept: one program, which goes through them in order."""
    j = tl.arange(0, BLOCK)
    dropped = tl.zeros((BLOCK,), tl.int32)
    for word in range(count):
        here = tl.sum(tl.where(j == word, dropped, 0))
        for bit in range(32):
            row = word * 32 + bit
            kept = (row < n) & (((here >> bit) & 1) == 0)
            tl.store(keep + row, kept.to(tl.int8), mask=row < n)
            here |= tl.load(words + row * count + word, mask=kept, other=0)
            dropped |= tl.load(words + row * count + j, mask=(j < count) & kept, other=0)


def nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """torchvision::nms: the indices of the boxes (n, 4) that are kept, by their scores (n), the greatest first. A box
    goes where its intersection over union with one that is kept is above the threshold."""
    n = dets.shape[0]
    if dets.dtype not in _FLOATS or dets.dim() != 2 or dets.shape[1] != 4 or scores.shape != (n,) or n > _MOST_BOXES:
        raise OnHost("boxes that are refused, of float64, or too many")
    if not n:
        return torch.empty(0, dtype=torch.int64, device=dets.device)
    order = torch.sort(scores, stable=True, descending=True)[1]
    boxes = dets.float()[order].contiguous()
    count = -(-n // _BITS)
    words = torch.empty(n, count, dtype=torch.int32, device=dets.device)
    numbers = {"n": n, "count": count}
    rows = 8
    given = {"words": words, "boxes": boxes, **numbers, "threshold": _below(iou_threshold)}
    launch(overlap_kernel, grid_of(-(-n // rows) * count), given, {"ROWS": rows})
    keep = torch.empty(n, dtype=torch.int8, device=dets.device)
    launch(keep_kernel, (1, 1, 1), {"keep": keep, "words": words, **numbers}, {"BLOCK": power_of_two(count)})
    return order[keep.bool()]


def _below(threshold: float) -> float:
    """The greatest number of float32 that is not above it: what is above the one is above the other."""
    near = torch.tensor(threshold, dtype=torch.float32)
    if float(near) > threshold:
        near = torch.nextafter(near, torch.tensor(-math.inf))
    return float(near)


@triton.jit
def _bins(i, rois, C, P, Q, scale, ratio, ALIGNED: tl.constexpr, mask):
    """The bins of outputs i: (image, channel, y and x where the bin begins, its sizes, samples down and across)."""
    roi = rois + i // (Q * P * C) * 5
    image = tl.load(roi, mask=mask, other=0.0).to(tl.int32)
    offset = 0.5 if ALIGNED else 0.0
    left = tl.load(roi + 1, mask=mask, other=0.0) * scale - offset
    top = tl.load(roi + 2, mask=mask, other=0.0) * scale - offset
    width = tl.load(roi + 3, mask=mask, other=0.0) * scale - offset - left
    height = tl.load(roi + 4, mask=mask, other=0.0) * scale - offset - top
    if not ALIGNED:
        width, height = tl.maximum(width, 1.0), tl.maximum(height, 1.0)
    tall, wide = div(height, P.to(tl.float32)), div(width, Q.to(tl.float32))
    down = tl.where(ratio > 0, ratio, tl.ceil(tall).to(tl.int32))
    across = tl.where(ratio > 0, ratio, tl.ceil(wide).to(tl.int32))
    top += (i // Q % P).to(tl.float32) * tall
    left += (i % Q).to(tl.float32) * wide
    return image, i // (Q * P) % C, top, left, tall, wide, down, across


@triton.jit
def _ends(start, size, k, count, length):
    """The k-th of ``count`` samples of a bin along an axis: (the places before and after it, the weight of the second,
    whether it is inside)."""
    at = start + div((k.to(tl.float32) + 0.5) * size, tl.maximum(count, 1).to(tl.float32))
    inside = (at >= -1.0) & (at <= length) & (k < count)
    at = tl.where(inside, tl.maximum(at, 0.0), 0.0)
    low = tl.minimum(at.to(tl.int32), length - 1)
    last = low >= length - 1
    return low, tl.where(last, low, low + 1), tl.where(last, 0.0, at - low.to(tl.float32)), inside


@triton.jit
def roi_kernel(
    out, x, rois, n, N, C, H, W, P, Q, scale, ratio, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """out (rois, C, P, Q), of n elements: means of samples of x (N, C, H, W), which lie in bins of each roi."""
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    image, c, top, left, tall, wide, down, across = _bins(i, rois, C, P, Q, scale, ratio, ALIGNED, i < n)
    plane = x + (image * C + c).to(tl.int64) * (H * W)
    there = (i < n) & (image >= 0) & (image < N)
    total = tl.zeros((BLOCK,), tl.float32)
    for v in range(tl.max(tl.where(there, down, 0))):
        y0, y1, b, seen = _ends(top, tall, tl.full((BLOCK,), v, tl.int32), down, H)
        for u in range(tl.max(tl.where(there, across, 0))):
            x0, x1, a, inside = _ends(left, wide, tl.full((BLOCK,), u, tl.int32), across, W)
            inside = inside & seen & there
            total += (1 - b) * (1 - a) * tl.load(plane + y0 * W + x0, mask=inside, other=0.0).to(tl.float32)
            total += (1 - b) * a * tl.load(plane + y0 * W + x1, mask=inside, other=0.0).to(tl.float32)
            total += b * (1 - a) * tl.load(plane + y1 * W + x0, mask=inside, other=0.0).to(tl.float32)
            total += b * a * tl.load(plane + y1 * W + x1, mask=inside, other=0.0).to(tl.float32)
    total = div(total, tl.maximum(down * across, 1).to(tl.float32))
    tl.store(out + i, total.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def roi_gradient_kernel(
    dx, grad, rois, n, N, C, H, W, P, Q, scale, ratio, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Adds to dx (N, C, H, W), of float32, what each of the n elements of grad (rois, C, P, Q) makes of its samples."""
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    image, c, top, left, tall, wide, down, across = _bins(i, rois, C, P, Q, scale, ratio, ALIGNED, i < n)
    plane = dx + (image * C + c).to(tl.int64) * (H * W)
    there = (i < n) & (image >= 0) & (image < N)
    g = tl.load(grad + i, mask=i < n, other=0.0).to(tl.float32)
    g = div(g, tl.maximum(down * across, 1).to(tl.float32))
    for v in range(tl.max(tl.where(there, down, 0))):
        y0, y1, b, seen = _ends(top, tall, tl.full((BLOCK,), v, tl.int32), down, H)
        for u in range(tl.max(tl.where(there, across, 0))):
            x0, x1, a, inside = _ends(left, wide, tl.full((BLOCK,), u, tl.int32), across, W)
            inside = inside & seen & there
            tl.atomic_add(plane + y0 * W + x0, g * (1 - b) * (1 - a), mask=inside, sem="relaxed")
            tl.atomic_add(plane + y0 * W + x1, g * (1 - b) * a, mask=inside, sem="relaxed")
            tl.atomic_add(plane + y1 * W + x0, g * b * (1 - a), mask=inside, sem="relaxed")
            tl.atomic_add(plane + y1 * W + x1, g * b * a, mask=inside, sem="relaxed")


def _check(images: torch.Tensor, rois: torch.Tensor) -> None:
    require(images.dtype, images.device.index or 0)
    if images.dtype not in _FLOATS or images.dim() != 4 or rois.dim() != 2 or rois.shape[1] != 5:
        raise OnHost("images of float64, or sizes that are refused")


def roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """torchvision::roi_align: (rois, channels, pooled_height, pooled_width) of images (N, C, H, W) and rois (rows of
    image, x1, y1, x2, y2)."""
    _check(input, rois)
    shape = rois.shape[0], input.shape[1], pooled_height, pooled_width
    out = torch.empty(shape, dtype=input.dtype, device=input.device)
    if max(out.numel(), input.numel()) >= 2**31 or not input.numel():
        raise OnHost("nothing, or too many elements")
    how = spatial_scale, sampling_ratio, aligned
    _launch(roi_kernel, {"out": out, "x": input.contiguous()}, out, input.shape, rois, *how)
    return out


def roi_align_backward(
    grad: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """torchvision::_roi_align_backward: the gradient of the images."""
    _check(grad, rois)
    shape = torch.Size((batch_size, channels, height, width))
    if max(grad.numel(), shape.numel()) >= 2**31:
        raise OnHost("too many elements")
    dx = torch.zeros(shape, dtype=torch.float32, device=grad.device)
    how = spatial_scale, sampling_ratio, aligned
    _launch(roi_gradient_kernel, {"dx": dx, "grad": grad.contiguous()}, grad, shape, rois, *how)
    return dx.to(grad.dtype)


def _launch(
    kernel: Any,
    tensors: dict[str, torch.Tensor],
    pooled: torch.Tensor,
    shape: torch.Size,
    rois: torch.Tensor,
    scale: float,
    ratio: int,
    aligned: bool,
) -> None:
    numbers: dict[str, Any] = {"n": pooled.numel(), **dict(zip("NCHW", shape, strict=True))}
    numbers |= {"P": pooled.shape[2], "Q": pooled.shape[3], "scale": float(scale), "ratio": max(int(ratio), 0)}
    given = {**tensors, "rois": rois.float().contiguous(), **numbers}
    launch(kernel, grid_of(-(-pooled.numel() // _BLOCK)), given, {"ALIGNED": bool(aligned), "BLOCK": _BLOCK})


_TABLE: dict[str, Callable[..., Any]] = {"nms": nms, "roi_align": roi_align, "_roi_align_backward": roi_align_backward}
