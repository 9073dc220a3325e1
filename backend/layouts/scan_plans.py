"""How to scan a tensor along one dimension: decided by layout algebra alone, before anything is emitted.

The bits of the coordinate along the dimension are held by registers, lanes and subgroups. They are taken in runs of one
kind, low bits first; each run joins blocks of elements that are already scanned into larger ones. So a tile that is
repeated in further registers is a run of registers, one of lanes, one of subgroups, and again one of registers.

The combination need not be commutative: the earlier block is always the left operand. In a reverse scan, earlier means
a larger coordinate: every bit counts as its complement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .distributed import LANE, REGISTER, WARP
from .gf2 import span_values
from .linear import LinearLayout
from .through_shared import VECTOR_BYTES

PART = "part"


class ScanError(ValueError):
    """A layout that cannot be scanned as it is: it mixes the dimension with others, or holds its bits out of order."""


@dataclass(frozen=True)
class AcrossRegisters:
    """Joins 2**bits neighbouring blocks of a lane."""

    bits: int


@dataclass(frozen=True)
class AcrossLanes:
    """Joins the blocks of lanes that differ in the bits ``masks`` (single bits of the lane number, ascending)."""

    masks: tuple[int, ...]

    @property
    def mask(self) -> int:
        """All of ``masks``."""
        return sum(self.masks)


@dataclass(frozen=True)
class AcrossWarps:
    """Joins the blocks of subgroups that differ in the bits ``masks``, through workgroup memory.

    ``store``: (register, lane, warp) to the element offset of a block's total, where ``register`` numbers the blocks:
    group 0's in scan order, then group 1's, and so on. ``load``: (part, register, lane, warp) to the offset of the
    total of block ``part`` of those that are joined, in ascending order of the warp number. ``size``: elements taken by
    one operand. The totals of ``width`` blocks, from a multiple of it on, are next to each other: 16 bytes of the
    largest type at most. A lane whose number meets ``duplicate_lanes``, or whose warp number meets ``duplicate_warps``,
    need not store.
    """

    masks: tuple[int, ...]
    store: LinearLayout
    load: LinearLayout
    width: int
    size: int
    duplicate_lanes: int
    duplicate_warps: int

    @property
    def mask(self) -> int:
        """All of ``masks``."""
        return sum(self.masks)


Step = AcrossRegisters | AcrossLanes | AcrossWarps


@dataclass(frozen=True)
class ScanPlan:
    """``groups[g]``: the registers of one line of the tensor, in scan order. ``steps``: how blocks are joined,
    beginning with blocks of one register each. ``results[i]``: (group, position in it) of the value of result register
    i."""

    groups: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    results: tuple[tuple[int, int], ...]
    reverse: bool


@lru_cache(maxsize=512)
def plan_scan(layout: LinearLayout, axis: int, reverse: bool, element_bytes: tuple[int, ...]) -> ScanPlan:
    """How to scan tensors of ``layout`` along ``axis``; ``element_bytes``: size in memory of each operand's element.

    Raises ScanError if a bit of the coordinate along ``axis`` is not held by a register, lane or warp bit of its
    own, or where lanes or warps hold the bits in descending order: convert such a layout to ``simple_layout`` first.
    """
    if not 0 <= axis < layout.rank:
        raise ScanError(f"a scan along dimension {axis} of a tensor of rank {layout.rank}")
    others = layout.drop_dim(axis)
    along = {name: [point[axis] for point in points] for name, points in layout.bases.items()}
    holders = _holders(layout, axis, along, others)
    registers = [index for name, index in holders if name == REGISTER]
    groups, results = _groups(others.inputs[REGISTER], along[REGISTER], registers, reverse)

    steps: list[Step] = []
    done_lanes = done_registers = 0
    position = 0
    while position < len(holders):
        kind = holders[position][0]
        run = []
        while position < len(holders) and holders[position][0] == kind:
            run.append(1 << holders[position][1])
            position += 1
        if run != sorted(run) and kind != REGISTER:
            raise ScanError(f"{layout}: {kind} bits hold dimension {axis} out of order")
        if kind == REGISTER:
            steps.append(AcrossRegisters(len(run)))
            done_registers += len(run)
        elif kind == LANE:
            steps.append(AcrossLanes(tuple(run)))
            done_lanes |= sum(run)
        else:
            blocks = len(groups) << len(registers) - done_registers
            steps.append(_across_warps(layout.inputs, tuple(run), blocks, done_lanes, element_bytes))
    return ScanPlan(groups, tuple(steps), results, reverse)


def _holders(
    layout: LinearLayout, axis: int, along: Mapping[str, Sequence[int]], others: LinearLayout
) -> list[tuple[str, int]]:
    """For each bit of the coordinate, low bits first: the input and the number of the bit that holds it."""
    found: dict[int, tuple[str, int]] = {}
    for name in (REGISTER, LANE, WARP):
        for index, (step, other) in enumerate(zip(along[name], others.inputs[name], strict=True)):
            if not step:
                continue
            if other or step & (step - 1) or step in found:
                raise ScanError(
                    f"{layout}: bit {index} of the {name} number moves along more than dimension {axis}, "
                    "or another bit does the same"
                )
            found[step] = (name, index)
    bits = layout.shape[axis].bit_length() - 1
    if len(found) != bits:
        raise ScanError(f"{layout} does not cover dimension {axis}")
    return [found[1 << bit] for bit in range(bits)]


def _groups(
    others: Sequence[int], along: Sequence[int], bits: Sequence[int], reverse: bool
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, int], ...]]:
    """The registers of each line in scan order, and where each register is in them. ``bits``: the register bits that
    move along the axis, in the order of their steps."""
    number: dict[int, int] = {}
    members: list[dict[int, int]] = []
    results: list[tuple[int, int]] = []
    flipped = (1 << len(bits)) - 1 if reverse else 0
    for register, line in enumerate(span_values(others)):
        place = sum((register >> bit & 1) << index for index, bit in enumerate(bits)) ^ flipped
        group = number.setdefault(line, len(members))
        if group == len(members):
            members.append({})
        members[group].setdefault(place, register)
        results.append((group, place))
    return tuple(tuple(found[place] for place in range(1 << len(bits))) for found in members), tuple(results)


def _across_warps(
    inputs: Mapping[str, Sequence[int]],
    masks: tuple[int, ...],
    blocks: int,
    done_lanes: int,
    element_bytes: tuple[int, ...],
) -> AcrossWarps:
    """Offsets: as many blocks as an access takes in the low bits, then the lanes that hold different totals, then the
    warps, then the other blocks."""
    block_bits = (blocks - 1).bit_length()
    bit = together = min(block_bits, (VECTOR_BYTES // max(element_bytes)).bit_length() - 1)
    store: dict[str, list[int]] = {REGISTER: [], LANE: [], WARP: []}
    duplicates = {LANE: 0, WARP: 0}
    parts: list[int] = []
    for name in (LANE, WARP):
        for index, basis in enumerate(inputs[name]):
            if not basis or name == LANE and done_lanes >> index & 1:
                store[name].append(0)
                duplicates[name] |= 1 << index
                continue
            store[name].append(1 << bit)
            if name == WARP and 1 << index in masks:
                parts.append(1 << bit)
            bit += 1
    store[REGISTER] = [1 << (number if number < together else bit + number - together) for number in range(block_bits)]
    bit += block_bits - together
    size = 1 << bit
    load = {
        PART: parts,
        REGISTER: store[REGISTER],
        LANE: store[LANE],
        WARP: [0 if basis in parts else basis for basis in store[WARP]],
    }
    return AcrossWarps(
        masks,
        LinearLayout.from_flat(store, (size,)),
        LinearLayout.from_flat(load, (size,)),
        1 << together,
        size,
        duplicates[LANE],
        duplicates[WARP],
    )


@lru_cache(maxsize=512)
def simple_layout(layout: LinearLayout) -> LinearLayout:
    """A layout of the same tensor and workgroup that can be scanned along every dimension: row-major, lanes first, then
    warps, then registers."""
    lanes, warps = len(layout.inputs[LANE]), len(layout.inputs[WARP])
    bits = [1 << bit for bit in range(layout.output_bits)]
    columns = bits[: lanes + warps] + [0] * (lanes + warps - len(bits))
    return LinearLayout.from_flat(
        {REGISTER: bits[lanes + warps :], LANE: columns[:lanes], WARP: columns[lanes:]}, layout.shape
    )
