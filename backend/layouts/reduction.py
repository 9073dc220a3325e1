"""How to reduce a tensor along one dimension: decided by layout algebra alone, before anything is emitted.

Three steps, each of which may be empty: registers of a lane are combined, then lanes of a subgroup (by exchanging
with the lane whose number differs in a mask), then subgroups (through workgroup memory). Elements that several
registers, lanes or subgroups hold are combined once.

Registers are combined in ascending order of their coordinate along the dimension, and so are the subgroups' parts; but
lanes may hold interleaved parts, so the combination must be commutative as well as associative, as upstream demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
    the other. ``across_warps``: the step through workgroup memory, or None. ``results[i]``: the group that result
    register i takes. ``result``: the layout of the result, its registers numbered as in a slice encoding."""

    groups: tuple[tuple[int, ...], ...]
    lane_masks: tuple[int, ...]
    across_warps: PartialResults | None
    results: tuple[int, ...]
    result: LinearLayout


@lru_cache(maxsize=512)
def plan_reduction(
    layout: LinearLayout, axis: int, element_bytes: tuple[int, ...], scratch_bytes: int = 0
) -> ReductionPlan:
    """How to reduce tensors of ``layout`` along ``axis``.

    ``element_bytes``: size in memory of an element of each operand. ``scratch_bytes``: workgroup memory that the
    operation owns. Raises ReductionError for a layout in which a lane's place along ``axis`` depends on its place along
    other dimensions, and where ``scratch_bytes`` does not suffice.
    """
    if not 0 <= axis < layout.rank:
        raise ReductionError(f"a reduction along dimension {axis} of a tensor of rank {layout.rank}")
    others = layout.drop_dim(axis)
    along = {name: [point[axis] for point in points] for name, points in layout.bases.items()}

    groups, group_bits = _groups(others.inputs[REGISTER], along[REGISTER])
    # ``seen``: the steps along the axis whose elements a lane has combined so far.
    seen = Span(combine(along[REGISTER], mask) for mask in kernel(others.inputs[REGISTER]))
    lane_masks = _steps(others.inputs[LANE], along[LANE], seen)
    combined = seen.basis()
    warp_masks = _steps(others.inputs[WARP], along[WARP], seen)
    axis_bits = layout.shape[axis].bit_length() - 1
    if seen.rank != axis_bits:
        raise ReductionError(
            f"a reduction along dimension {axis} of {layout}: the place of a lane along the dimension "
            "depends on its place along others; convert the layout to a blocked one"
        )

    registers = {
        REGISTER: [others.inputs[REGISTER][bit] for bit in group_bits],
        LANE: others.inputs[LANE],
        WARP: others.inputs[WARP],
    }
    across = None
    if warp_masks:
        places = {REGISTER: [along[REGISTER][bit] for bit in group_bits], LANE: along[LANE], WARP: along[WARP]}
        steps = [combine(along[WARP], mask) for mask in warp_masks]
        across = _across_warps(
            registers, places, combined, steps, axis_bits, others.output_bits, element_bytes, scratch_bytes
        )
    result = others.without_zeros(REGISTER)
    group_of = {point: group for group, point in enumerate(span_values(registers[REGISTER]))}
    return ReductionPlan(
        groups, lane_masks, across, tuple(group_of[point] for point in span_values(result.inputs[REGISTER])), result
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
    """Masks that stay in place along the other dimensions and reach elements that were not seen, which they now are."""
    masks = sorted(kernel(others), key=lambda mask: combine(along, mask))
    return tuple(mask for mask in masks if seen.add(combine(along, mask)))


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
