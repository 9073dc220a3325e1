"""grid_sample of images and volumes, forward and backward: an output is a weighted sum of the elements of the input
around the place that the grid names. Kernels' texts are made from the taps along each axis: one (nearest), two (linear)
or four (cubic).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .dtypes import IN_SOURCE, NAMES, OnHost, computed_in, require
from .elementwise import Body, run

_LINEAR, _NEAREST, _CUBIC = 0, 1, 2  # torch's GridSamplerInterpolation
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2  # torch's GridSamplerPadding

#: (offset from the first tap, weight, its derivative) of the taps along an axis, of t, the place past the first. Cubic
#: ones are one text for all four, of ``tap``, their number: Keys' kernel with a = -0.75, as in resampling.py.
_TAPS: dict[int, tuple[tuple[str, str, str], ...]] = {
    _NEAREST: (("0", "t * 0 + 1", "t * 0"),),
    _LINEAR: (("0", "1 - t", "t * 0 - 1"), ("1", "t", "t * 0 + 1")),
    _CUBIC: (
        (
            "(tap - 1)",
            "tl.where(n <= 1, (1.25 * n - 2.25) * n * n + 1, ((-0.75 * n + 3.75) * n - 6) * n + 3)",
            "fn.sign(t - (tap - 1)) * tl.where(n <= 1, (3.75 * n - 4.5) * n, (-2.25 * n + 7.5) * n - 6)",
        ),
    ),
}
_CUBIC_TAPS = 4
_How = tuple[int, int, bool]  # mode, padding, whether corners are aligned


def _padded(axis: int, padding: int, align: bool) -> str:
    """Lines that bring the place ``x`` of an axis into the input, and ``slope``, the derivative, with it."""
    lines = []
    if padding == _REFLECTION:
        lines += [
            f"low, span = {'x * 0' if align else 'x * 0 - 0.5'}, last{axis} + {0 if align else 1} + x * 0",
            "slope = slope * tl.where(x < low, -1.0, 1.0)",
            "far = tl.abs(x - low)",
            "twice = tl.where(span > 0, 2 * span, 1.0)",
            "far = far - libdevice.floor(fn.div(far, twice)) * twice",
            "odd = far > span",
            "x = tl.where(span > 0, tl.where(odd, twice - far, far) + low, 0.0)",
            "slope = tl.where(span > 0, tl.where(odd, -slope, slope), 0.0)",
        ]
    if padding != _ZEROS:
        lines.append(f"slope = tl.where((x <= 0) | (x >= last{axis}), 0.0, slope)")
        lines.append(f"x = tl.minimum(tl.maximum(x, 0.0), last{axis})")
    return "\n".join(lines) + "\n"


def _axis(axis: int, mode: int, padding: int, align: bool) -> str:
    """Lines that give the first tap of an axis, first{axis}, t{axis} and slope{axis}."""
    text = f"last{axis} = (size{axis} - 1).to(grid{axis}.dtype)\n"
    scale = f"0.5 * last{axis}" if align else f"0.5 * (last{axis} + 1)"
    text += f"x = (grid{axis} + 1) * ({scale}) - {0 if align else 0.5}\nslope = {scale} + tl.zeros_like(x)\n"
    if mode != _CUBIC:
        text += _padded(axis, padding, align)
    # What is infinite or NaN is nowhere, and so is what is far away, unless taps are padded.
    limit = "1e9" if mode != _CUBIC or padding == _ZEROS else 'float("inf")'
    text += f"x = tl.where(tl.abs(x) < {limit}, x, -100.0)\nslope{axis} = slope\n"
    text += f"first{axis} = {'libdevice.rint(x)' if mode == _NEAREST else 'libdevice.floor(x)'}\n"
    return text + f"t{axis} = x - first{axis}\n"


def _tap(axis: int, end: str, tap: tuple[str, str, str], mode: int, padding: int, align: bool) -> str:
    """Lines that give a tap's place in memory, whether it is there, its weight and its derivative: place{end} …"""
    offset, weight, change = (part.replace("tap", f"tap{axis}") for part in tap)
    text = f"t = t{axis}\nx = first{axis} + {offset}\n"
    if mode == _CUBIC:
        text += f"n = tl.abs(t - {offset})\nslope = x * 0\n" + _padded(axis, padding, align)
    text += f"weight{end} = {weight}\nchange{end} = {change}\nat = x.to(tl.int64)\n"
    return text + f"there{end} = (at >= 0) & (at < size{axis})\nplace{end} = at * step{axis}\n"


