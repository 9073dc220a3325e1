"""Which schedules there are for a kernel, and how long it is expected to take by each, as a multiple of the best one's
time. The first that fits in the device's shared memory is taken (stages.py).

A schedule differs from the best one in what spares shared memory: each difference has its factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log2, prod

from ..driver_quirks import OTHER, Driver
from ..transforms.schedule import Schedule

#: Dots on multiply-adds where the device has matrix units. Products of float16, 4096³, on an H100, five configurations:
#: 4.5 to 9.1 times as long; attention 8 times.
MULTIPLY_ADDS = 7.0
#: Buffers of matrix operands that are not padded, so that fragments are loaded element by element. In the same products
#: 0.9 to 1.2 times as long; with tiles of 128×256×64, which fit no other way, 1.65 times as long as MATRIX_PIECES of
#: padded buffers, and attention with head 128 and 128×64 took twice as long so. The factor keeps them behind pieces.
PLAIN = 2.4
#: Dots on matrix units cut in two along K, whose operands reach their fragments by conversions: 1.4, 1.9, 2.1 and 2.3
#: times as long in those products.
MATRIX_PIECES = 2.0
#: Operands that loops do not change in registers, of which there are too few, so that drivers spill. Attention and its
#: gradients, eight kernels that do not fit otherwise, on an H100: 0.95 to 13 times as fast as in pieces, and all but
#: one 1.6 times or more.
HELD = 1.2
#: Dots on multiply-adds cut in two along K, and in two again. ACO's cycles for RDNA 3 (Mesa 22.3.6) are 0.7 to 0.9 of
#: the whole dots' for fp32 attention, 0.9 to 1.8 for fp32 products. On an H100: 1.0 to 3.2 for four products of float16
#: and 8 for tiles of 128×256×64.
PIECES = 1.2
#: Half as many subgroups, each with twice the registers. ACO's cycles: 2.2 to 5 times as many for attention, 3.8 to 6
#: for products, and 42 for one that spills 1,003 registers. ANV's for fp16 attention: 1.5 to 1.7 times.
HALF_THE_SUBGROUPS = 3.0
#: Loads of dot operands where upstream left them: registers hold them longer. ACO: the same cycles for seven kernels;
#: an H100: the same time for five products of float16.
UNMOVED = 1.05

#: In how many pieces dots are cut.
CUTS = (0, 2, 4, 8, 16)
#: The same on matrix units: of more pieces each is smaller, but not what makes pieces of a tile.
MATRIX_CUTS = (0, 2)


@dataclass(frozen=True)
class Candidate:
    """A ``schedule``, and how many times as long as by the best one the kernel is expected to take by it."""

    schedule: Schedule
    expected: float


@dataclass(frozen=True)
class KernelFacts:
    """What decides which schedules a kernel has. ``subgroups``: how many it should have without matrix units
    (workgroup.py), down to ``num_warps``; ``stages``: of pipelined loops; ``matrix_warps``: warps of 32 lanes that it
    should have on matrix units, 0 where they may not be used, and whether their buffers can be ``padded``. ``dots``:
    whether it has any; ``driver``: whose is the factor of Schedule.in_rounds (``rounds_cost``)."""

    subgroups: int
    num_warps: int
    stages: int
    matrix_warps: int = 0
    padded: bool = False
    dots: bool = True
    driver: Driver = OTHER


def candidates(facts: KernelFacts) -> list[Candidate]:
    """All schedules of a kernel, the fastest first, of those as fast the one that differs less from the best."""
    found = [Candidate(schedule, _expected(schedule, facts)) for schedule in _schedules(facts)]
    return sorted(found, key=lambda one: one.expected)


def _schedules(facts: KernelFacts) -> Iterator[Schedule]:
    best = Schedule(facts.subgroups, stages=facts.stages)
    if facts.matrix_warps:
        units = replace(best, subgroups=facts.matrix_warps, moved_loads=False, matrices=True)
        for padded in (True, False) if facts.padded else (False,):
            yield from (replace(units, padded=padded, pieces=pieces) for pieces in MATRIX_CUTS)
            yield replace(units, padded=padded, held=True)
    yield from (replace(best, subgroups=count) for count in _halved(facts))
    if facts.dots:
        yield from (replace(best, pieces=pieces) for pieces in CUTS if pieces)
        for moved in (True, False):
            yield from (replace(best, moved_loads=moved, pieces=pieces, in_rounds=True) for pieces in CUTS)


def _halved(facts: KernelFacts) -> Iterator[int]:
    count = facts.subgroups
    yield count
    while count > facts.num_warps:
        count //= 2
        yield count


def _expected(schedule: Schedule, facts: KernelFacts) -> float:
    pieces = MATRIX_PIECES if schedule.matrices else PIECES
    factors = [pieces ** log2(schedule.pieces or 1), facts.driver.rounds_cost if schedule.in_rounds else 1.0]
    if schedule.matrices:
        factors.append(PLAIN if facts.padded and not schedule.padded else 1.0)
        factors.append(HELD if schedule.held else 1.0)
    else:
        factors.append(MULTIPLY_ADDS if facts.matrix_warps else 1.0)
        factors.append(1.0 if schedule.moved_loads else UNMOVED)
        factors.append(HALF_THE_SUBGROUPS ** log2(facts.subgroups // schedule.subgroups))
    return round(prod(factors), 2)


def named_layouts(stages: int) -> Schedule:
    """The schedule of a kernel that names its layouts, such as Gluon's: there is nothing to choose."""
    return Schedule(moved_loads=False, matrices=True, in_rounds=True, stages=stages)
