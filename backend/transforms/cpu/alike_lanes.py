"""Quotients and remainders that lanes have in common are computed once for all of a subgroup's lanes.

Where the lanes of a subgroup are elements of a vector, a division in each is many times as long as a sum, and no vector
is loaded at addresses that are computed from remainders of any kind. Of ``offsets % N``, with N a multiple of the
number of lanes, a register holds neighbouring numbers; of ``offsets // N`` it holds one. The operation gets an
attribute that says so, and its rule (lowering/arith.py) computes it for the last lane.

That dividends which are computed of numbers that are not negative do not wrap around is an assumption
(analysis/axis_info/signs.py). It is made of those signed operations alone whose results are nothing but parts of
addresses.
"""

from __future__ import annotations

from ...analysis.axis_info import AxisInfoAnalysis
from ...layouts.distributed import LANE, LayoutError, layout_of
from ...ttgir.ir import Function, Value
from ...ttgir.types import IntegerType, TensorType
from ..strip_operations import DIVISIONS

#: The attribute: what the lanes of a register have, the same number or neighbouring ones.
ALIKE = "spirv.alike"
SAME, NEIGHBOURS = "same", "neighbours"

_UNSIGNED = frozenset({"arith.divui", "arith.remui"})
#: Bits of a number that a lane's is added to.
_WIDE = 32
#: Operations that make addresses of parts of addresses.
_PARTS = frozenset(
    {*DIVISIONS, "arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.extui", "tt.expand_dims"}
    | {"tt.broadcast", "ttg.convert_layout", "spirv.spill", "spirv.strip"}
)


def mark_alike(function: Function) -> bool:
    """Gives the attribute to operations of ``function``. Whether there were any."""
    divisions = [one for one in function.walk() if one.name in DIVISIONS and _is_wide(one.result)]
    if not divisions:
        return False
    known, marked = AxisInfoAnalysis(function), False
    for division in divisions:
        how = _alike(division.result, known)
        if how and (division.name in _UNSIGNED or _is_address(division.result)):
            division.set_attribute(ALIKE, how)
            marked = True
    return marked


def _is_wide(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, TensorType) and isinstance(type_.element, IntegerType) and type_.element.width >= _WIDE


def _alike(value: Value, known: AxisInfoAnalysis) -> str:
    try:
        lanes = layout_of(value.tensor).bases[LANE]
    except LayoutError:
        return ""
    along = next((dim for dim, coordinate in enumerate(lanes[0]) if coordinate), None) if lanes else None
    if along is None or any(
        point != tuple(1 << bit if dim == along else 0 for dim in range(len(point))) for bit, point in enumerate(lanes)
    ):
        return ""
    info, count = known[value], 1 << len(lanes)
    return SAME if info.constancy[along] >= count else NEIGHBOURS if info.contiguity[along] >= count else ""


def _is_address(value: Value) -> bool:
    """Whether a tensor of integers is used for nothing but addresses."""
    pending, seen = [value], {value}
    while pending:
        one = pending.pop()
        for use in one.uses:
            if use.name == "tt.addptr" and use["offset"] is one:
                continue
            if use.name not in _PARTS:
                return False
            pending += [result for result in use.results if result not in seen]
            seen.update(use.results)
    return True
