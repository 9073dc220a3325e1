"""Distributed encodings as linear layouts: ``(register, lane, warp)`` to the coordinates of the tensor.

The meaning of each encoding is upstream's: the tile of an encoding is repeated over a larger tensor in further
registers, and is cut to a smaller tensor by making bases zero, so that several lanes or warps hold the same element.
Registers that would all hold the same element are left out, except in matrix fragments and operands of dots, where
upstream keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ..ttgir.encodings import (
    BlockedEncoding,
    DotOperandEncoding,
    Encoding,
    FoldedEncoding,
    FragmentEncoding,
    LinearEncoding,
    NvidiaMmaEncoding,
    ReorderedEncoding,
    SliceEncoding,
    TransposedEncoding,
)
from ..ttgir.types import TensorType, Type
from .linear import LinearLayout, log2

REGISTER, LANE, WARP = INPUTS = ("register", "lane", "warp")


class LayoutError(ValueError):
    """An encoding that has no meaning here, or that does not fit its tensor."""


def layout_of(type_: Type) -> LinearLayout:
    """The layout of a tensor type: which (register, lane, warp) holds which element. Raises LayoutError."""
    assert isinstance(type_, TensorType), str(type_)
    return distributed_layout(type_.encoding, type_.shape)


@lru_cache(maxsize=4096)
def distributed_layout(encoding: Encoding | None, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of a tensor of ``shape`` under ``encoding``: inputs register, lane, warp; output ``shape``.

    Raises LayoutError for an encoding without meaning here and for one of another rank than ``shape``.
    """
    rule = _RULES.get(type(encoding))
    if rule is None:
        raise LayoutError(
            f"{encoding} has no distributed layout on this backend: use a blocked, slice, linear or nvidia_mma "
            "encoding, or a dot_op of blocked or nvidia_mma"
        )
    return rule(encoding, shape)


