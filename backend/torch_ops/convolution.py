"""Convolutions of one to three dimensions, forward and backward, as matrix products whose operands are never stored.

With x (N, C, H, W), w (K, C / groups, R, S) and y (N, K, P, Q), y[n, k, p, q] is the sum over r, s, c of
x[n, c, p stride - padding + r dilation, q …] w[k, c, r, s]. The gradient of x, which is a transposed convolution, is
such a sum for the positions of x that have one remainder by the stride: they see every so many elements of the window
through y (_gradient_axes). That of w sums over n, p, q. Where there is a third dimension it is before H, R and P:
x (…, D, H, W), w (…, T, R, S), y (…, O, P, Q).

Images are read with their channels last (convolution_kernels.py), and copied where they are not. Results have the order
that torch's have on the CPU: channels come last where those of the input or of the weight do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as every
from math import gcd, prod
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

from ..runtime import torch_substitutes
from .convolution_kernels import alone_kernel, channels_last_kernel, image_kernel, weight_alone_kernel, weight_kernel
from .devices import kind_of, share_out
from .launching import launch
from .matmul import Tile, busy_tile, product
from .reducing import SUM, reduce
from .shapes import power_of_two
from .types import OnHost, or_not_implemented, require

_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_Optional = torch.Tensor | None

#: Tiles by what multiplies, the largest first, which is taken where it keeps the device busy. ``step``: channels.
ON_CPU = (Tile(32, 32, 16),)
ON_MATRIX_UNITS = (Tile(128, 128, 32, 4), Tile(128, 64, 32, 4), Tile(64, 64, 32, 4))
ON_GPU = (Tile(128, 128, 16, 8), Tile(128, 64, 16, 4), Tile(64, 64, 16, 4))
#: A gradient of a weight, of which there are few tiles, each a sum over all images, is summed in parts on a GPU: as
#: many at most, each of so many products at least.
_MOST_PARTS, _SHORTEST = 128, 512
#: Positions and channels of a tile that is copied, and elements of one of channels that are convolved alone.
_COPIED, _ALONE = (64, 32), 1024
_BYTES = 16  # of an access
_LIMIT = 2**31  # of places that are counted in 32 bits


def enter_convolution(library: torch.library.Library) -> None:
    """Enter both, by way of runtime/torch_substitutes.py, which torch asks."""
    torch_substitutes.KERNELS.update(
        convolution=or_not_implemented(_convolution), convolution_backward=or_not_implemented(_backward)
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """How ``size`` positions of a result along an axis see an image. Position p of them, which is ``at`` + p ``apart``
    of the result's, sees p step + start + r move through element r of ``taps``, the window's ``first`` + r every."""

    size: int
    step: int
    start: int
    move: int
    taps: int
    first: int = 0
    every: int = 1
    at: int = 0
    apart: int = 1

    def leaves(self, size: int) -> bool:
        """Whether a position sees one that an image of ``size`` along the axis does not have."""
        reach = (self.taps - 1) * self.move
        low, high = min(0, reach), (self.size - 1) * self.step + max(0, reach)
        return self.taps > 0 and not 0 <= self.start + low <= self.start + high < size


def _gradient_axes(size: int, taps: int, stride: int, padding: int, dilation: int) -> list[_Axis]:
    """Of x, one for each remainder by the stride: x at a + p stride sees y at p + start - r dilation / g through every
    stride / g-th element of the window, g being what stride and dilation have in common."""
    common = gcd(stride, dilation)
    axes = []
    for at in range(min(stride, size)):
        seen = [r for r in range(taps) if (at + padding - r * dilation) % stride == 0] or [taps]
        start = (at + padding - seen[0] * dilation) // stride
        some = _Axis(-(-(size - at) // stride), 1, start, -(dilation // common), len(seen), seen[0], stride // common)
        none = _Axis(some.size, 1, 0, 0, 0)
        axes.append(replace(none if seen[0] == taps else some, at=at, apart=stride))
    return axes


@dataclass(frozen=True, slots=True)
class _How:
    """What torch says of a convolution, for three dimensions; along those that are missing nothing moves."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @staticmethod
    def of(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> _How:
        fills = ((stride, 1), (padding, 0), (dilation, 1))
        three = [(*(fill,) * (3 - len(given)), *given) for given, fill in fills]
        return _How(three[0], three[1], three[2], groups)


def _images(tensor: torch.Tensor) -> torch.Tensor:
    """Of five dimensions, of which those that were not there have size 1."""
    while tensor.dim() < 5:
        tensor = tensor.unsqueeze(2)
    return tensor


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


def _padded(channels: int, dtype: torch.dtype) -> int:
    vector = _BYTES // dtype.itemsize
    return -(-channels // vector) * vector


class _Image:
    """An image (N, groups C, D, H, W) that is read: ``dense``, without gaps, and ``last``, with its channels last and
    each group's padded with zeros to ``pitch`` elements."""

    def __init__(self, given: torch.Tensor, groups: int) -> None:
        self.given, self.groups = _images(given), groups
        self.channels = self.given.shape[1] // groups
        self.pitch = _padded(self.channels, given.dtype)
        if self.given.numel() // self.channels * self.pitch >= _LIMIT:
            raise OnHost("more elements than are counted in 32 bits")

    @cached_property
    def has_channels_last(self) -> bool:
        """Whether they follow each other in memory."""
        return self.given.is_contiguous(memory_format=torch.channels_last_3d)

    @cached_property
    def dense(self) -> torch.Tensor:
        """The image, its channels last or as contiguous memory has them."""
        return self.given if self.has_channels_last else self.given.contiguous()

    @cached_property
    def last(self) -> torch.Tensor:
        """(N, D, H, W, groups, pitch)."""
        n, _, *sizes = self.given.shape
        if self.has_channels_last and self.pitch == self.channels:
            return self.given
        image, positions = self.dense, prod(sizes)
        if self.has_channels_last:  # of few channels, which are padded
            image = torch.empty(image.shape, dtype=image.dtype, device=image.device).copy_(image)
        out = image.new_empty((n, *sizes, self.groups, self.pitch))
        vector = _BYTES // image.element_size()
        rows, columns = min(_COPIED[0], max(16, power_of_two(positions))), min(_COPIED[1], power_of_two(self.pitch))
        grid = -(-positions // rows) * -(-self.pitch // columns), n * self.groups, 1
        arguments = {"out": out, "image": image, "positions": positions, "C": self.channels}
        arguments |= {"channels": self.pitch // vector, "pitch": self.groups * self.pitch // vector}
        arguments |= {"image_n": image.stride(0) if n > 1 else 0, "image_c": positions}
        constants = {"VECTOR": vector, "ROWS": rows, "COLUMNS": columns}
        launch(channels_last_kernel, grid, arguments, constants, divisible=frozenset(("positions", "image_c")))
        return out


def _named(name: str, values: Sequence[int], axes: str = "dhw") -> dict[str, int]:
    return {f"{name}_{axis}": value for axis, value in zip(axes, values, strict=True)}


def _seeing(axes: Sequence[_Axis]) -> dict[str, int]:
    """What kernels are passed of three axes."""
    numbers = dict(zip("OPQ", (axis.size for axis in axes), strict=True))
    numbers |= dict(zip("TRS", (axis.taps for axis in axes), strict=True))
    for name in ("step", "start", "move"):
        numbers |= _named(name, [getattr(axis, name) for axis in axes])
    return numbers


def _window(sizes: Sequence[int], axes: Sequence[_Axis]) -> dict[str, int]:
    """Which elements of a whole window of such sizes the axes' taps are."""
    strides = sizes[1] * sizes[2], sizes[2], 1
    first = sum(axis.first * stride for axis, stride in zip(axes, strides, strict=True))
    return {"first": first} | _named(
        "weight", [axis.every * stride for axis, stride in zip(axes, strides, strict=True)], "trs"
    )


def _tile(dtype: torch.dtype, device: int, sizes: tuple[int, int, int], parts: int) -> Tile:
    """Of a product of so many rows, columns and groups, with no more columns than it needs."""
    on = kind_of(device)
    tiles = ON_CPU if on.cpu else ON_MATRIX_UNITS if on.multiplies(dtype) else ON_GPU
    needed = max(16, power_of_two(sizes[1]))
    tile = busy_tile([tile for tile in tiles if tile.columns <= needed] or tiles[-1:], on, sizes, parts)
    return replace(tile, rows=min(tile.rows, max(16, power_of_two(sizes[0]))), columns=min(tile.columns, needed))


def _to_images(image: _Image, w: torch.Tensor, bias: _Optional, out: torch.Tensor, how: _How, to_input: bool) -> None:
    """Write y of an image x, or x of an image y if ``to_input``. ``w``: as torch has it, of five dimensions."""
    if _is_product(image, w, out, how):
        n, k, c = out.shape[0], *w.shape[:2]
        matrix = (w.view(k, c).T if to_input else w.view(k, c)).expand(n, -1, -1)
        columns = out.view(n, out.shape[1], -1)
        added = None if bias is None else bias[:, None].expand(columns.shape)
        product(columns, matrix, image.dense.reshape(n, image.channels, -1), added, 1.0, 0.0 if added is None else 1.0)
        return
    classes = [*every(*map(_gradient_axes, *_sizes(out, w, how)))] if to_input else [_axes(out, w, how)]
    run = _alone if how.groups > 1 and w.shape[1] == 1 else _products
    run(image, w, bias, out, how, to_input, classes)


def _sizes(out: torch.Tensor, w: torch.Tensor, how: _How) -> tuple[Sequence[int], ...]:
    return out.shape[2:], w.shape[2:], how.stride, how.padding, how.dilation


def _axes(y: torch.Tensor, w: torch.Tensor, how: _How) -> tuple[_Axis, ...]:
    """How y sees x."""
    sizes = zip(*_sizes(y, w, how), strict=True)
    return tuple(_Axis(p, step, -pad, move, taps) for p, taps, step, pad, move in sizes)


def _is_product(image: _Image, w: torch.Tensor, out: torch.Tensor, how: _How) -> bool:
    """Whether windows of one element without padding are matrix products of images in contiguous memory."""
    plain = w.shape[2:].numel() == 1 and how.groups == 1 and set(how.stride) == {1} and set(how.padding) == {0}
    return plain and out.is_contiguous() and not image.has_channels_last


def _products(
    image: _Image, w: torch.Tensor, bias: _Optional, out: torch.Tensor, how: _How, to_input: bool, classes: Any
) -> None:
    groups, vector = how.groups, _BYTES // w.element_size()
    columns = out.shape[1] // groups
    window = w.view(groups, -1, w.shape[1], w.shape[2:].numel()).permute(0, 3, 1, 2)  # (groups, elements, K, C)
    arranged: dict[int, torch.Tensor] = {}
    for axes in classes:
        rows = out.shape[0] * prod(axis.size for axis in axes)
        tile = _tile(w.dtype, w.device.index or 0, (rows, columns, groups), 1)
        if tile.columns not in arranged:
            width = -(-columns // tile.columns) * tile.columns
            arranged[tile.columns] = _arranged(window if to_input else window.mT, image.pitch, width)
        weights = arranged[tile.columns]
        whole = image.pitch % tile.step == 0
        strides = [stride * axis.apart for stride, axis in zip(out.stride()[2:], axes, strict=True)]
        strides.insert(0, out.stride(0))
        across = out.stride(1) != 1 and out.shape[1] > 1
        unit = 1 if across else gcd(vector, columns, *out.stride()[2:])
        numbers = (
            _seeing(axes) | _window(w.shape[2:], axes) | {"depth": weights.shape[1], "columns": weights.shape[3] // 16}
        )
        numbers |= dict(zip("DHW", image.given.shape[2:], strict=True)) | {"rows": rows, "K": columns}
        numbers |= {"channels": image.pitch // vector, "pitch": groups * image.pitch // vector}
        numbers |= {"steps": image.pitch // tile.step, "stride_k": out.stride(1) if across else 1}
        numbers |= _named("out", [stride // unit for stride in strides], "ndhw")
        numbers["begin"] = sum(stride * axis.at for stride, axis in zip(out.stride()[2:], axes, strict=True)) // unit
        tensors = {"out": out, "image": image.last, "weights": weights}
        tensors["bias"] = weights if bias is None else bias.contiguous()
        constants: dict[str, Any] = {
            "HAS_BIAS": bias is not None,
            "DEEP": _is_deep(image, out, w, how),
            "ACROSS": across,
        }
        guarded = any(axis.leaves(size) for axis, size in zip(axes, image.given.shape[2:], strict=True))
        constants |= {"GUARDED": guarded, "CHANNELS": None if whole else image.pitch, "VECTOR": vector, "UNIT": unit}
        constants |= {"BM": tile.rows, "BN": tile.columns, "BK": tile.step}
        grid = -(-rows // tile.rows) * -(-columns // tile.columns), groups, 1
        launch(image_kernel, grid, tensors | numbers, constants, tile.warps, True, frozenset("K"))


def _is_deep(image: _Image, out: torch.Tensor, w: torch.Tensor, how: _How) -> bool:
    return image.given.shape[2] * out.shape[2] * w.shape[2] > 1 or how.padding[0] > 0


def _arranged(weights: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """(groups, elements, C, K), padded with zeros to so many channels of either kind."""
    groups, elements, c, k = weights.shape
    if groups * elements * rows * columns >= _LIMIT:
        raise OnHost("more weights than are counted in 32 bits")
    if (c, k) == (rows, columns):
        return weights.contiguous()
    out = weights.new_zeros((groups, elements, rows, columns))
    out[:, :, :c, :k].copy_(weights)
    return out


def _alone(
    image: _Image, w: torch.Tensor, bias: _Optional, out: torch.Tensor, how: _How, to_input: bool, classes: Any
) -> None:
    """Of channels that are each convolved alone."""
    x = image.dense
    terms = w.shape[0] // how.groups
    for axes in classes:
        positions = prod(axis.size for axis in axes)
        rows, channels, across = out.shape[0] * positions, out.shape[1], out.stride(1) != 1
        tile = _tile_alone(rows, channels, across)
        strides = out.stride()[:2] + tuple(s * axis.apart for s, axis in zip(out.stride()[2:], axes, strict=True))
        numbers = (
            _seeing(axes) | _window(w.shape[2:], axes) | {"depth": w.shape[2:].numel(), "rows": rows, "K": channels}
        )
        numbers |= dict(zip("DHW", x.shape[2:], strict=True))
        numbers |= _named("image", x.stride(), "ncdhw") | _named("out", strides, "ncdhw")
        numbers |= {"terms": terms if to_input else 1, "each": 1 if to_input else terms}
        numbers["begin"] = sum(stride * axis.at for stride, axis in zip(out.stride()[2:], axes, strict=True))
        tensors = {"out": out, "image": x, "weights": w, "bias": w if bias is None else bias.contiguous()}
        constants = {"HAS_BIAS": bias is not None, "DEEP": _is_deep(image, out, w, how), "ACROSS": across, **tile}
        grid = -(-rows // tile["ROWS"]) * -(-channels // tile["COLUMNS"]), 1, 1
        launch(alone_kernel, grid, tensors | numbers, constants, 4, True, frozenset())


def _tile_alone(rows: int, channels: int, across: bool) -> dict[str, int]:
    """Positions and channels of a tile, most of those that follow each other in memory."""
    if across:
        count = min(_ALONE, power_of_two(rows))
        return {"ROWS": count, "COLUMNS": min(_ALONE // count, power_of_two(channels))}
    count = min(64, power_of_two(channels))
    return {"ROWS": min(_ALONE // count, power_of_two(rows)), "COLUMNS": count}


def _to_weight(x: _Image, y: _Image, w: torch.Tensor, how: _How) -> None:
    """Write the gradient of w (K, C / groups, T, R, S), which is contiguous, of x and the gradient of y."""
    axes = _axes(y.given, w, how)
    groups, elements, rows = how.groups, w.shape[2:].numel(), y.given.numel() // y.given.shape[1]
    k, c = y.channels, x.channels
    on = kind_of(w.device.index or 0)
    alone = groups > 1 and c == 1
    numbers = _seeing(axes) | dict(zip("DHW", x.given.shape[2:], strict=True)) | {"rows": rows}
    constants: dict[str, Any] = {"DEEP": _is_deep(x, y.given, w, how)}
    if alone:
        across = not y.has_channels_last
        tile_alone = _tile_alone(rows, k * groups, across)
        grid, step = (-(-k * groups // tile_alone["COLUMNS"]), elements), tile_alone["ROWS"]
    else:
        most = min(_MOST_PARTS, max(1, rows // _SHORTEST))
        tile = _tile(w.dtype, w.device.index or 0, (elements * x.pitch, k, groups), most)
        grid, step = (-(-elements * x.pitch // tile.rows) * -(-k // tile.columns), groups), tile.step
    parts = 1 if on.cpu else min(share_out(prod(grid), on.units, rows, _SHORTEST), _MOST_PARTS)
    share = -(-rows // (parts * step)) * step
    parts = -(-rows // share)
    numbers["share"] = share
    if alone:
        out = w if parts == 1 else w.new_empty((parts, *w.shape), dtype=torch.float32)
        numbers |= _named("image", x.dense.stride(), "ncdhw") | _named("grad", y.dense.stride(), "ncdhw")
        numbers |= {"K": k * groups, "each": k}
        tensors = {"out": out, "image": x.dense, "grad": y.dense}
        launch(
            weight_alone_kernel,
            (*grid, parts),
            tensors | numbers,
            {**constants, **tile_alone, "ACROSS": across},
            4,
            True,
            frozenset(),
        )
        if parts > 1:
            reduce("x", SUM, {"x": out}, (0,), dtype=w.dtype, compute=torch.float32, out=w)
        return
    vector = _BYTES // w.element_size()
    arranged = w.view(groups, k, c, elements).permute(0, 3, 2, 1)
    out = arranged[None] if parts == 1 else w.new_empty((parts, *arranged.shape), dtype=torch.float32)
    strides = dict(zip(("out_part", "out_group", "out_e", "out_c", "stride_k"), out.stride(), strict=True))
    numbers |= strides | {"C": c, "K": k, "pitch": groups * x.pitch // vector, "channels": x.pitch // vector}
    numbers |= {"grad_pitch": groups * y.pitch // vector, "grad_channels": y.pitch // vector}
    for axis, size in zip("opq", y.given.shape[2:], strict=True):
        numbers[f"factor_{axis}"], numbers[f"shift_{axis}"] = dividing_by(size)
    constants["GUARDED"] = any(axis.leaves(size) for axis, size in zip(axes, x.given.shape[2:], strict=True))
    constants |= {"CHANNELS": None if x.pitch % tile.rows == 0 else x.pitch, "VECTOR": vector}
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
    if any(tensor.numel() == 0 or tensor.numel() >= _LIMIT for tensor in tensors):
        raise OnHost("nothing, or too much, to convolve")


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
    _bounded(input, weight, meta)
    order = order_of(input, weight)
    out = torch.empty(meta.shape, dtype=input.dtype, device=input.device, memory_format=order)
    image, how = _Image(input, groups), _How.of(stride, padding, dilation, groups)
    _to_images(image, _images(weight).contiguous(), bias, _images(out), how, transposed)
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
    _bounded(grad_output, input, weight)
    how = _How.of(stride, padding, dilation, groups)
    grad, x = _Image(grad_output, groups), _Image(input, groups)
    order = order_of(input, weight)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=input.device, memory_format=order)
        _to_images(grad, _images(weight).contiguous(), None, _images(grad_input), how, not transposed)
    if output_mask[1]:
        grad_weight = torch.empty(weight.shape, dtype=weight.dtype, device=weight.device)
        _to_weight(*((grad, x) if transposed else (x, grad)), _images(grad_weight), how)
        if order != torch.contiguous_format:
            grad_weight = torch.empty_like(grad_weight, memory_format=order).copy_(grad_weight)
    if output_mask[2]:
        grad_bias = grad_output.sum((0, *range(2, grad_output.dim())))
    return grad_input, grad_weight, grad_bias
