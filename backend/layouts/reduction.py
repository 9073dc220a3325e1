"""How to reduce a tensor along one dimension: decided by layout algebra alone, before anything is emitted.

Three steps, each of which may be empty: registers of a lane are combined, then lanes of a subgroup (by exchanging
with the lane whose number differs in a mask), then subgroups (through workgroup memory). Elements that several
registers, lanes or subgroups hold are combined once.

Registers and the subgroups' parts are combined in the order of their coordinates. Of two lanes that exchange, each puts
its own part first. Where that may matter, the results of the lanes are not their own, but the first lane's, which has
combined them in the order of their coordinates.

Any order will do for a combination that commutes. Otherwise the order is the one of the elements, which upstream does
not promise: where registers hold higher coordinates than lanes do, as they do in a tile that is repeated, a reduction
has several parts along the dimension, the lowest coordinates first (``extents_in_order``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, annihilator, combine, dual, inverse, kernel, parity, span_values
from .linear import LinearLayout
from .through_shared import VECTOR_BYTES

PARTIAL = "partial"


class ReductionError(ValueError):
    """A reduction that cannot be done: the layout mixes dimensions, or the scratch memory does not suffice."""


@dataclass(frozen=True)
class PartialResults:
    """The step through workgroup memory. Here ``register`` numbers the groups of the plan.

    ``store``: (register, lane, warp) to the element offset of that partial result. ``load``: (partial, register, lane,
    warp) to the offset of each of the ``partials`` partial results that make up the total; partial 0 comes first along
    the dimension. In round i the groups ``rounds[i]`` are stored, and after a barrier loaded and combined; a barrier
    parts the rounds. Each ``width`` groups of a round lie at consecutive offsets, the first at a multiple of ``width``,
    for stores and loads. ``size``: elements taken by one operand. A lane whose number meets ``duplicate_lanes``, or
    whose warp number meets ``duplicate_warps``, need not store.
    """

    rounds: tuple[tuple[int, ...], ...]
    store: LinearLayout
    load: LinearLayout
    partials: int
    width: int
    size: int
    duplicate_lanes: int
    duplicate_warps: int


@dataclass(frozen=True)
class ReductionPlan:
    """``groups[g]``: the source registers that are combined into group g, in ascending order along the dimension.
    ``lane_masks``: for each mask, combine with the value of the lane whose number is the own one ^ mask, one mask after
    the other. ``first_lane``: (register, lane, warp) to the number of the lane that has then combined the elements in
    their order, where ``register`` numbers the groups; None where the own value will do. ``across_warps``: the step
    through workgroup memory, or None. ``results[i]``: the group that result register i takes. ``result``: the layout of
    the result, its registers numbered as in a slice encoding."""

    groups: tuple[tuple[int, ...], ...]
    lane_masks: tuple[int, ...]
    first_lane: LinearLayout | None
    across_warps: PartialResults | None
    results: tuple[int, ...]
    result: LinearLayout


@lru_cache(maxsize=512)
def plan_reduction(
    layout: LinearLayout, axis: int, element_bytes: tuple[int, ...], scratch_bytes: int = 0, agreed: bool = False
) -> ReductionPlan:
    """How to reduce tensors of ``layout`` along ``axis``. ``agreed``: all lanes take the first one's result, which is
    in the order of the elements if the dimension is one of ``extents_in_order``.

    ``element_bytes``: size in memory of an element of each operand. ``scratch_bytes``: workgroup memory that the
    operation owns. Raises ReductionError for a layout in which a lane's place along ``axis`` depends on its place along
    other dimensions, and where ``scratch_bytes`` does not suffice.
    """
    others, along = _parted(layout, axis)
    groups, group_bits = _groups(others.inputs[REGISTER], along[REGISTER])
    # ``seen``: the steps along the axis whose elements a lane has combined so far.
    own = [combine(along[REGISTER], mask) for mask in kernel(others.inputs[REGISTER])]
    seen = Span(own)
    lane_masks = _steps(others.inputs[LANE], along[LANE], seen)
    combined = seen.basis()
    warp_masks = _steps(others.inputs[WARP], along[WARP], seen)
    axis_bits = layout.shape[axis].bit_length() - 1
    if seen.rank != axis_bits:
        raise _mixed(layout, axis)

    registers = {
        REGISTER: [others.inputs[REGISTER][bit] for bit in group_bits],
        LANE: others.inputs[LANE],
        WARP: others.inputs[WARP],
    }
    places = {REGISTER: [along[REGISTER][bit] for bit in group_bits], LANE: along[LANE], WARP: along[WARP]}
    first_lane = _first_lane(places, lane_masks, Span(own)) if agreed and lane_masks else None
    across = None
    if warp_masks:
        steps = [combine(along[WARP], mask) for mask in warp_masks]
        across = _across_warps(
            registers, places, combined, steps, axis_bits, others.output_bits, element_bytes, scratch_bytes
        )
        if first_lane is not None and _stored_by_first(first_lane, across.duplicate_lanes):
            first_lane = None
    result = others.without_zeros(REGISTER)
    group_of = {point: group for group, point in enumerate(span_values(registers[REGISTER]))}
    results = tuple(group_of[point] for point in span_values(result.inputs[REGISTER]))
    return ReductionPlan(groups, lane_masks, first_lane, across, results, result)


def extents_in_order(layout: LinearLayout, axis: int) -> tuple[int, ...]:
    """The extents of the parts of dimension ``axis``, the lowest coordinates first, that can be reduced in the order of
    the elements one after the other: in each, lanes hold higher coordinates than registers, and warps than lanes.
    Raises ReductionError for a layout in which none of the three holds the elements of some bit of the coordinate, or
    in which the order of a lane's registers depends on the lane."""
    others, along = _parted(layout, axis)
    leads = [
        {step.bit_length() for step in Span(combine(along[name], mask) for mask in kernel(others.inputs[name])).basis()}
        for name in (REGISTER, LANE, WARP)
    ]
    extents, last = [1], 0
    threads = reduce(or_, (*along[LANE], *along[WARP]), 0)
    for lead in range(1, layout.shape[axis].bit_length()):
        kind = next((number for number, found in enumerate(leads) if lead in found), None)
        if kind is None or kind == 0 and threads >> lead - 1 & 1:
            raise _mixed(layout, axis)
        if kind < last:
            extents.append(1)
        extents[-1] *= 2
        last = kind
    return tuple(extents)


