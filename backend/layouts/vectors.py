"""How many consecutive registers one memory access may hold."""

from __future__ import annotations

from typing import Protocol

from .distributed import REGISTER
from .linear import LinearLayout


class AxisFacts(Protocol):
    """What must be known of a tensor, one entry a dimension: see analysis.axis_info.AxisInfo."""

    @property
    def contiguity(self) -> tuple[int, ...]: ...

    @property
    def divisibility(self) -> tuple[int, ...]: ...

    @property
    def constancy(self) -> tuple[int, ...]: ...


def contiguous_registers(layout: LinearLayout) -> tuple[int, int]:
    """``(dim, count)``: registers ``count * n`` to ``count * n + count - 1`` hold consecutive elements along ``dim``.

    The first of them has a coordinate along ``dim`` that is a multiple of ``count``, in every lane and warp.
    ``count`` is 1 where no two registers are consecutive; ``dim`` is then the last dimension.
    """
    registers = layout.bases[REGISTER]
    steps = [next((dim for dim, c in enumerate(point) if c), -1) for point in registers[:1]]
    dim = steps[0] if steps and steps[0] >= 0 else layout.rank - 1
    bits = 0
    for bit, point in enumerate(registers):
        if any(c != (1 << bit if axis == dim else 0) for axis, c in enumerate(point)):
            break
        bits += 1
    low = 0
    for name, points in layout.bases.items():
        for point in points[bits:] if name == REGISTER else points:
            low |= point[dim] if layout.rank else 0
    while bits and low & ((1 << bits) - 1):
        bits -= 1
    return dim, 1 << bits


def access_width(
    layout: LinearLayout, pointer: AxisFacts, mask: AxisFacts | None, element_bits: int, max_bits: int
) -> int:
    """The most registers (a power of two) that one load or store may take, beginning at any multiple of itself.

    Their addresses are consecutive, the first is aligned to all of them, their masks are equal, and together they have
    at most ``max_bits`` bits. ``element_bits``: size of an element in memory, 8 at least.
    """
    if not layout.rank:
        return 1
    dim, width = contiguous_registers(layout)
    width = min(width, pointer.contiguity[dim], pointer.divisibility[dim] * 8 // element_bits, max_bits // element_bits)
    if mask is not None:
        width = min(width, mask.constancy[dim])
    return 1 << (max(width, 1).bit_length() - 1)
