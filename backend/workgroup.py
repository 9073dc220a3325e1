"""How many subgroups a workgroup has.

``num_warps`` counts warps of 32 lanes: that is what kernels are tuned for. A subgroup of fewer lanes would hold several
times as many elements a lane, and code grows with them. So there are more subgroups instead, as many as the kernel's
largest tensor asks for; fewer again where they would take more shared memory than there is (compiler.py).
"""
from __future__ import annotations

import math
import re

from .capabilities import Capabilities

#: Lanes of the warps that ``num_warps`` counts.
WARP = 32

#: Elements of a tensor that a lane should hold at most. On Mesa's CPU driver a 128×128×32 matmul with four warps is
#: compiled in 0.9 s instead of 3.7 this way, and runs 1.2 times as long: each subgroup reads a dot's operands anew.
LANE_ELEMENTS = 32
LANE_ELEMENTS_DOT = 64

_TENSOR = re.compile(r"tensor<((?:\d+x)+)")
_DOT = re.compile(r"\btt\.dot(_scaled)?\b")


def subgroups(ttir: str, num_warps: int, capabilities: Capabilities) -> int:
    """Subgroups for a kernel with ``num_warps``: at least so many, a power of two."""
    most = max(num_warps, min(num_warps * WARP, capabilities.max_workgroup_invocations) // capabilities.subgroup_size)
    shapes = {match[1] for match in _TENSOR.finditer(ttir)}
    largest = max((math.prod(map(int, shape[:-1].split("x"))) for shape in shapes), default=1)
    wanted = LANE_ELEMENTS_DOT if _DOT.search(ttir) else LANE_ELEMENTS
    count = num_warps
    while count * 2 <= most and largest > count * capabilities.subgroup_size * wanted:
        count *= 2
    return count