def _parted(layout: LinearLayout, axis: int) -> tuple[LinearLayout, dict[str, list[int]]]:
    """The places of a layout along the other dimensions, and along ``axis``."""
    if not 0 <= axis < layout.rank:
        raise ReductionError(f"a reduction along dimension {axis} of a tensor of rank {layout.rank}")
    return layout.drop_dim(axis), {name: [point[axis] for point in points] for name, points in layout.bases.items()}


def _mixed(layout: LinearLayout, axis: int) -> ReductionError:
    return ReductionError(
        f"a reduction along dimension {axis} of {layout}: the place of a lane along the dimension "
        "depends on its place along others; convert the layout to a blocked one"
    )


def _groups(others: Sequence[int], along: Sequence[int]) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
    """The registers of each group, and the register bits that number the groups."""
    span = Span()
    bits = [bit for bit, basis in enumerate(others) if span.add(basis)]
    number = {point: group for group, point in enumerate(span_values([others[bit] for bit in bits]))}
    members: list[dict[int, int]] = [{} for _ in number]
    for register, (point, place) in enumerate(zip(span_values(others), span_values(along), strict=True)):
        members[number[point]].setdefault(place, register)
    return tuple(tuple(found[place] for place in sorted(found)) for found in members), bits


def _steps(others: Sequence[int], along: Sequence[int], seen: Span) -> tuple[int, ...]:
    """Masks that stay in place along the other dimensions and reach elements that were not seen, which they now are.
    Apart from what was seen before, each reaches a leading bit of the coordinate that no other one reaches, in
    ascending order."""
    rows: dict[int, tuple[int, int]] = {}  # leading bit -> (step along the dimension, mask)
    for mask in sorted(kernel(others), key=lambda mask: combine(along, mask)):
        row = seen.reduce(combine(along, mask))[0], mask
        for lead, found in rows.items():
            row = _without(row, lead, found)
        if row[0]:
            lead = row[0].bit_length()
            rows = {other: _without(found, lead, row) for other, found in rows.items()}
            rows[lead] = row
    for step, _ in rows.values():
        seen.add(step)
    return tuple(rows[lead][1] for lead in sorted(rows))


def _without(row: tuple[int, int], lead: int, other: tuple[int, int]) -> tuple[int, int]:
    return (row[0] ^ other[0], row[1] ^ other[1]) if row[0] >> lead - 1 & 1 else row


def _first_lane(places: Mapping[str, Sequence[int]], lane_masks: Sequence[int], own: Span) -> LinearLayout:
    """The lane that a group's partner with the lowest coordinates is. ``places``: of groups, lanes and warps along the
    dimension; ``own``: the steps between the elements that a lane combines by itself."""
    leads = [own.reduce(combine(places[LANE], mask))[0].bit_length() - 1 for mask in lane_masks]

    def toward_first(place: int) -> int:
        rest, _ = own.reduce(place)
        return combine(lane_masks, sum((rest >> lead & 1) << bit for bit, lead in enumerate(leads)))

    inputs = {name: [toward_first(place) for place in found] for name, found in places.items()}
    inputs[LANE] = [mask ^ 1 << bit for bit, mask in enumerate(inputs[LANE])]
    return LinearLayout.from_flat(inputs, (1 << len(inputs[LANE]),))


