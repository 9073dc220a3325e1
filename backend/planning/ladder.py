"""What is tried where a kernel takes more shared memory than the device has, in this order: buffers of matrix
operands are not padded; dots on matrix units have fewer steps of K, so that their operands need smaller buffers; no
matrix units; loads of dot operands stay where upstream left them; half as many subgroups, down to ``num_warps``; dots
of fewer steps of K; and at last with conversions in rounds, which make long code next to dots, and operands that a loop
does not change copied to shared memory in each iteration, first with loads of dot operands at their dots. On Mesa's CPU
driver dots multiply slices of K in a loop before other layouts are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Attempt:
    """One way to lay a kernel out: for how many subgroups, whether loads of dot operands go down to their dots
    (transforms/sink_loads.py), whether dots are for matrix units, and with ``padded`` buffers, in how many ``pieces``
    dots are cut along K (transforms/split_dots.py), 0 for none. ``tight``: conversions of a kernel with dots may go
    through shared memory in rounds, and buffers are filled in loops that use them (transforms/refill_buffers.py).
    ``share``: dots whose operands take more than one of so many parts of shared memory multiply slices of K in a loop
    (transforms/slice_dots.py), 0 for none."""

    subgroups: int
    moved_loads: bool = True
    matrices: bool = False
    padded: bool = False
    pieces: int = 0
    tight: bool = False
    share: int = 0

    @property
    def layouts(self) -> Attempt:
        """The attempt with the same layouts whose dots are whole."""
        return replace(self, share=0)

    def summary(self) -> str:
        """A few words."""
        parts = [f"{self.subgroups} subgroups"]
        if self.matrices:
            parts.append(f"matrix units with {'padded' if self.padded else 'plain'} buffers")
        elif not self.moved_loads:
            parts.append("loads of dot operands stay where upstream left them")
        if self.pieces:
            parts.append(f"dots in {self.pieces} pieces of K")
        if self.share:
            size = "shared memory" if self.share == 1 else f"1/{self.share} of shared memory"
            parts.append(f"slices of K in dots whose operands take more than {size}")
        if self.tight:
            parts.append("conversions in rounds, buffers filled in loops")
        return ", ".join(parts)


#: A kernel that names its layouts, such as Gluon's: there is nothing to try.
NAMED_LAYOUTS = Attempt(subgroups=0, moved_loads=False, matrices=True, tight=True)

#: Parts of shared memory that the operands of a dot may take, one after the other.
SHARES = (1, 2, 4)
#: In how many pieces dots are cut, one after the other.
PIECES = (2, 4, 8)
#: The same on matrix units: of more pieces each is smaller, but not what makes pieces of a tile.
MATRIX_PIECES = (2,)


def sliced(attempt: Attempt, slices_dots: bool) -> Iterator[Attempt]:
    """What is tried with the same layouts: dots whose operands are stored in slices, where the driver's compiler is
    better off with that (``Driver.slices_dots``)."""
    yield attempt
    if slices_dots and not attempt.matrices:
        for share in SHARES:
            yield replace(attempt, share=share)


def attempts(
    subgroups: int, num_warps: int, matrix_warps: int = 0, padded: bool = False, dots: bool = True
) -> Iterator[Attempt]:
    """All attempts, the best one first. ``subgroups``: those that the kernel should have (workgroup.py) without matrix
    units; ``matrix_warps``: warps of 32 lanes that it should have on these, 0 where they may not be used, and whether
    with ``padded`` buffers. ``dots``: whether it has any."""
    if matrix_warps and padded:
        yield Attempt(matrix_warps, False, True, True)
    if matrix_warps:
        yield Attempt(matrix_warps, False, True)
        for pieces in MATRIX_PIECES:
            yield Attempt(matrix_warps, False, True, pieces=pieces)
    best = subgroups
    while True:
        yield Attempt(subgroups, True)
        yield Attempt(subgroups, False)
        if subgroups <= num_warps:
            break
        subgroups //= 2
    if dots:
        for pieces in PIECES:
            yield Attempt(best, True, pieces=pieces)
        for pieces in (0, *PIECES):
            yield Attempt(best, True, pieces=pieces, tight=True)
            yield Attempt(best, False, pieces=pieces, tight=True)
