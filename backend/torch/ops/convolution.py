"""Convolutions of one to three dimensions, forward and backward, as matrix products whose operands are never stored.

With x (N, C, H, W), w (K, C / groups, R, S) and y (N, K, P, Q), y[n, k, p, q] is the sum over r, s, c of
x[n, c, p stride - padding + r dilation, q …] w[k, c, r, s]. The gradient of x, which is a transposed convolution, is
such a sum for the positions of x that have one remainder by the stride: they see every so many elements of the window
through y (convolution_axes.py). That of w sums over n, p, q. If there is a third dimension it is before H, R and P:
x (…, D, H, W), w (…, T, R, S), y (…, O, P, Q).

Images are read with their channels last (convolution_kernels.py), and copied where they are not. Results have the order
that torch's have on the CPU: channels come last where the input's or the weight's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from ..device import substitutes
from . import depthwise
from .convolution_axes import Axes, Convolving, distances, first_place, is_deep, named, seeing, taken
from .convolution_images import LIMIT, Image, five_dimensions
from .convolution_kernels import image_kernel, weight_kernel
from .device_facts import kind_of
from .dtypes import OnHost, or_not_implemented, require
from .launching import launch
from .library import aten
from .matmul import product
from .processor import or_torchs
from .reducing import SUM, reduce
from .strided_shapes import power_of_two
from .tiles import Division, fastest, shared, tiles_for

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_Optional = torch.Tensor | None


def enter_convolution(library: torch.library.Library) -> None:
    """Enter both, by way of torch/device/substitutes.py, which torch asks."""
    for name, run in (("convolution", _convolution), ("convolution_backward", _backward)):
        substitutes.KERNELS[name] = or_torchs(getattr(aten, name).default, or_not_implemented(run))


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


def _division(w: torch.Tensor, sizes: tuple[int, int, int, int], divides: bool) -> Division:
    """The division of a product of so many rows, columns, products and groups, by a tile with no more rows and columns
    than it needs. ``divides``: its sums may be in parts."""
    on = kind_of(w.device.index or 0)
    tiles = tiles_for(on, w.dtype)
    rows, columns = (max(16, power_of_two(size)) for size in sizes[:2])
    narrow = [tile for tile in tiles if tile.columns <= columns] or tiles[-1:]
    found = fastest(narrow, on, w.dtype, sizes, divides and not on.cpu)
    tile = replace(found.tile, rows=min(found.tile.rows, rows), columns=min(found.tile.columns, columns))
    return Division(tile, found.parts)


def _to_images(
    image: Image, w: torch.Tensor, bias: _Optional, out: torch.Tensor, how: Convolving, to_input: bool
) -> None:
    """Write y of an image x, or x of an image y if ``to_input``. ``w``: contiguous, (K, C / groups, T, R, S)."""
    if _is_product(image, w, out, how):
        n, columns = out.shape[0], out.view(*out.shape[:2], -1)
        matrix = w.view(w.shape[:2])
        matrix = (matrix.T if to_input else matrix).expand(n, -1, -1)
        added = None if bias is None else bias[:, None].expand(columns.shape)
        product(columns, matrix, image.dense.view(n, image.channels, -1), added, beta=float(bias is not None))
        return
    classes = how.gradient_axes(out, w) if to_input else [how.axes(out, w)]
    if _is_depthwise(w, how):
        depthwise.to_images(image, w, bias, out, classes, to_input)
    else:
        _products(image, w, bias, out, classes, to_input)


def _is_product(image: Image, w: torch.Tensor, out: torch.Tensor, how: Convolving) -> bool:
    """Whether windows of one element without padding are matrix products of images in contiguous memory."""
    plain = w.shape[2:].numel() == 1 and how.groups == 1 and {*how.stride} == {1} and {*how.padding} == {0}
    return plain and out.is_contiguous() and not image.has_channels_last


def _is_depthwise(w: torch.Tensor, how: Convolving) -> bool:
    return how.groups > 1 and w.shape[1] == 1


def _products(
    image: Image, w: torch.Tensor, bias: _Optional, out: torch.Tensor, classes: Sequence[Axes], to_input: bool
) -> None:
    groups, vector, columns = image.groups, image.vector, out.shape[1] // image.groups
    window = w.view(groups, -1, w.shape[1], w.shape[2:].numel()).permute(0, 3, 1, 2)  # (groups, elements, K, C)
    arranged: dict[int, torch.Tensor] = {}
    for axes in classes:
        numbers = seeing(axes, image.given, out) | taken(axes, w)
        taps = prod(axis.taps for axis in axes)
        tile = _division(w, (numbers["rows"], columns, taps * image.pitch, groups), divides=False).tile
        if tile.columns not in arranged:
            width = -(-columns // tile.columns) * tile.columns
            arranged[tile.columns] = _arranged(window if to_input else window.mT, image.pitch, width)
        weights = arranged[tile.columns]
        positions = numbers["rows"] // out.shape[0]
        across = out.stride(1) != 1 and out.shape[1] > 1
        dense = across and out.is_contiguous() and positions == out.shape[2:].numel()
        unit = gcd(vector, positions) if dense else 1 if across else gcd(vector, columns)
        apart = [*distances(axes, out)[:-1], positions] if dense else distances(axes, out)
        numbers |= named("out", [distance // unit for distance in apart], "nkdhw")
        numbers |= {"begin": first_place(axes, out) // unit, "depth": weights.shape[1], "K": columns}
        numbers |= {"columns": weights.shape[3] // 16, "steps": image.pitch // tile.step}
        numbers |= {"channels": image.pitch // vector, "pitch": groups * image.pitch // vector}
        tensors = {"out": out, "image": image.last, "weights": weights}
        tensors["bias"] = weights if bias is None else bias.contiguous()
        constants: dict[str, Any] = {"HAS_BIAS": bias is not None, "DEEP": is_deep(axes, image.given), "ACROSS": across}
        constants |= {"DENSE": dense, "GUARDED": _is_guarded(axes, image), "VECTOR": vector, "UNIT": unit}
        constants["CHANNELS"] = image.pitch if image.pitch % tile.step else None
        constants |= {"BM": tile.rows, "BN": tile.columns, "BK": tile.step}
        grid = tile.programs(numbers["rows"], columns), groups, 1
        launch(image_kernel, grid, tensors | numbers, constants, tile.warps, True, frozenset("K"))


def _is_guarded(axes: Axes, image: Image) -> bool:
    """Whether a window reaches out of the image."""
    return any(axis.leaves(size) for axis, size in zip(axes, image.given.shape[2:], strict=True))


def _arranged(weights: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """(groups, elements, C, K), padded with zeros to so many channels of either kind."""
    groups, elements, c, k = weights.shape
    if groups * elements * rows * columns >= LIMIT:
        raise OnHost("more weights than are counted in 32 bits")
    if (c, k) == (rows, columns):
        return weights.contiguous()
    out = weights.new_zeros((groups, elements, rows, columns))
    out[:, :, :c, :k].copy_(weights)
    return out


def _to_weight(x: Image, y: Image, w: torch.Tensor, how: Convolving) -> None:
    """Write the gradient of w (K, C / groups, T, R, S), which is contiguous, of x and the gradient of y."""
    axes = how.axes(y.given, w)
    if _is_depthwise(w, how):
        depthwise.to_weight(x, y, w, axes)
        return
    groups, elements, vector = how.groups, w.shape[2:].numel(), x.vector
    numbers = seeing(axes, x.given, y.given)
    rows, columns, reach = elements * x.pitch, y.channels, numbers["rows"]
    division = _division(w, (rows, columns, reach, groups), divides=True)
    tile = division.tile
    grid = tile.programs(rows, columns), groups
    parts, share = shared(reach, division.parts, tile.step)
    arranged = w.view(groups, columns, x.channels, elements).permute(0, 3, 2, 1)
    out = arranged[None] if parts == 1 else w.new_empty((parts, *arranged.shape), dtype=torch.float32)
    unit = gcd(4, columns) if parts > 1 else 1
    apart = [distance // unit for distance in out.stride()[:-1]] + [out.stride(-1)]
    numbers |= dict(zip(("out_part", "out_group", "out_e", "out_c", "stride_k"), apart, strict=True))
    numbers |= {"share": share, "C": x.channels, "K": columns}
    numbers |= {"pitch": groups * x.pitch // vector, "channels": x.pitch // vector}
    numbers |= {"grad_pitch": groups * y.pitch // vector, "grad_channels": y.pitch // vector}
    for axis in "opq":
        numbers[f"factor_{axis}"], numbers[f"shift_{axis}"] = dividing_by(numbers[axis.upper()])
    constants: dict[str, Any] = {"DEEP": is_deep(axes, x.given), "GUARDED": _is_guarded(axes, x), "VECTOR": vector}
    constants |= {"CHANNELS": x.pitch if x.pitch % tile.rows else None, "UNIT": unit}
    constants |= {"BM": tile.rows, "BN": tile.columns, "BK": tile.step}
    tensors = {"out": out if parts > 1 else w, "image": x.last, "grad": y.last}
    launch(weight_kernel, (*grid, parts), tensors | numbers, constants, tile.warps, True, frozenset("K"))
    if parts > 1:
        reduce("x", SUM, {"x": out}, (0,), dtype=w.dtype, compute=torch.float32, out=arranged)


def dividing_by(divisor: int) -> tuple[int, int]:
    """(factor, shift), so that i // divisor of 31 bits is the upper 32 bits of i times the factor, shifted; the factor
    has 32 bits, as a signed number, and is 0 for a divisor of 1. T. Granlund and P. Montgomery, "Division by invariant
    integers using multiplication", 1994."""
    if divisor == 1:
        return 0, 0
    bits = (divisor - 1).bit_length()
    return (1 << (31 + bits)) // divisor + 1 - (1 << 32), bits - 1


