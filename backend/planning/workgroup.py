"""How many subgroups a workgroup has.

``num_warps`` counts warps of 32 lanes that have 256 registers each: that is what kernels are tuned for. A subgroup of
fewer lanes, or one whose lanes have fewer registers, would hold several times as much in a lane: code grows with that,
or registers are spilled. So there are more subgroups instead, as many as the kernel's largest tensor asks for; fewer
again where they would take more shared memory than there is (cost.py).
"""

from __future__ import annotations

from ..capabilities import Capabilities

#: Lanes of the warps that ``num_warps`` counts, and 32-bit registers of each.
WARP = 32
WARP_REGISTERS = 256

#: Elements of a tensor that a lane with so many registers should hold at most. On Mesa's CPU driver a 128×128×32 matmul
#: with four warps is compiled in 0.9 s instead of 3.7 this way, and runs 1.2 times as long: each subgroup reads a dot's
#: operands anew. For Intel's DG2 Mesa spills 55 registers of a 64×64×32 matmul this way instead of 4,099.
LANE_ELEMENTS = 32
LANE_ELEMENTS_DOT = 64
#: The same on matrix units where there are several dots. ANV estimates 7.4 million cycles for all subgroups of
#: attention with tiles of 64×64 this way instead of 12.8 (of half as many: 18.7), and 1.3 million for a 64×64×32 matmul
#: with the number above (1.6 of half as many subgroups).
LANE_ELEMENTS_DOTS = 128


def subgroups(largest: int, dots: bool, num_warps: int, capabilities: Capabilities) -> int:
    """Subgroups for a kernel with ``num_warps``, a power of two: at least so many, as long as upstream can reduce what
    they found to one value. ``largest``: elements of the kernel's largest tensor; ``dots``: whether it has any."""
    if capabilities.processor:  # lanes are elements of vectors, and more of them would be more vectors
        return num_warps
    elements = LANE_ELEMENTS_DOT if dots else LANE_ELEMENTS
    return _count(largest, elements, capabilities.subgroup_size, num_warps, capabilities)


def matrix_warps(largest: int, dots: int, num_warps: int, capabilities: Capabilities) -> int:
    """The warps on matrix units: warps of 32 lanes for a kernel that has so many ``dots``. Where there are several,
    upstream gives a warp whole rows of a tile, so that of more warps than rows of fragments some compute the same."""
    elements = LANE_ELEMENTS_DOT if dots < 2 else LANE_ELEMENTS_DOTS
    return _count(largest, elements, WARP, num_warps, capabilities)


def _count(largest: int, elements: int, lanes: int, num_warps: int, capabilities: Capabilities) -> int:
    fewer = WARP_REGISTERS // capabilities.traits.lane_registers
    invocations = min(num_warps * WARP * fewer, capabilities.max_workgroup_invocations)
    # Upstream's reductions combine what subgroups have found in two exchanges within one: of more subgroups it has no
    # reduction. Only subgroups of four lanes come to that, where num_warps is 32.
    combined = lanes * lanes
    most = min(max(num_warps, invocations // lanes), combined)
    count = min(num_warps, combined)
    while count * 2 <= most and largest > count * lanes * (elements // fewer):
        count *= 2
    return count