def _blocked(encoding: BlockedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    if len(encoding.order) != len(shape):
        raise LayoutError(f"{encoding} has rank {len(encoding.order)}, the tensor has shape {shape}")
    return _tiled(
        {REGISTER: encoding.size_per_thread, LANE: encoding.threads_per_warp, WARP: encoding.warps_per_cta},
        encoding.order,
        shape,
    ).without_zeros(REGISTER)


def _slice(encoding: SliceEncoding, shape: tuple[int, ...]) -> LinearLayout:
    dim = encoding.dim
    if not 0 <= dim <= len(shape):
        raise LayoutError(f"{encoding} removes dimension {dim} from a tensor of rank {len(shape) + 1}")
    parent = distributed_layout(encoding.parent, shape[:dim] + (1,) + shape[dim:])
    return parent.drop_dim(dim).without_zeros(REGISTER)


def _dot_operand(encoding: DotOperandEncoding, shape: tuple[int, ...]) -> LinearLayout:
    parent, rank = encoding.parent, len(shape)
    if isinstance(parent, NvidiaMmaEncoding):
        return _mma_operand(encoding, parent, shape)
    if not isinstance(parent, BlockedEncoding):
        raise LayoutError(
            f"{encoding} has no distributed layout on this backend: the parent of a dot operand must be "
            "a blocked or nvidia_mma encoding"
        )
    if len(parent.order) != rank or rank < 2:
        raise LayoutError(f"{encoding} has rank {len(parent.order)}, the tensor has shape {shape}")
    inner = rank - 1 if encoding.op_idx == 0 else rank - 2
    registers = list(parent.size_per_thread)
    registers[inner] = shape[inner]
    return _tiled(
        {REGISTER: registers, LANE: parent.threads_per_warp, WARP: parent.warps_per_cta}, parent.order, shape, inner
    )


# -- matrix fragments --------------------------------------------------------------------------------------------
#: Elements of the result that a lane of PTX's mma.m16n8 holds next to each other.
_RESULT_WIDTH = 2


def _mma(encoding: NvidiaMmaEncoding, shape: tuple[int, ...]) -> LinearLayout:
    rank = _mma_rank(encoding, shape)
    rows, columns = encoding.instr_shape[-2:]
    tile = _mma_tile(rank, rank - 1, rank - 2, columns, rows, _RESULT_WIDTH)
    return _with_warps(tile, encoding.warps_per_cta, shape, None)


def _mma_operand(encoding: DotOperandEncoding, parent: NvidiaMmaEncoding, shape: tuple[int, ...]) -> LinearLayout:
    rank = _mma_rank(parent, shape)
    if encoding.k_width < 1:
        raise LayoutError(f"{encoding} lacks the kWidth of an operand of a matrix instruction")
    inner, outer = (rank - 1, rank - 2) if encoding.op_idx == 0 else (rank - 2, rank - 1)
    tile = _mma_tile(rank, inner, outer, 8 * encoding.k_width, 16 if encoding.op_idx == 0 else 8, encoding.k_width)
    return _with_warps(tile, parent.warps_per_cta, shape, inner)


def _mma_rank(encoding: NvidiaMmaEncoding, shape: tuple[int, ...]) -> int:
    rank = len(encoding.warps_per_cta)
    if rank != len(shape) or rank not in (2, 3):
        raise LayoutError(f"{encoding} has rank {rank}, the tensor has shape {shape}")
    if encoding.version_major != 2 or encoding.instr_shape[-2:] != (16, 8):
        raise LayoutError(f"{encoding} has no layout on this backend: use version 2 with instructions of 16×8")
    return rank


def _mma_tile(rank: int, inner: int, outer: int, inner_extent: int, outer_extent: int, width: int) -> LinearLayout:
    """A fragment of PTX's mma (PTX ISA, "Matrix Fragments for mma.m16n8k16"): ``width`` registers and four lanes along
    ``inner``, eight lanes along ``outer``; the rest of the tile in registers, along ``outer`` first."""
    tile = LinearLayout.identity(REGISTER, width, inner, rank)
    for name, size, dim in (
        (LANE, 4, inner),
        (LANE, 8, outer),
        (REGISTER, outer_extent // 8, outer),
        (REGISTER, inner_extent // (4 * width), inner),
    ):
        tile = tile * LinearLayout.identity(name, size, dim, rank)
    return tile


def _with_warps(tile: LinearLayout, warps: Sequence[int], shape: tuple[int, ...], private: int | None) -> LinearLayout:
    """Warps around ``tile``, the last dimension first, and registers that repeat it all over ``shape``. Along the
    dimension ``private`` all warps hold the same. Tiles are repeated in the order of the operand they are for."""
    rank = tile.rank
    for dim in reversed(range(rank)):
        warp = LinearLayout.zeros(WARP, warps[dim], rank)
        if dim != private:
            warp = LinearLayout.identity(WARP, warps[dim], dim, rank)
        tile = tile * warp
    order = list(reversed(range(rank)))
    if private == rank - 2:
        order[0], order[1] = order[1], order[0]
    return _cut(_repeat(tile, shape, order), shape, keep=True)


def _fragment(encoding: FragmentEncoding, shape: tuple[int, ...]) -> LinearLayout:
    rank = len(encoding.warps_per_cta)
    if rank != len(shape):
        raise LayoutError(f"{encoding} has rank {rank}, the tensor has shape {shape}")
    outer = (0,) * (rank - 2)
    tile = LinearLayout(
        {
            REGISTER: [(*outer, *place) for place in encoding.registers],
            LANE: [(*outer, *place) for place in encoding.lanes],
        },
        (*(1,) * (rank - 2), encoding.rows, encoding.columns),
    )
    return _with_warps(
        tile, encoding.warps_per_cta, shape, None if encoding.private is None else rank - 2 + encoding.private
    )


def _transposed(encoding: TransposedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    inner = [0] * len(shape)
    for dim, extent in zip(encoding.order, shape, strict=True):
        inner[dim] = extent
    return distributed_layout(encoding.inner, tuple(inner)).transpose(encoding.order)


def _folded(encoding: FoldedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    whole = distributed_layout(encoding.inner, shape)
    kept = log2(encoding.lanes, "lanes")
    registers, lanes = whole.inputs[REGISTER], whole.inputs[LANE]
    folded = LinearLayout.from_flat(
        {REGISTER: [*registers, *lanes[kept:]], LANE: lanes[:kept], WARP: whole.inputs[WARP]}, shape
    )
    return folded.without_zeros(REGISTER)


def _reordered(encoding: ReorderedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    inner = distributed_layout(encoding.inner, shape)
    lanes = inner.inputs[LANE]
    return LinearLayout.from_flat({**inner.inputs, LANE: [lanes[bit] for bit in encoding.bits]}, shape)


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
    return _cut(_repeat(LinearLayout(bases, extents), shape, order), shape)


_RULES: dict[type, Callable[..., LinearLayout]] = {
    BlockedEncoding: _blocked,
    SliceEncoding: _slice,
    DotOperandEncoding: _dot_operand,
    LinearEncoding: _linear,
    NvidiaMmaEncoding: _mma,
    FragmentEncoding: _fragment,
    TransposedEncoding: _transposed,
    FoldedEncoding: _folded,
    ReorderedEncoding: _reordered,
}


def _tiled(
    parts: Mapping[str, Sequence[int]], order: Sequence[int], shape: tuple[int, ...], private: int | None = None
) -> LinearLayout:
    """Tiles of ``parts``, each around the one before and counting along order[0] first; repeated over ``shape`` in
    further registers, and wrapped to it: a step beyond ``shape`` is zero. Along ``private`` only registers move."""
    strides = [1] * len(shape)
    for dim in reversed(range(len(shape) - 1)):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    extents = [1] * len(shape)
    inputs: dict[str, list[int]] = {}
    for name, sizes in parts.items():
        bases = inputs[name] = []
        for dim in order:
            moves = name == REGISTER or dim != private
            for _ in range(log2(sizes[dim], f"{name} extent")):
                bases.append(extents[dim] * strides[dim] if moves and extents[dim] < shape[dim] else 0)
                extents[dim] <<= moves
    for dim in order:
        while extents[dim] < shape[dim]:
            inputs[REGISTER].append(extents[dim] * strides[dim])
            extents[dim] *= 2
    return LinearLayout.from_flat(inputs, shape)


def _repeat(tile: LinearLayout, shape: tuple[int, ...], order: Sequence[int]) -> LinearLayout:
    """Registers that repeat ``tile`` over ``shape``, along order[0] first."""
    for dim in order:
        extent = tile.shape[dim]
        log2(shape[dim], "tensor extent")
        if extent < shape[dim]:
            tile = tile * LinearLayout.identity(REGISTER, shape[dim] // extent, dim, tile.rank)
    return tile


def _cut(layout: LinearLayout, shape: tuple[int, ...], keep: bool = False) -> LinearLayout:
    """``layout`` cut to ``shape``: along an extent that is too large, the largest steps become zero, or are left out
    where registers make them and ``keep`` is not set."""
    if layout.shape == shape:
        return layout
    bases = {name: [list(point) for point in points] for name, points in layout.bases.items()}
    dropped: set[int] = set()
    for dim, (extent, wanted) in enumerate(zip(layout.shape, shape, strict=True)):
        steps = sorted(
            (
                (point[dim], name, index)
                for name, points in bases.items()
                for index, point in enumerate(points)
                if point[dim]
            ),
            key=lambda step: -step[0],
        )
        for _, name, index in steps:
            if extent <= wanted:
                break
            if name == REGISTER and not keep:
                dropped.add(index)
            bases[name][index][dim] = 0
            extent //= 2
    bases[REGISTER] = [point for index, point in enumerate(bases[REGISTER]) if index not in dropped]
    try:
        return LinearLayout(bases, shape)
    except ValueError as error:
        raise LayoutError(f"{layout} cannot be cut to shape {shape}: {error}") from None
