"""How to read elements whose place along one dimension is known only when the kernel runs.

Within a subgroup, by shuffles, where every element that a subgroup may want is held by that subgroup; else the caller
goes through workgroup memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, span_values
from .linear import LinearLayout, unflatten

INDEX = "index"

#: Shuffles for one result register above which workgroup memory is cheaper.
MOST_SHUFFLES = 4


@dataclass(frozen=True)
class GatherByShuffles:
    """Where the source element of an index is: (index, register, lane, warp) of the result to a register and a lane of
    the source, in the own subgroup.

    ``register``, ``lane``: the two maps. ``candidates``: the source registers that result register 0 may come from;
    result register r may come from each of them ^ ``register`` of r.
    """

    register: LinearLayout
    lane: LinearLayout
    candidates: tuple[int, ...]


@lru_cache(maxsize=512)
def plan_gather(source: LinearLayout, result: LinearLayout, axis: int) -> GatherByShuffles | None:
    """Shuffles that read from ``source``, at an index along ``axis``, for elements of ``result`` (a tensor of the same
    shape save along ``axis``). None if an element may be in another subgroup, or shuffles would be too many."""
    held = Span([*source.inputs[REGISTER], *source.inputs[LANE]])
    stride = 1
    for extent in source.shape[axis + 1 :]:
        stride *= extent
    inputs: dict[str, Sequence[int]] = {INDEX: [stride << bit for bit in range(source.shape[axis].bit_length() - 1)]}
    for name in (REGISTER, LANE, WARP):
        points = []
        for basis in result.inputs[name]:
            point = list(unflatten(basis, result.shape))
            point[axis] = 0
            index = 0
            for coordinate, extent in zip(point, source.shape, strict=True):
                index = index * extent + coordinate
            points.append(index)
        inputs[name] = points
    places: dict[str, list[int]] = {}
    for name, wanted in inputs.items():
        places[name] = []
        for bit, index in enumerate(wanted):
            place = held.solve(index ^ source.inputs[WARP][bit] if name == WARP else index)
            if place is None:
                return None
            places[name].append(place)
    registers = len(source.inputs[REGISTER])
    low = (1 << registers) - 1
    register = {name: [place & low for place in found] for name, found in places.items()}
    lane = {name: [place >> registers for place in found] for name, found in places.items()}
    varying = Span(basis for name in (INDEX, LANE, WARP) for basis in register[name]).basis()
    if 1 << len(varying) > MOST_SHUFFLES:
        return None
    return GatherByShuffles(
        LinearLayout.from_flat(register, (1 << registers,)),
        LinearLayout.from_flat(lane, (source.input_size(LANE),)),
        tuple(span_values(varying)),
    )