def _bounded(*tensors: torch.Tensor) -> None:
    if any(tensor.numel() == 0 or tensor.numel() >= LIMIT for tensor in tensors):
        raise OnHost("nothing, or too much, to convolve")


def _each(*numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """The numbers of each dimension, of which one stands for all."""
    count = max(map(len, numbers))
    return [tuple(given) * (count // len(given)) for given in numbers]


def _convolution(
    input: torch.Tensor,
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
    if min((*stride, *dilation)) < 1 or min(padding) < 0:
        raise OnHost("strides, dilations or padding that are refused")
    if transposed and any(o >= max(s, d) for o, s, d in zip(*_each(output_padding, stride, dilation), strict=True)):
        raise OnHost("padding of the output that is refused")
    meta = torch.ops.aten.convolution(
        *(None if t is None else torch.empty_like(t, device="meta") for t in (input, weight, bias)),
        *(stride, padding, dilation, transposed, output_padding, groups),
    )
    _bounded(input, weight, meta)
    order = order_of(input, weight)
    out = torch.empty(meta.shape, dtype=input.dtype, device=input.device, memory_format=order)
    image, how = Image(input, groups), Convolving.of(stride, padding, dilation, groups)
    _to_images(image, five_dimensions(weight).contiguous(), bias, five_dimensions(out), how, transposed)
    return out


def _backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[_Optional, ...]:
    _check(grad_output, input, weight)
    _bounded(grad_output, input, weight)
    how = Convolving.of(stride, padding, dilation, groups)
    grad, x = Image(grad_output, groups), Image(input, groups)
    order = order_of(input, weight)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=input.device, memory_format=order)
        _to_images(grad, five_dimensions(weight).contiguous(), None, five_dimensions(grad_input), how, not transposed)
    if output_mask[1]:
        grad_weight = torch.empty(weight.shape, dtype=weight.dtype, device=weight.device)
        _to_weight(*((grad, x) if transposed else (x, grad)), five_dimensions(grad_weight), how)
        if order != torch.contiguous_format:
            grad_weight = torch.empty_like(grad_weight, memory_format=order).copy_(grad_weight)
    if output_mask[2]:
        grad_bias = grad_output.sum((0, *range(2, grad_output.dim())))
    return grad_input, grad_weight, grad_bias