def _over_taps(count: int, how: _How, body: Callable[[list[str]], str]) -> str:
    """Lines that compute ``body`` of each combination of taps, which it is passed as the ends of their names: one after
    the other, or, of the many cubic ones, in loops."""
    mode, padding, align = how
    text = "".join(_axis(axis, mode, padding, align) for axis in range(count))
    if mode == _CUBIC:
        ends = [f"{axis}0" for axis in range(count)]
        for axis, end in enumerate(ends):
            inner = _tap(axis, end, _TAPS[mode][0], mode, padding, align)
            text += "    " * axis + f"for tap{axis} in range({_CUBIC_TAPS}):\n" + _indented(inner, axis + 1)
        return text + _indented(body(ends), count)
    taps = range(len(_TAPS[mode]))
    for axis, tap in itertools.product(range(count), taps):
        text += _tap(axis, f"{axis}{tap}", _TAPS[mode][tap], mode, padding, align)
    for one in itertools.product(taps, repeat=count):
        text += body([f"{axis}{tap}" for axis, tap in enumerate(one)])
    return text


def _indented(text: str, depth: int) -> str:
    return "".join("    " * depth + line + "\n" for line in text.splitlines())


def _product(name: str, ends: Sequence[str], changed: int | None = None) -> str:
    return " * ".join(f"{'change' if axis == changed else name}{end}" for axis, end in enumerate(ends))


def _where(ends: Sequence[str]) -> tuple[str, str]:
    """(the offset of a combination of taps, its mask)."""
    return " + ".join((*(f"place{end}" for end in ends), "zero")), " & ".join(
        ("mask", *(f"there{end}" for end in ends))
    )


def _forward_text(count: int, how: _How, number: str) -> str:
    def add(ends: list[str]) -> str:
        place, inside = _where(ends)
        load = f"tl.load(image + ({place}), mask={inside}, other=0).to({number})"
        return f"out += {load} * ({_product('weight', ends)})\n"

    return f"out = zero.to({number})\n" + _over_taps(count, how, add)


def _input_text(count: int, how: _How) -> str:
    def add(ends: list[str]) -> str:
        place, inside = _where(ends)
        value = f"grad * ({_product('weight', ends)}) + zero.to(grad.dtype)"
        return f'tl.atomic_add(image + ({place}), {value}, mask={inside}, sem="relaxed")\n'

    return _over_taps(count, how, add)


def _grid_text(count: int, how: _How, number: str) -> str:
    def add(ends: list[str]) -> str:
        place, inside = _where(ends)
        load = f"tl.load(image + c * image_step + ({place}), mask={inside}, other=0).to({number})"
        text = f"value = zero.to({number})\nfor c in range(channels):\n"
        text += f"    g = tl.load(grads + c * grads_step + zero, mask=mask, other=0).to({number})\n"
        text += f"    value += g * {load}\n"
        return text + "".join(f"out{axis} += value * ({_product('weight', ends, axis)})\n" for axis in range(count))

    start = "".join(f"out{axis} = zero.to({number})\n" for axis in range(count))
    end = "".join(f"out{axis} = out{axis} * slope{axis}\n" for axis in range(count))
    return start + _over_taps(count, how, add) + end