def _stored_by_first(first_lane: LinearLayout, duplicate_lanes: int) -> bool:
    """Whether the lanes that store a partial result are the first ones, each for itself."""
    inputs = first_lane.inputs
    stays = all(mask in (0, 1 << bit) for bit, mask in enumerate(inputs[LANE]))
    moved = sum(1 << bit for bit, mask in enumerate(inputs[LANE]) if not mask)
    return stays and not any((*inputs[REGISTER], *inputs[WARP])) and not moved & ~duplicate_lanes


def _across_warps(
    registers: Mapping[str, Sequence[int]],
    places: Mapping[str, Sequence[int]],
    combined: Sequence[int],
    steps: Sequence[int],
    axis_bits: int,
    other_bits: int,
    element_bytes: tuple[int, ...],
    scratch_bytes: int,
) -> PartialResults:
    """Offsets: the place along the other dimensions in the low bits, which partial result in the high ones.

    ``registers``: places along the other dimensions of groups, lanes and warps; ``places``: their places along the
    axis. ``combined``, ``steps``: the steps along the axis within a partial result, and between partial results.
    """
    functionals = _rounds(registers, len(steps), other_bits, sum(element_bytes), scratch_bytes)
    kept = other_bits - len(functionals)
    low = (1 << kept) - 1
    partial = _partial(combined, steps, axis_bits)

    # Groups that are stored together come first, then lanes: an access is wide, and meets each bank once.
    vectors = [
        basis
        for basis, place in zip(registers[REGISTER], places[REGISTER], strict=True)
        if not partial(place) and not any(parity(f & basis) for f in functionals)
    ]
    vectors = vectors[: (VECTOR_BYTES // max(element_bytes)).bit_length() - 1]
    span = Span()
    inside = [
        vector
        for vector in [*vectors, *registers[LANE], *registers[WARP], *annihilator(functionals, other_bits)]
        if span.add(vector)
    ]
    coordinates = inverse([*inside, *dual(functionals, other_bits)], other_bits)
    point = {name: [combine(coordinates, basis) for basis in bases] for name, bases in registers.items()}
    width = _width(point, len(vectors))
    shape = (1 << kept + len(steps),)
    store = LinearLayout.from_flat(
        {
            name: [basis & low | partial(place) << kept for basis, place in zip(bases, places[name], strict=True)]
            for name, bases in point.items()
        },
        shape,
    )
    load = LinearLayout.from_flat(
        {
            PARTIAL: [1 << kept + bit for bit in range(len(steps))],
            **{name: [basis & low for basis in bases] for name, bases in point.items()},
        },
        shape,
    )
    rounds: list[list[int]] = [[] for _ in range(1 << len(functionals))]
    for place, group in sorted((place, group) for group, place in enumerate(span_values(point[REGISTER]))):
        rounds[place >> kept].append(group)
    duplicates = store.free_masks()
    return PartialResults(
        tuple(map(tuple, rounds)), store, load, 1 << len(steps), width, shape[0], duplicates[LANE], duplicates[WARP]
    )


def _rounds(
    registers: Mapping[str, Sequence[int]], step_bits: int, other_bits: int, bytes_each: int, scratch_bytes: int
) -> list[int]:
    """Functionals along the other dimensions that number the rounds: they vanish on what lanes and warps hold."""
    free = annihilator([*registers[LANE], *registers[WARP]], other_bits)
    room = (scratch_bytes // bytes_each).bit_length() - 1 - step_bits
    round_bits = max(0, other_bits - room)
    if round_bits > len(free):
        raise ReductionError(
            f"a reduction across warps needs workgroup memory for at least "
            f"{1 << other_bits + step_bits - len(free)} elements of {bytes_each} bytes, but "
            f"owns {scratch_bytes} bytes"
        )
    return free[len(free) - round_bits :]


def _partial(combined: Sequence[int], steps: Sequence[int], axis_bits: int) -> Callable[[int], int]:
    """A place along the axis → the number of its partial result: functionals that vanish within one, dual to the steps
    between them."""
    outside = annihilator(combined, axis_bits)
    pairing = [sum(parity(f & step) << bit for bit, step in enumerate(steps)) for f in outside]
    chosen = [combine(outside, mask) for mask in inverse(pairing, len(steps))]
    return lambda place: sum(parity(f & place) << bit for bit, f in enumerate(chosen))


def _width(point: Mapping[str, Sequence[int]], most: int) -> int:
    """Groups that lie at consecutive offsets, where the first ``most`` bits of an offset are groups' own: those bits
    that no lane, warp or other group sets."""
    single = {1 << bit for bit in range(most)}
    others = [basis for name, bases in point.items() for basis in bases if name != REGISTER or basis not in single]
    width = 1 << most
    while any(basis % width for basis in others):
        width //= 2
    return width
