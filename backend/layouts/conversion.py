"""How to change the layout of a tensor: decided by layout algebra alone, before anything is emitted.

``plan_conversion`` gives one of four plans, the first that is possible:

* ``Identity``: every register already holds its element.
* ``RegisterPermutation``: registers are renamed.
* ``SubgroupShuffle`` (shuffles.py): elements move between the lanes of a subgroup, never between subgroups.
* ``ThroughShared`` (through_shared.py): elements go through workgroup memory, in rounds that fit the scratch buffer.

Vectors in these files are row-major element indices of the tensor, added by exclusive or (see ``linear``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, span_values
from .linear import LinearLayout
from .shuffles import SubgroupShuffle, plan_shuffles
from .through_shared import ConversionError, ThroughShared, plan_rounds


@dataclass(frozen=True)
class Identity:
    """Result register i is source register i."""


@dataclass(frozen=True)
class RegisterPermutation:
    """Result register i is source register ``sources[i]``, in every lane."""

    sources: tuple[int, ...]


Moves = Identity | RegisterPermutation | SubgroupShuffle | ThroughShared


@lru_cache(maxsize=1024)
def plan_conversion(source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int = 0) -> Moves:
    """How each lane gets the registers of ``result`` from the registers of ``source``.

    ``element_bytes``: size of an element in memory. ``scratch_bytes``: workgroup memory that the operation owns
    (0 where it has none). Raises ConversionError if workgroup memory is needed and
    ``scratch_bytes`` does not suffice, ValueError for layouts of different tensors or of different workgroups.
    """
    if source.size != result.size or not source.is_surjective:
        raise ValueError(f"no conversion from {source} to {result}: both must cover the same tensor")
    if any(source.input_size(name) != result.input_size(name) for name in (LANE, WARP)):
        raise ValueError(f"no conversion from {source} to {result}: lanes and warps must agree")
    return (
        _rename(source, result)
        or plan_shuffles(source, result)
        or plan_rounds(source, result, element_bytes, scratch_bytes)
    )


def plan_through_shared(
    source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int
) -> ThroughShared | None:
    """The plan through ``scratch_bytes`` of workgroup memory, for a device on which plan_conversion's cheapest plan is
    not the cheapest; None if they do not suffice."""
    try:
        return plan_rounds(source, result, element_bytes, scratch_bytes)
    except ConversionError:
        return None


def _rename(source: LinearLayout, result: LinearLayout) -> Identity | RegisterPermutation | None:
    """Registers alone: possible where lanes and warps hold the same parts of the tensor."""
    if source.inputs[LANE] != result.inputs[LANE] or source.inputs[WARP] != result.inputs[WARP]:
        return None
    if source.inputs[REGISTER] == result.inputs[REGISTER]:
        return Identity()
    registers = Span(source.inputs[REGISTER])
    columns = []
    for basis in result.inputs[REGISTER]:
        column = registers.solve(basis)
        if column is None:
            return None
        columns.append(column)
    return RegisterPermutation(tuple(span_values(columns)))
