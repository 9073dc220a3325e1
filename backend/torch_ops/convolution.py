# mypy: allow-untyped-defs
"""Convolutions of one to three dimensions, forward and backward, as matrix products whose operands are never stored.

Images are read and written with their strides, in memory of any order; weights are contiguous. Results have the order
that torch's have on the CPU: channels come last where those of the input or of the weight do.

With x (N, C, H, W), w (K, C / groups, R, S) and y (N, K, P, Q), y[n, k, p, q] is the sum over c, r, s of
x[n, c, p stride - padding + r dilation, q …] w[k, c, r, s]. The gradient of x, which is a transposed convolution, is
the same sum over k, r, s of what w took from x; that of w sums over n, p, q. All three are one kernel each. Where there
is a third dimension it is before H, R and P: x (…, D, H, W), w (…, T, R, S), y (…, O, P, Q).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch._prims_common import suggest_memory_format

from ..runtime import torch_substitutes
from .devices import kind_of, share_out
from .launching import launch
from .reducing import SUM, reduce
from .shapes import extent
from .types import OnHost, or_not_implemented, require

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_Optional = torch.Tensor | None


#: Rows, columns and products of a step of a tile at most, by what multiplies.
ON_CPU, ON_GPU, ON_MATRIX_UNITS = (32, 32, 16), (64, 64, 16), (64, 64, 32)
#: A gradient of a weight, of which there are few tiles, each a sum over all images, is summed in parts on a GPU: as
#: many at most, each of so many products at least.
_MOST_PARTS, _SHORTEST = 128, 512


def enter_convolution(library: torch.library.Library) -> None:
    """Enter both, by way of runtime/torch_substitutes.py, which torch asks."""
    torch_substitutes.KERNELS.update(
        convolution=or_not_implemented(_convolution), convolution_backward=or_not_implemented(_backward)
    )


@triton.jit
def _split(i, A, B, C, DEEP: tl.constexpr):
    """(i // (A B C), i // (B C) % A, i // C % B, i % C), with A = 1 unless DEEP."""
    if DEEP:
        return i // (A * B * C), i // (B * C) % A, i // C % B, i % C
    else:
        return i // (B * C), i * 0, i // C % B, i % C


@triton.jit
def _tile_of(columns, BM: tl.constexpr, BN: tl.constexpr):
    """(rows, columns) of a program's tile of a product with so many columns."""
    tiles = tl.cdiv(columns, BN)
    row = tl.program_id(0) // tiles * BM + tl.arange(0, BM)[:, None]
    return row, tl.program_id(0) % tiles * BN + tl.arange(0, BN)[None, :]


@triton.jit
def _seen(
    n, c, o, p, q, t, r, s, C, D, H, W, x_n, x_c, x_d, x_h, x_w,
    step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d, DEEP: tl.constexpr,
):  # fmt: skip
    """(the place in x that an output (n, o, p, q) sees through a window's element (c, t, r, s), whether x has it)."""
    f = o * step_d - pad_d + t * dilation_d
    g, h = p * step_h - pad_h + r * dilation_h, q * step_w - pad_w + s * dilation_w
    inside = (g >= 0) & (g < H) & (h >= 0) & (h < W)
    if DEEP:
        inside = inside & (f >= 0) & (f < D)
    place = n * x_n + (tl.program_id(1) * C + c) * x_c + g * x_h + h * x_w
    return place + f * x_d if DEEP else place, inside


@triton.jit
def forward_kernel(
    y, x, w, bias, N, C, D, H, W, K, O, P, Q, x_n, x_c, x_d, x_h, x_w, y_n, y_k, y_o, y_p, y_q,  # noqa: E741
    step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """y of x and contiguous w: strides ``step``, padding ``pad``, dilation; C and K are of one group; x_n, …, y_q: how
    many elements apart x's and y's are along each axis."""
    group = tl.program_id(1)
    image = C, D, H, W, x_n, x_c, x_d, x_h, x_w
    window = step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d
    row, k = _tile_of(K, BM, BN)
    n, o, p, q = _split(row, O, P, Q, DEEP)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, C * T * R * S, BK):
        i = start + tl.arange(0, BK)[None, :]
        c, t, r, s = _split(i, T, R, S, DEEP)
        place, inside = _seen(n, c, o, p, q, t, r, s, *image, *window, DEEP)
        left = tl.load(x + place, mask=inside & (row < N * O * P * Q) & (i < C * T * R * S), other=0.0)
        j = start + tl.arange(0, BK)[:, None]
        right = tl.load(w + (group * K + k) * C * T * R * S + j, mask=(j < C * T * R * S) & (k < K), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + group * K + k, mask=k < K, other=0.0).to(tl.float32)
    place = y + n * y_n + (group * K + k) * y_k + o * y_o + p * y_p + q * y_q
    tl.store(place, total.to(y.dtype.element_ty), mask=(row < N * O * P * Q) & (k < K))


@triton.jit
def input_kernel(
    x, y, w, bias, N, C, D, H, W, K, O, P, Q, x_n, x_c, x_d, x_h, x_w, y_n, y_k, y_o, y_p, y_q,  # noqa: E741
    step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d,
    HAS_BIAS: tl.constexpr, DEEP: tl.constexpr, T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """x of y and contiguous w: the gradient of a convolution's input, and the transposed convolution."""
    group = tl.program_id(1)
    row, c = _tile_of(C, BM, BN)
    n, f, g, h = _split(row, D, H, W, DEEP)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K * T * R * S, BK):
        i = start + tl.arange(0, BK)[None, :]
        k, t, r, s = _split(i, T, R, S, DEEP)
        o, p, q = f + pad_d - t * dilation_d, g + pad_h - r * dilation_h, h + pad_w - s * dilation_w
        inside = (row < N * D * H * W) & (i < K * T * R * S)
        inside = inside & (p >= 0) & (q >= 0) & (p % step_h == 0) & (q % step_w == 0)
        if DEEP:
            inside = inside & (o >= 0) & (o % step_d == 0) & (o // step_d < O)
            o = o // step_d
        p, q = p // step_h, q // step_w
        inside = inside & (p < P) & (q < Q)
        place = n * y_n + (group * K + k) * y_k + o * y_o + p * y_p + q * y_q
        left = tl.load(y + place, mask=inside, other=0.0)
        j = start + tl.arange(0, BK)[:, None]
        k, t, r, s = _split(j, T, R, S, DEEP)
        place = w + ((((group * K + k) * C + c) * T + t) * R + r) * S + s
        right = tl.load(place, mask=(j < K * T * R * S) & (c < C), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + group * C + c, mask=c < C, other=0.0).to(tl.float32)
    place = x + n * x_n + (group * C + c) * x_c + f * x_d + g * x_h + h * x_w
    tl.store(place, total.to(x.dtype.element_ty), mask=(row < N * D * H * W) & (c < C))


@triton.jit
def weight_kernel(
    w, x, y, share, stride_part, N, C, D, H, W, K, O, P, Q, x_n, x_c, x_d, x_h, x_w, y_n, y_k, y_o, y_p, y_q,  # noqa: E741
    step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d,
    DEEP: tl.constexpr, T: tl.constexpr, R: tl.constexpr, S: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """w, its gradient, of x and the gradient y of the output. The third axis of the grid are parts of the sum, of
    ``share`` products (a multiple of BK), which are written ``stride_part`` apart."""
    group = tl.program_id(1)
    image = C, D, H, W, x_n, x_c, x_d, x_h, x_w
    window = step_h, step_w, pad_h, pad_w, dilation_h, dilation_w, step_d, pad_d, dilation_d
    k, j = _tile_of(C * T * R * S, BM, BN)
    c, t, r, s = _split(j, T, R, S, DEEP)
    total = tl.zeros((BM, BN), tl.float32)
    part = tl.program_id(2)
    for start in range(part * share, min(part * share + share, N * O * P * Q), BK):
        i = start + tl.arange(0, BK)[None, :]
        n, o, p, q = _split(i, O, P, Q, DEEP)
        place = n * y_n + (group * K + k) * y_k + o * y_o + p * y_p + q * y_q
        left = tl.load(y + place, mask=(i < N * O * P * Q) & (k < K), other=0.0)
        i = start + tl.arange(0, BK)[:, None]
        n, o, p, q = _split(i, O, P, Q, DEEP)
        place, inside = _seen(n, c, o, p, q, t, r, s, *image, *window, DEEP)
        right = tl.load(x + place, mask=inside & (i < N * O * P * Q) & (j < C * T * R * S), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    place = w + part * stride_part + (group * K + k) * C * T * R * S + j
    tl.store(place, total.to(w.dtype.element_ty), mask=(k < K) & (j < C * T * R * S))


def _three(values: Sequence[int], fill: int) -> tuple[int, ...]:
    """Of fewer dimensions: with others before them, along which nothing moves."""
    return (*(fill,) * (3 - len(values)), *values)


def _of_axes(name: str, axes: str, values: Sequence[int]) -> dict[str, int]:
    return {f"{name}_{axis}": value for axis, value in zip(axes, values, strict=True)}


def _images(tensor: torch.Tensor) -> torch.Tensor:
    """Of five dimensions, of which those that were not there have size 1; places in it are counted in 32 bits."""
    while tensor.dim() < 5:
        tensor = tensor.unsqueeze(2)
    return tensor if extent(tensor.shape, tensor.stride()) < 2**31 else tensor.contiguous()


def order_of(x: torch.Tensor, w: torch.Tensor) -> torch.memory_format:
    """Where the channels of results are in memory, as on the CPU: last where x or w has them last. Both are images,
    or lines, which torch convolves as contiguous images of height 1."""
    if x.dim() == 3:
        x, w = x.contiguous().unsqueeze(2), w.unsqueeze(2)
    own = suggest_memory_format(x)
    return suggest_memory_format(w) if own == torch.contiguous_format else own


def _check(*tensors: _Optional) -> None:
    first = tensors[0]
    for tensor in tensors:
        if tensor is None or first is None:
            continue
        require(tensor.dtype, tensor.device.index or 0)
        if tensor.dtype not in _TYPES or tensor.dtype != first.dtype or tensor.device != first.device:
            raise OnHost("numbers that are not of one float type of at most 32 bits")
    if first is None or first.dim() not in (3, 4, 5):
        raise OnHost("a convolution of other than one to three dimensions")


class _Shape:
    """The sizes of a convolution's x, w and y, each of which may be what is computed."""

    def __init__(self, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, how: Sequence[Any]) -> None:
        stride, padding, dilation, self.groups = how
        if x.numel() == 0 or y.numel() == 0 or max(x.numel(), y.numel(), w.numel()) >= 2**31:
            raise OnHost("nothing, or too much, to convolve")
        self.sizes = dict(zip("NCDHW", x.shape, strict=True)) | {"C": x.shape[1] // self.groups}
        self.sizes |= dict(zip("KOPQ", y.shape[1:], strict=True)) | {"K": y.shape[1] // self.groups}
        self.sizes |= _of_axes("x", "ncdhw", x.stride()) | _of_axes("y", "nkopq", y.stride())
        self.sizes |= _of_axes("step", "dhw", _three(stride, 1)) | _of_axes("pad", "dhw", _three(padding, 0))
        self.sizes |= _of_axes("dilation", "dhw", _three(dilation, 1))
        self.window = dict(zip("TRS", w.shape[2:], strict=True))
        self.window["DEEP"] = x.shape[2] * y.shape[2] * w.shape[2] > 1 or self.sizes["pad_d"] > 0

    def run(
        self, kernel: Any, tensors: dict[str, torch.Tensor], rows: int, columns: int, parts: int = 1, **constants: Any
    ) -> None:
        """Launch a kernel for a product of so many rows and columns in each group."""
        most = _largest(tensors["x"])
        tile = [16 if size <= 16 else size_of_tile for size, size_of_tile in zip((rows, columns), most, strict=False)]
        grid = -(-rows // tile[0]) * -(-columns // tile[1]), self.groups, parts
        blocks = {"BM": tile[0], "BN": tile[1], "BK": most[2]}
        launch(kernel, grid, {**tensors, **self.sizes}, {**constants, **self.window, **blocks}, fusion=True)


def _largest(x: torch.Tensor) -> tuple[int, int, int]:
    on = kind_of(x.device.index or 0)
    return ON_CPU if on.cpu else ON_MATRIX_UNITS if on.multiplies(x.dtype) else ON_GPU


def _forward(x: torch.Tensor, w: torch.Tensor, bias: _Optional, y: torch.Tensor, how: Sequence[Any]) -> None:
    _to_images(forward_kernel, _Shape(x, w, y, how), {"y": y, "x": x, "w": w}, bias, "K")


def _to_input(y: torch.Tensor, w: torch.Tensor, bias: _Optional, x: torch.Tensor, how: Sequence[Any]) -> None:
    _to_images(input_kernel, _Shape(x, w, y, how), {"x": x, "y": y, "w": w}, bias, "C")


def _to_images(kernel: Any, shape: _Shape, tensors: dict[str, torch.Tensor], bias: _Optional, channels: str) -> None:
    """``tensors``: the one that is computed first."""
    out = next(iter(tensors.values()))
    tensors["bias"] = out if bias is None else bias.contiguous()
    shape.run(kernel, tensors, out.numel() // out.shape[1], shape.sizes[channels], HAS_BIAS=bias is not None)


def _to_weight(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, how: Sequence[Any]) -> None:
    shape = _Shape(x, w, y, how)
    rows, columns, reach = shape.sizes["K"], w.numel() // w.shape[0], y.numel() // y.shape[1]
    on, (most_rows, most_columns, step) = kind_of(x.device.index or 0), _largest(x)
    parts = 1
    if not on.cpu:
        tiles = -(-rows // most_rows) * -(-columns // most_columns) * shape.groups
        parts = min(share_out(tiles, on.units, reach, _SHORTEST), _MOST_PARTS)
    share = -(-reach // (parts * step)) * step
    parts = -(-reach // share)
    out = w if parts == 1 else torch.empty((parts, *w.shape), dtype=torch.float32, device=w.device)
    shape.sizes |= {"share": share, "stride_part": w.numel()}
    shape.run(weight_kernel, {"w": out, "x": x, "y": y}, rows, columns, parts)
    if parts > 1:
        reduce("x", SUM, {"x": out}, (0,), dtype=w.dtype, compute=torch.float32, out=w)


def _convolution(
    input: torch.Tensor,  # noqa: A002 (torch's name)
    weight: torch.Tensor,
    bias: _Optional,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    _check(input, weight, bias)
    meta = torch.ops.aten.convolution(
        *(None if t is None else torch.empty_like(t, device="meta") for t in (input, weight, bias)),
        *(stride, padding, dilation, transposed, output_padding, groups),
    )
    order = order_of(input, weight)
    out = torch.empty(meta.shape, dtype=input.dtype, device=input.device, memory_format=order)
    how = stride, padding, dilation, groups
    (_to_input if transposed else _forward)(_images(input), _images(weight).contiguous(), bias, _images(out), how)
    return out


def _backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,  # noqa: A002
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[_Optional, ...]:
    _check(grad_output, input, weight)
    how = stride, padding, dilation, groups
    grad, x, w = _images(grad_output), _images(input), _images(weight).contiguous()
    order = order_of(input, weight)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=input.device, memory_format=order)
        (_forward if transposed else _to_input)(grad, w, None, _images(grad_input), how)
    if output_mask[1]:
        grad_weight = torch.empty(weight.shape, dtype=weight.dtype, device=weight.device)
        both = (grad, x) if transposed else (x, grad)
        _to_weight(*both, _images(grad_weight), how)
        if order != torch.contiguous_format:
            grad_weight = torch.empty_like(grad_weight, memory_format=order).copy_(grad_weight)
    if output_mask[2]:
        grad_bias = grad_output.sum((0, *range(2, grad_output.dim())))
    return grad_input, grad_weight, grad_bias
