"""Conversions within subgroups: shuffles between lanes, and exchanges of registers before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, combine, kernel, span_values
from .linear import LinearLayout


@dataclass(frozen=True)
class Exchange:
    """Registers u and ``u ^ register_xor`` change places where the parity of
    ``(lane & lane_mask)`` plus that of ``(warp & warp_mask)`` is odd."""

    register_xor: int
    lane_mask: int
    warp_mask: int


@dataclass(frozen=True)
class Shuffle:
    """Every lane offers its register ``register`` (after the exchanges before) and reads that of the lane
    ``lane_source(lane, warp) ^ lane_xor``."""

    register: int
    lane_xor: int


@dataclass(frozen=True)
class SubgroupShuffle:
    """Three steps. (1) Apply ``before`` to the source registers, one after the other. (2) Do each of ``shuffles``; the
    value of shuffle ``values[v]`` is intermediate register v. (3) Apply ``after`` to the intermediate registers; result
    register i is intermediate register i, for i below ``results`` (there may be more intermediate registers).

    ``lane_source``: inputs lane and warp, output one lane number. A shuffle is not needed where ``local`` is true and
    its ``lane_xor`` is 0: the value is the lane's own.
    """

    before: tuple[Exchange, ...]
    shuffles: tuple[Shuffle, ...]
    values: tuple[int, ...]
    lane_source: LinearLayout
    after: tuple[Exchange, ...]
    results: int

    @property
    def local(self) -> bool:
        """Whether ``lane_source`` is the lane's own number."""
        bases = self.lane_source.inputs
        return not any(bases[WARP]) and all(basis == 1 << bit for bit, basis in enumerate(bases[LANE]))


def plan_shuffles(source: LinearLayout, result: LinearLayout) -> SubgroupShuffle | None:
    """Lanes and registers: possible where the result of each warp is held by that warp.

    The place of an element in the source is a vector: its register in the low bits, its lane above them.
    """
    register_bits, lane_bits = (len(source.inputs[name]) for name in (REGISTER, LANE))
    held = [*source.inputs[REGISTER], *source.inputs[LANE]]
    place = _places(source, result, held)
    if place is None:
        return None
    copies = kernel(held)
    _prefer_own_lane(place, copies, register_bits)
    turns = _turns(place, copies, register_bits)
    offer = _offers(turns.chosen, register_bits, lane_bits)

    def offered_register(vector: int) -> int:
        return vector & ((1 << register_bits) - 1) ^ combine(offer, vector >> register_bits)

    lane_source = LinearLayout.from_flat(
        {
            LANE: [vector >> register_bits for vector in turns.chosen],
            WARP: [vector >> register_bits for vector in place[WARP]],
        },
        (1 << lane_bits,),
    )
    wanted = [Shuffle(offered_register(vector), vector >> register_bits) for vector in span_values(turns.registers)]
    shuffles = tuple(dict.fromkeys(wanted))
    index = {shuffle: position for position, shuffle in enumerate(shuffles)}
    return SubgroupShuffle(
        _exchanges(offer, [offered_register(vector) for vector in place[WARP]]),
        shuffles,
        tuple(index[shuffle] for shuffle in wanted),
        lane_source,
        _exchanges(turns.rotation, []),
        result.input_size(REGISTER),
    )


#: For each bit of the result's register, lane and warp: the place in the source of the element that it leads to.
Places = dict[str, list[int]]


def _places(source: LinearLayout, result: LinearLayout, held: Sequence[int]) -> Places | None:
    """None if a warp does not hold what the result asks of it. ``held``: by the bits of a place."""
    span = Span(held)
    place: Places = {REGISTER: [], LANE: [], WARP: []}
    for name, places in place.items():
        for bit, basis in enumerate(result.inputs[name]):
            found = span.solve(basis ^ source.inputs[WARP][bit] if name == WARP else basis)
            if found is None:
                return None
            places.append(found)
    return place


