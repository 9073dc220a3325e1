"""Distributed encodings as linear layouts: ``(register, lane, warp)`` to the coordinates of the tensor.

The meaning of each encoding is upstream's: the tile of an encoding is repeated over a larger tensor in further
registers, and is cut to a smaller tensor by making bases zero, so that several lanes or warps hold the same element.
Registers that would all hold the same element are left out, except in a dot operand, where upstream keeps them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ..ttgir.encodings import BlockedEncoding, DotOperandEncoding, Encoding, LinearEncoding, SliceEncoding
from .linear import LinearLayout, log2

REGISTER, LANE, WARP = INPUTS = ("register", "lane", "warp")


class LayoutError(ValueError):
    """An encoding that has no meaning here, or that does not fit its tensor."""


@lru_cache(maxsize=4096)
def distributed_layout(encoding: Encoding, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of a tensor of ``shape`` under ``encoding``: inputs register, lane, warp; output ``shape``.

    Raises LayoutError for an encoding without meaning here and for one of another rank than ``shape``.
    """
    rule = _RULES.get(type(encoding))
    if rule is None:
        raise LayoutError(f"{encoding} has no distributed layout on this backend: use a blocked, slice, dot_op of "
                          "blocked, or linear encoding")
    return rule(encoding, shape)


def _blocked(encoding: BlockedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    tile = (_standard(REGISTER, encoding.size_per_thread, encoding.order)
            * _standard(LANE, encoding.threads_per_warp, encoding.order)
            * _standard(WARP, encoding.warps_per_cta, encoding.order))
    if tile.rank != len(shape):
        raise LayoutError(f"{encoding} has rank {tile.rank}, the tensor has shape {shape}")
    return _cut(_repeat(tile, shape, encoding.order), shape, keep_registers=False)


def _slice(encoding: SliceEncoding, shape: tuple[int, ...]) -> LinearLayout:
    dim = encoding.dim
    if not 0 <= dim <= len(shape):
        raise LayoutError(f"{encoding} removes dimension {dim} from a tensor of rank {len(shape) + 1}")
    parent = distributed_layout(encoding.parent, shape[:dim] + (1,) + shape[dim:])
    return parent.drop_dim(dim).without_zeros(REGISTER)


def _dot_operand(encoding: DotOperandEncoding, shape: tuple[int, ...]) -> LinearLayout:
    parent, rank = encoding.parent, len(shape)
    if not isinstance(parent, BlockedEncoding):
        raise LayoutError(f"{encoding} has no distributed layout on this backend: the parent of a dot operand must be "
                          "a blocked encoding")
    if len(parent.order) != rank or rank < 2:
        raise LayoutError(f"{encoding} has rank {len(parent.order)}, the tensor has shape {shape}")
    inner = rank - 1 if encoding.op_idx == 0 else rank - 2
    registers = list(parent.size_per_thread)
    registers[inner] = shape[inner]
    tile = (_standard(REGISTER, registers, parent.order)
            * _standard(LANE, parent.threads_per_warp, parent.order, broadcast=inner)
            * _standard(WARP, parent.warps_per_cta, parent.order, broadcast=inner))
    return _cut(_repeat(tile, shape, parent.order), shape)


def _linear(encoding: LinearEncoding, shape: tuple[int, ...]) -> LinearLayout:
    rank = len(shape)
    if encoding.block:
        raise LayoutError(f"{encoding} spans several thread blocks; this backend has one block a cluster (num_ctas=1)")
    bases = {REGISTER: encoding.register, LANE: encoding.lane, WARP: encoding.warp}
    extents = [1] * rank
    for points in bases.values():
        for point in points:
            if len(point) != rank:
                raise LayoutError(f"{encoding} has rank {len(point)}, the tensor has shape {shape}")
            extents = [max(extent, 1 << c.bit_length()) for extent, c in zip(extents, point, strict=True)]
    order = []
    for point in encoding.register:
        moved = next((dim for dim, coordinate in enumerate(point) if coordinate), None)
        if moved is not None and moved not in order:
            order.append(moved)
    order += [dim for dim in reversed(range(rank)) if dim not in order]
    return _cut(_repeat(LinearLayout(bases, extents), shape, order), shape, keep_registers=False)


_RULES: dict[type, Callable[..., LinearLayout]] = {
    BlockedEncoding: _blocked,
    SliceEncoding: _slice,
    DotOperandEncoding: _dot_operand,
    LinearEncoding: _linear,
}


def _standard(name: str, sizes: Sequence[int], order: Sequence[int], broadcast: int | None = None) -> LinearLayout:
    """Input ``name`` counts along dimension order[0] first; along ``broadcast`` it counts without moving."""
    rank = len(order)
    layout = LinearLayout.zeros(name, 1, rank)
    for dim in order:
        layout = layout * (LinearLayout.zeros(name, sizes[dim], rank) if dim == broadcast
                           else LinearLayout.identity(name, sizes[dim], dim, rank))
    return layout


def _repeat(tile: LinearLayout, shape: tuple[int, ...], order: Sequence[int]) -> LinearLayout:
    """Registers that repeat ``tile`` over ``shape``, along order[0] first."""
    for dim in order:
        extent = tile.shape[dim]
        log2(shape[dim], "tensor extent")
        if extent < shape[dim]:
            tile = tile * LinearLayout.identity(REGISTER, shape[dim] // extent, dim, tile.rank)
    return tile


def _cut(layout: LinearLayout, shape: tuple[int, ...], keep_registers: bool = True) -> LinearLayout:
    """``layout`` cut to ``shape``: the largest steps along an extent that is too large become zero.

    With ``keep_registers`` false a register basis that would become zero is left out instead.
    """
    if layout.shape == shape:
        return layout
    bases = {name: [list(point) for point in points] for name, points in layout.bases.items()}
    dropped: set[int] = set()
    for dim, (extent, wanted) in enumerate(zip(layout.shape, shape, strict=True)):
        steps = sorted(((point[dim], name, index) for name, points in bases.items()
                        for index, point in enumerate(points) if point[dim]), key=lambda step: -step[0])
        for _, name, index in steps:
            if extent <= wanted:
                break
            if name == REGISTER and not keep_registers:
                dropped.add(index)
            bases[name][index][dim] = 0
            extent //= 2
    bases[REGISTER] = [point for index, point in enumerate(bases[REGISTER]) if index not in dropped]
    try:
        return LinearLayout(bases, shape)
    except ValueError as error:
        raise LayoutError(f"{layout} cannot be cut to shape {shape}: {error}") from None