def _checked(input: torch.Tensor, grid: torch.Tensor, how: _How, count: int) -> None:
    """Raises OnHost for what is refused."""
    mode, padding, _ = how
    for tensor in (input, grid):
        require(tensor.dtype, input.device.index or 0)
        if tensor.dtype != input.dtype or not tensor.dtype.is_floating_point or tensor.device != input.device:
            raise OnHost("numbers that are not of one float type, or on two devices")
    if input.dim() != count + 2 or grid.dim() != count + 2 or grid.shape[-1] != count or not input.numel():
        raise OnHost("images or grids that are refused")
    known_mode = mode in _TAPS and (mode != _CUBIC or count == 2) and 0 <= padding <= _REFLECTION
    if grid.shape[0] != input.shape[0] or not known_mode:
        raise OnHost("images, grids or modes that are refused")


def _body(text: str, *places: str) -> Body:
    return Body(text, places=frozenset(("image", *places)), tile=256)


def _operands(grid: torch.Tensor, count: int) -> dict[str, Any]:
    """The grid's coordinates by the input's axes: torch's first is the last axis."""
    return {f"grid{axis}": grid[..., count - 1 - axis] for axis in range(count)}


def _sizes(input: torch.Tensor, count: int) -> dict[str, int]:
    return {f"size{a}": input.shape[2 + a] for a in range(count)} | {
        f"step{a}": input.stride(2 + a) for a in range(count)
    }


def _image(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The first element of each image and channel, as of (N, C, …) elements."""
    return tensor.as_strided(list(shape), (*tensor.stride()[:2], *(0,) * (len(shape) - 2)))


def _forward(count: int) -> Callable[..., torch.Tensor]:
    def sample(input: torch.Tensor, grid: torch.Tensor, *how: Any) -> torch.Tensor:
        _checked(input, grid, how, count)
        compute = computed_in(input.dtype)
        out = input.new_empty((*input.shape[:2], *grid.shape[1:-1]))
        operands = {name: one.unsqueeze(1) for name, one in _operands(grid, count).items()}
        operands["image"] = _image(input, out.shape)
        body = _body(_forward_text(count, how, IN_SOURCE[NAMES[compute]]))
        run(body, {"out": out}, operands, compute, _sizes(input, count))
        return out

    return sample


def _backward(count: int) -> Callable[..., tuple[torch.Tensor | None, torch.Tensor]]:
    def backward(
        grad_output: torch.Tensor,
        input: torch.Tensor,
        grid: torch.Tensor,
        mode: int,
        padding: int,
        align: bool,
        output_mask: Sequence[bool],
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        how = mode, padding, align
        _checked(input, grid, how, count)
        compute = computed_in(input.dtype)
        if compute != torch.float32 or grad_output.device != input.device:
            raise OnHost("atomic additions of float64, or gradients on another device")
        grad_input = None
        if output_mask[0]:
            total = torch.zeros(input.shape, dtype=compute, device=input.device)
            operands = {name: one.unsqueeze(1) for name, one in _operands(grid, count).items()}
            operands |= {"grad": grad_output, "image": _image(total, grad_output.shape)}
            body = _body(_input_text(count, how))
            run(body, {}, operands, compute, _sizes(total, count))
            grad_input = total.to(input.dtype)
        grad_grid = torch.empty(grid.shape, dtype=grid.dtype, device=grid.device)
        if mode == _NEAREST:
            return grad_input, grad_grid.zero_()
        outs = {f"out{axis}": one for axis, one in zip(range(count), _operands(grad_grid, count).values(), strict=True)}
        shape = grid.shape[:-1]
        operands = {**_operands(grid, count), "grads": grad_output.select(1, 0)}
        steps = (input.stride(0), *(0,) * count)
        operands["image"] = input.as_strided(shape, steps)
        counts = {"channels": input.shape[1], "image_step": input.stride(1), "grads_step": grad_output.stride(1)}
        body = _body(_grid_text(count, how, IN_SOURCE[NAMES[compute]]), "grads")
        run(body, outs, operands, compute, {**_sizes(input, count), **counts})
        return grad_input, grad_grid

    return backward


TABLE: dict[str, Callable[..., Any]] = {
    "grid_sampler_2d": _forward(2),
    "grid_sampler_3d": _forward(3),
    "grid_sampler_2d_backward": _backward(2),
    "grid_sampler_3d_backward": _backward(3),
}
