"""What is tried where a kernel takes more shared memory than the device has, in this order: buffers of matrix
operands are not padded; dots on matrix units have fewer steps of K, so that their operands need smaller buffers; no
matrix units; loads of dot operands stay where upstream left them; half as many subgroups, down to ``num_warps``; dots
of fewer steps of K; and at last with conversions in rounds, which make long code next to dots, and operands that a loop
does not change copied to shared memory in each iteration, first with loads of dot operands at their dots. On Mesa's CPU
driver dots multiply slices of K in a loop before other layouts are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..transforms.schedule import Schedule


def named_layouts(stages: int) -> Schedule:
    """Of a kernel that names its layouts, such as Gluon's: there is nothing to try."""
    return Schedule(moved_loads=False, matrices=True, tight=True, stages=stages)


#: Parts of shared memory that the operands of a dot may take, one after the other.
SHARES = (1, 2, 4)
#: In how many pieces dots are cut, one after the other.
PIECES = (2, 4, 8)
#: The same on matrix units: of more pieces each is smaller, but not what makes pieces of a tile.
MATRIX_PIECES = (2,)


def sliced(schedule: Schedule, slices_dots: bool) -> Iterator[Schedule]:
    """What is tried with the same layouts: dots whose operands are stored in slices, where the driver's compiler is
    better off with that (``Driver.slices_dots``)."""
    yield schedule
    if slices_dots and not schedule.matrices:
        for share in SHARES:
            yield replace(schedule, share=share)


def schedules(
    subgroups: int, num_warps: int, stages: int, matrix_warps: int = 0, padded: bool = False, dots: bool = True
) -> Iterator[Schedule]:
    """All of them, the best one first. ``subgroups``: how many the kernel should have (workgroup.py) without matrix
    units; ``stages``: of pipelined loops; ``matrix_warps``: warps of 32 lanes that it should have on these, 0 where
    they may not be used, and whether with ``padded`` buffers. ``dots``: whether it has any."""
    best = Schedule(subgroups, stages=stages)
    units = replace(best, subgroups=matrix_warps, moved_loads=False, matrices=True)
    if matrix_warps and padded:
        yield replace(units, padded=True)
    if matrix_warps:
        for pieces in (0, *MATRIX_PIECES):
            yield replace(units, pieces=pieces)
    while True:
        for moved in (True, False):
            yield replace(best, subgroups=subgroups, moved_loads=moved)
        if subgroups <= num_warps:
            break
        subgroups //= 2
    if dots:
        for pieces in PIECES:
            yield replace(best, pieces=pieces)
        for pieces in (0, *PIECES):
            for moved in (True, False):
                yield replace(best, moved_loads=moved, pieces=pieces, tight=True)