def _prefer_own_lane(place: Places, copies: Sequence[int], register_bits: int) -> None:
    """Copies within the source give freedom: adding a member of ``copies`` to a place changes nothing. If a copy is
    in the own lane, it is taken."""
    copy_lanes = Span(copy >> register_bits for copy in copies)
    for name in (REGISTER, WARP):
        for bit, vector in enumerate(place[name]):
            mask = copy_lanes.solve(vector >> register_bits)
            if mask:
                place[name][bit] = vector ^ combine(copies, mask)


@dataclass(frozen=True)
class _Turns:
    """In one shuffle all lanes read, for intermediate register t, result register t ^ rotation(lane).

    ``registers``: the places of the intermediate registers' bits. For each bit of the lane, ``chosen``: the place that
    it adds to what is read, ``rotation``: what it adds to the number of the result register.
    """

    registers: list[int]
    chosen: list[int]
    rotation: list[int]


def _turns(place: Places, copies: Sequence[int], register_bits: int) -> _Turns:
    """The rotation is chosen so that the register a lane must offer depends on its own number alone, whoever reads
    it."""
    turns = _Turns(list(place[REGISTER]), [], [])
    registers, chosen = turns.registers, turns.chosen
    copy_lanes = Span(copy >> register_bits for copy in copies)
    all_copies = (1 << len(copies)) - 1
    lanes = Span()
    agreed = Span()

    def acceptable(vector: int) -> bool:
        return vector >> register_bits not in lanes or vector in agreed

    for bit, vector in enumerate(place[LANE]):
        choices = []
        own = copy_lanes.solve(vector >> register_bits ^ 1 << bit)
        if own is not None:
            choices.append((vector ^ combine(copies, own), 0))
        consistent = Span([*copies, *chosen]).solve(vector)
        if consistent is not None:
            choices.append((vector ^ combine(copies, consistent & all_copies), 0))
        choices.append((vector, 0))
        choices += [(vector ^ register, 1 << index) for index, register in enumerate(registers)]
        choices += [(vector ^ copy, 0) for copy in copies]
        pick = next((choice for choice in choices if acceptable(choice[0])), None)
        if pick is None:
            found = Span([*registers, *copies, *chosen]).solve(vector)
            if found is None:  # one more intermediate register bit: the reader selects
                registers.append(vector)
                pick = (0, 1 << (len(registers) - 1))
            else:
                turn = found & ((1 << len(registers)) - 1)
                copy = combine(copies, found >> len(registers) & all_copies)
                pick = (vector ^ combine(registers, turn) ^ copy, turn)
        if lanes.add(pick[0] >> register_bits):
            agreed.add(pick[0])
        chosen.append(pick[0])
        turns.rotation.append(pick[1])
    return turns


def _offers(chosen: Sequence[int], register_bits: int, lane_bits: int) -> list[int]:
    """For each bit m of a lane's number, how the register that the lane offers depends on it."""
    independent: list[int] = []
    seen = Span()
    for vector in chosen:
        if seen.add(vector >> register_bits):
            independent.append(vector)
    lane_basis = Span([vector >> register_bits for vector in independent] + [1 << bit for bit in range(lane_bits)])
    offered = [vector & ((1 << register_bits) - 1) for vector in independent] + [0] * lane_bits
    offer = []
    for bit in range(lane_bits):
        mask = lane_basis.solve(1 << bit)
        assert mask is not None
        offer.append(combine(offered, mask))
    return offer


def _exchanges(lane_columns: Sequence[int], warp_columns: Sequence[int]) -> tuple[Exchange, ...]:
    """Exchanges that together move register u to u plus the columns of the set bits of lane and warp."""
    columns = [*lane_columns, *warp_columns]
    span = Span()
    basis: list[int] = []
    masks: list[int] = []
    for bit, column in enumerate(columns):
        if column and column not in span:
            span = Span([*basis, column])
            basis.append(column)
            masks.append(0)
        found = span.solve(column)
        assert found is not None
        for position in range(len(basis)):
            if found >> position & 1:
                masks[position] |= 1 << bit
    split = len(lane_columns)
    return tuple(
        Exchange(vector, mask & ((1 << split) - 1), mask >> split) for vector, mask in zip(basis, masks, strict=True)
    )
