# mypy: allow-untyped-defs
"""How the positions of a convolution's result see an image along each axis, for plans and in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

import torch
import triton
import triton.language as tl


@dataclass(frozen=True, slots=True)
class Axis:
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


Axes = tuple[Axis, Axis, Axis]


def gradient_axes(size: int, taps: int, stride: int, padding: int, dilation: int) -> list[Axis]:
    """How ``size`` positions of x see y through a window of ``taps``, one for each remainder by the stride: x at
    a + p stride sees y at p + start - r dilation / g through every stride / g-th element of the window, g being what
    stride and dilation have in common."""
    common = gcd(stride, dilation)
    axes = []
    for at in range(min(stride, size)):
        count = -(-(size - at) // stride)
        seen = [r for r in range(taps) if (at + padding - r * dilation) % stride == 0]
        if not seen:
            axes.append(Axis(count, 1, 0, 0, 0, at=at, apart=stride))
            continue
        start = (at + padding - seen[0] * dilation) // stride
        move, every = -(dilation // common), stride // common
        axes.append(Axis(count, 1, start, move, len(seen), seen[0], every, at, stride))
    return axes


@dataclass(frozen=True, slots=True)
class Convolving:
    """What torch says of a convolution, for three dimensions; along those that are missing nothing moves."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @staticmethod
    def of(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> Convolving:
        """A convolution of as many dimensions as there are."""
        fills = ((stride, 1), (padding, 0), (dilation, 1))
        three = [(*(fill,) * (3 - len(given)), *given) for given, fill in fills]
        return Convolving(three[0], three[1], three[2], groups)

    def axes(self, y: torch.Tensor, w: torch.Tensor) -> Axes:
        """How y sees x."""
        given = zip(y.shape[2:], w.shape[2:], self.stride, self.padding, self.dilation, strict=True)
        first, second, third = (Axis(size, step, -pad, move, taps) for size, taps, step, pad, move in given)
        return first, second, third

    def gradient_axes(self, x: torch.Tensor, w: torch.Tensor) -> list[Axes]:
        """How x sees y: for each position of x in one of them."""
        given = x.shape[2:], w.shape[2:], self.stride, self.padding, self.dilation
        first, second, third = map(gradient_axes, *given)
        return [*product(first, second, third)]


def named(name: str, values: Sequence[int], axes: str = "dhw") -> dict[str, int]:
    """Arguments of kernels by the name of each axis."""
    return {f"{name}_{axis}": value for axis, value in zip(axes, values, strict=True)}


def seeing(axes: Axes, image: torch.Tensor, out: torch.Tensor) -> dict[str, int]:
    """What kernels are passed of how positions of ``out`` see an image."""
    numbers = dict(zip("OPQTRS", (*(axis.size for axis in axes), *(axis.taps for axis in axes)), strict=True))
    numbers |= dict(zip("DHW", image.shape[2:], strict=True))
    for name in ("step", "start", "move"):
        numbers |= named(name, [getattr(axis, name) for axis in axes])
    return numbers | {"rows": out.shape[0] * prod(axis.size for axis in axes)}


def taken(axes: Axes, w: torch.Tensor) -> dict[str, int]:
    """What kernels are passed of the elements of w's window that the axes' taps are."""
    apart = w.stride()[2:]
    numbers = {"first": sum(axis.first * by for axis, by in zip(axes, apart, strict=True))}
    return numbers | named("weight", [axis.every * by for axis, by in zip(axes, apart, strict=True)], "trs")


def is_deep(axes: Axes, image: torch.Tensor) -> bool:
    """Whether there is anything along the first axis."""
    return (image.shape[2], axes[0].size, axes[0].taps, axes[0].start) != (1, 1, 1, 0)


def first_place(axes: Axes, out: torch.Tensor) -> int:
    """Elements from the first of ``out`` to that of the axes' first positions."""
    return sum(by * axis.at for by, axis in zip(out.stride()[2:], axes, strict=True))


def distances(axes: Axes, out: torch.Tensor) -> list[int]:
    """Strides of ``out`` at the axes' positions."""
    return [*out.stride()[:2], *(by * axis.apart for by, axis in zip(out.stride()[2:], axes, strict=True))]


@triton.jit
def split_position(i, A, B, C, DEEP: tl.constexpr):
    """(i // (A B C), i // (B C) % A, i // C % B, i % C), with A = 1 unless DEEP."""
    if DEEP:
        return i // (A * B * C), i // (B * C) % A, i // C % B, i % C
    else:
        return i // (B * C), i * 0, i // C % B, i % C


@triton.jit
def window_place(e, R, S, DEEP: tl.constexpr):
    """(t, r, s) of a window's element."""
    if DEEP:
        return e // (R * S), e // S % R, e % S
    else:
        return e * 0, e // S, e % S


@triton.jit
def within(f, g, h, D, H, W, DEEP: tl.constexpr):
    """Whether a place is in an image. Negative numbers are large ones without a sign."""
    inside = (g.to(tl.uint32) < H) & (h.to(tl.uint32) < W)
    if DEEP:
        inside = inside & (f.to(tl.uint32) < D)
    return inside
