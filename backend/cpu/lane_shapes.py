"""How a value differs between the lanes of a subgroup.

A value is *spread* (a number of its own in each lane) or a sum of a number that all lanes share and of an offset for
each lane that is known when a kernel is compiled. Without offsets it is uniform; without the shared number it is a
constant of each lane; the address of neighbouring elements has the offsets 0, 4, 8, …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Trailing zeros that nothing is known to have more of.
MOST_ZEROS = 64


@dataclass(frozen=True, slots=True)
class LaneShape:
    """The sum of a shared number, if ``shared``, and ``offsets``, signed, one a lane; all modulo 2^width. The shared
    number is that of lane 0, whose offset is 0; it is a multiple of 2^``zeros``."""

    shared: bool
    offsets: tuple[int, ...]
    zeros: int = 0

    @property
    def uniform(self) -> bool:
        """Whether all lanes have the same number."""
        return len(set(self.offsets)) == 1

    @property
    def plain(self) -> bool:
        """Whether the shared number is the value."""
        return self.shared and not any(self.offsets)

    @property
    def known(self) -> bool:
        """Whether the value is known now."""
        return not self.shared


#: A value that is another one in each lane: SPREAD in place of a Shape.
SPREAD = None


def signed(value: int, width: int) -> int:
    """A number modulo 2^width as the signed one."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) and width > 1 else value


def trailing_zeros(value: int) -> int:
    """How many low bits of a number are 0; MOST_ZEROS for 0."""
    return (value & -value).bit_length() - 1 if value else MOST_ZEROS


def uniform(lanes: int, zeros: int = 0) -> LaneShape:
    """The shape of a number that all lanes share."""
    return LaneShape(True, (0,) * lanes, zeros)


def constant(value: int, width: int, lanes: int) -> LaneShape:
    """The shape of a number that is known."""
    return LaneShape(False, (signed(value, width),) * lanes, MOST_ZEROS)


def of_lanes(values: tuple[int, ...], width: int) -> LaneShape:
    """The shape of a number that is known for each lane."""
    return LaneShape(False, _wrapped(values, width), MOST_ZEROS)


def joined(a: LaneShape | None, b: LaneShape | None) -> LaneShape | None:
    """The shape of a value that is one or the other for all lanes."""
    if a is SPREAD or b is SPREAD:
        return SPREAD
    if a == b:
        return a
    lane_0 = [shape.offsets[0] for shape in (a, b)]
    relative = [tuple(offset - first for offset in shape.offsets) for shape, first in zip((a, b), lane_0, strict=True)]
    if relative[0] != relative[1]:
        return SPREAD
    zeros = [trailing_zeros(first) if shape.known else shape.zeros for shape, first in zip((a, b), lane_0, strict=True)]
    return LaneShape(True, relative[0], min(zeros))


def _summed(shared: bool, offsets: list[int], zeros: int, width: int) -> LaneShape:
    """The shape of the sum of a multiple of 2^zeros, if ``shared``, and of numbers that are known."""
    if not shared:
        return of_lanes(tuple(offsets), width)
    first = offsets[0]
    return LaneShape(True, _wrapped([offset - first for offset in offsets], width), min(zeros, trailing_zeros(first)))


def _wrapped(offsets: Sequence[int], width: int) -> tuple[int, ...]:
    if width > 1 and -1 << width - 1 <= min(offsets) and max(offsets) < 1 << width - 1:  # most are
        return tuple(offsets)
    return tuple(signed(offset, width) for offset in offsets)


def added(a: LaneShape, b: LaneShape, width: int, sign: int = 1) -> LaneShape:
    """The shape of a + b, or of a - b."""
    offsets = [x + sign * y for x, y in zip(a.offsets, b.offsets, strict=True)]
    return _summed(a.shared or b.shared, offsets, min(a.zeros, b.zeros), width)


def scaled(a: LaneShape, factor: int, width: int) -> LaneShape:
    """The shape of a × a known number."""
    zeros = min(a.zeros + trailing_zeros(factor), MOST_ZEROS)
    return _summed(a.shared, [offset * factor for offset in a.offsets], zeros, width)


def fits_below(a: LaneShape, offsets: tuple[int, ...]) -> bool:
    """Whether no offset carries into the bits that the shared number of ``a`` has: their sum has the bits of both."""
    return a.shared and all(0 <= offset < 1 << min(a.zeros, 63) for offset in offsets)


def united(a: LaneShape, offsets: tuple[int, ...], width: int) -> LaneShape:
    """The shape of a | known numbers that fit below ``a``, which has no offsets."""
    return _summed(True, list(offsets), a.zeros, width)


def evaluated(rule: Callable[..., int], shapes: list[LaneShape], width: int) -> LaneShape:
    """The shape of what ``rule`` makes of numbers that are known."""
    lanes = zip(*(shape.offsets for shape in shapes), strict=True)
    return of_lanes(tuple(rule(*values) for values in lanes), width)
