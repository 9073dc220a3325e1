"""Shared-memory encodings: where in its buffer an element of a tensor lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ..ttgir.encodings import Encoding, PaddedSharedEncoding, SharedLinearEncoding, SwizzledSharedEncoding
from .distributed import LayoutError
from .linear import LinearLayout, Point, flatten, log2

OFFSET = "offset"


@dataclass(frozen=True)
class SharedLayout:
    """Element offsets in a buffer.

    ``offsets``: tensor coordinates (inputs ``dim0``, ``dim1``, …) to the element offset before padding (one output).
    ``elements``: its inverse, input ``offset``, output the tensor's shape.
    ``padding``: pairs (interval, padding): after every ``interval`` elements, ``padding`` elements are unused.
    """

    offsets: LinearLayout
    elements: LinearLayout
    padding: tuple[tuple[int, int], ...] = ()

    def pad(self, offset: int) -> int:
        """The element offset in memory of an element whose offset before padding is ``offset``."""
        return offset + sum(offset // interval * padding for interval, padding in self.padding)

    def offset(self, point: Point) -> int:
        """The element offset in memory of the element at ``point``."""
        return self.pad(self.offsets.apply_flat(**{f"dim{dim}": value for dim, value in enumerate(point)}))

    @property
    def size(self) -> int:
        """Elements of memory that the buffer spans; there is no padding after its last element."""
        return self.pad(self.elements.size - 1) + 1


@lru_cache(maxsize=1024)
def shared_layout(encoding: Encoding, shape: tuple[int, ...]) -> SharedLayout:
    """The layout of a buffer of ``shape``.

    For a view of part of a buffer give the trailing extents of the whole allocation (``alloc_shape``), as upstream
    does: the view's elements then lie where the allocation's do, at the view's coordinates plus its origin.
    Raises LayoutError for an encoding without meaning here and for one that does not fit ``shape``.
    """
    rule = _RULES.get(type(encoding))
    if rule is None:
        raise LayoutError(
            f"{encoding} has no shared-memory layout on this backend: use a swizzled_shared, "
            "padded_shared or shared_linear encoding"
        )
    try:
        for extent in shape:
            log2(extent, "buffer extent")
        elements = rule(encoding, shape)
        offsets = elements.invert(OFFSET)
    except ValueError as error:
        raise LayoutError(f"{encoding} does not fit a buffer of shape {shape}: {error}") from None
    return SharedLayout(offsets, elements, encoding.intervals if isinstance(encoding, PaddedSharedEncoding) else ())


def encoding_rank(encoding: Encoding) -> int | None:
    """Dimensions that an encoding lays out; None if it does not say."""
    if isinstance(encoding, SwizzledSharedEncoding | PaddedSharedEncoding) and encoding.order:
        return len(encoding.order)
    if isinstance(encoding, PaddedSharedEncoding | SharedLinearEncoding) and encoding.offset:
        return len(encoding.offset[0])
    return None


def _swizzled(encoding: SwizzledSharedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    rank = len(shape)
    order = encoding.order
    if sorted(order) != list(range(rank)):
        raise ValueError(f"order {order} is not a permutation of {rank} dimensions")
    bases = []
    for place, dim in enumerate(order):
        for bit in range(log2(shape[dim])):
            point = [0] * rank
            point[dim] = 1 << bit
            if place == 1:
                phase = (1 << bit) // encoding.per_phase % encoding.max_phase
                point[order[0]] = encoding.vec * phase % shape[order[0]]
            bases.append(flatten(point, shape))
    return LinearLayout.from_flat({OFFSET: bases}, shape)


def _padded(encoding: PaddedSharedEncoding, shape: tuple[int, ...]) -> LinearLayout:
    if encoding.block:
        raise ValueError("it spans several thread blocks; this backend has one block a cluster (num_ctas=1)")
    if encoding.offset:
        return _fitted(encoding.offset, shape)
    return _swizzled(SwizzledSharedEncoding(1, 1, 1, encoding.order), shape)


def _shared_linear(encoding: SharedLinearEncoding, shape: tuple[int, ...]) -> LinearLayout:
    if encoding.block:
        raise ValueError("it spans several thread blocks; this backend has one block a cluster (num_ctas=1)")
    return _fitted(encoding.offset, shape)


def _fitted(points: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> LinearLayout:
    """The layout with the bases ``points``, whose own shape must be ``shape``."""
    return LinearLayout({OFFSET: points}, shape)


_RULES: dict[type, Callable[..., LinearLayout]] = {
    SwizzledSharedEncoding: _swizzled,
    PaddedSharedEncoding: _padded,
    SharedLinearEncoding: _shared_linear,
}
