"""How many subgroups a kernel has where waiting makes coroutines.

More where a kernel with dots has many tensors: each is a few instructions for every element in a lane. More where one
without dots accesses many elements one by one. Fewer than
``num_warps`` where a kernel exchanges elements many times and its tensors are small: one after the other runs on the
same thread of the CPU anyway, and within one subgroup no exchange waits.
"""

from __future__ import annotations

#: Exchanges of a kernel from which on it has the fewest subgroups whose lanes hold so many elements. A kernel of 106
#: reductions of 64 elements, with 8 warps, takes 3.5 s of CPU time instead of 11.
MANY_EXCHANGES = 16
FEW_ELEMENTS = 8

#: Elements that a lane should hold at most of all tensors of a kernel with dots together, as ``passes.Survey`` counts
#: them. Compile time grows with the square of what is emitted for them. A kernel of 26 dots of 16×16 with one warp,
#: 11,000 elements a lane in one subgroup, takes a third of the time in four. A gradient kernel of 12 dots of 64×64
#: takes 7 s with 16 subgroups instead of 15 with 8, and runs as fast; with 32 it would take 6, and run longer.
LANE_TOTAL = 4300

#: Elements that a lane should access at most each in code of its own, under a mask, atomically or at an index, in a
#: kernel without dots. Compile time grows with the square of that code: 16 masked scatters of 1,024 elements at indices
#: that are loaded take 4 s with 16 subgroups instead of 34 with four, 16 gathers of 1,024 numbers 4 s instead of 8.
LANE_ACCESSES = 192


def more_for_accesses(count: int, accesses: int, largest: int, lanes: int, most: int) -> int:
    """The subgroups of a kernel without dots that would have ``count`` else, and may have ``most``. ``largest``:
    elements of its largest tensor, of which a lane keeps FEW_ELEMENTS."""
    while (
        count * 2 <= most and accesses > count * lanes * LANE_ACCESSES and largest >= 2 * count * lanes * FEW_ELEMENTS
    ):
        count *= 2
    return count


def more_for_tensors(count: int, elements: int, lanes: int, most: int) -> int:
    """The subgroups of a kernel with dots that would have ``count`` else, and may have ``most``. ``elements``: of all
    its tensors."""
    while count * 2 <= most and elements > count * lanes * LANE_TOTAL:
        count *= 2
    return count


def fewer_for_exchanges(count: int, exchanges: int, largest: int, lanes: int) -> int:
    """The subgroups of a kernel without dots that would have ``count`` else. ``largest``: elements of its largest
    tensor."""
    while exchanges >= MANY_EXCHANGES and count > 1 and largest <= count // 2 * lanes * FEW_ELEMENTS:
        count //= 2
    return count
