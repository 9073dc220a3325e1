"""How to change the layout of a tensor: decided by layout algebra alone, before anything is emitted.

``plan_conversion`` gives one of four plans, the first that is possible:

* ``Identity``: every register already holds its element.
* ``RegisterPermutation``: registers are renamed.
* ``SubgroupShuffle``: elements move between the lanes of a subgroup, never between subgroups.
* ``ThroughShared``: elements go through workgroup memory, in rounds that fit the scratch buffer.

Vectors here are row-major element indices of the tensor, added by exclusive or (see ``linear``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, annihilator, combine, dual, intersection, inverse, kernel, parity
from .linear import LinearLayout

#: Shared memory is served in rows of 32 banks of 4 bytes, at most 16 bytes a lane.
ROW_BYTES = 128
BANK_BYTES = 4
VECTOR_BYTES = 16


class ConversionError(ValueError):
    """A conversion that cannot be done in the scratch memory given."""


@dataclass(frozen=True)
class Identity:
    """Result register i is source register i."""


@dataclass(frozen=True)
class RegisterPermutation:
    """Result register i is source register ``sources[i]``, in every lane."""

    sources: tuple[int, ...]


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


@dataclass(frozen=True)
class SharedRound:
    """One use of the scratch buffer: ``stores`` by every lane, a barrier, ``loads``, and a barrier before the next.

    Each entry is a vector: source registers (``stores``) or result registers (``loads``) whose elements lie at
    consecutive offsets, beginning with that of the first register, which is a multiple of the vector's length.
    """

    stores: tuple[tuple[int, ...], ...]
    loads: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ThroughShared:
    """``store`` and ``load``: (register, lane, warp) to an element offset in the scratch buffer, below ``size``.

    ``store`` is over source registers and ``load`` over result registers; a register counts in its own round only.
    ``store_width`` and ``load_width``: elements of each vector. ``results[i]``: the register whose loaded value result
    register i takes (i itself unless it is a duplicate). A lane whose number meets ``duplicate_lanes``, or whose warp
    number meets ``duplicate_warps``, holds only copies of what others store and need not store.
    """

    rounds: tuple[SharedRound, ...]
    store: LinearLayout
    load: LinearLayout
    store_width: int
    load_width: int
    size: int
    results: tuple[int, ...]
    duplicate_lanes: int
    duplicate_warps: int


Moves = Identity | RegisterPermutation | SubgroupShuffle | ThroughShared


@lru_cache(maxsize=1024)
def plan_conversion(source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int = 0) -> Moves:
    """How each lane gets the registers of ``result`` from those of ``source``.

    ``element_bytes``: size of an element in memory. ``scratch_bytes``: workgroup memory that the operation owns
    (upstream's allocation; 0 where it has none). Raises ConversionError where workgroup memory is needed and
    ``scratch_bytes`` does not suffice, ValueError for layouts of different tensors or of different workgroups.
    """
    if source.size != result.size or not source.is_surjective:
        raise ValueError(f"no conversion from {source} to {result}: both must cover the same tensor")
    if any(source.input_size(name) != result.input_size(name) for name in (LANE, WARP)):
        raise ValueError(f"no conversion from {source} to {result}: lanes and warps must agree")
    return (
        _rename(source, result)
        or _shuffle(source, result)
        or _through_shared(source, result, element_bytes, scratch_bytes)
    )


def plan_through_shared(
    source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int
) -> ThroughShared | None:
    """The plan through ``scratch_bytes`` of workgroup memory, for a device on which plan_conversion's cheapest plan is
    not the cheapest; None where they do not suffice."""
    try:
        return _through_shared(source, result, element_bytes, scratch_bytes)
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


def span_values(columns: Sequence[int]) -> list[int]:
    """The combination of ``columns`` over the bits of 0, 1, 2, …"""
    values = [0]
    for column in columns:
        values += [value ^ column for value in values]
    return values


def _shuffle(source: LinearLayout, result: LinearLayout) -> SubgroupShuffle | None:
    """Lanes and registers: possible where the result of each warp is held by that warp.

    The place of an element in the source is a vector: its register in the low bits, its lane above them. ``place``
    holds such a vector for each bit of the result's register, lane and warp.
    """
    register_bits = len(source.inputs[REGISTER])
    lane_bits = len(source.inputs[LANE])
    low = (1 << register_bits) - 1
    held = [*source.inputs[REGISTER], *source.inputs[LANE]]
    span = Span(held)
    place: dict[str, list[int]] = {REGISTER: [], LANE: [], WARP: []}
    for name, places in place.items():
        for bit, basis in enumerate(result.inputs[name]):
            found = span.solve(basis ^ source.inputs[WARP][bit] if name == WARP else basis)
            if found is None:
                return None
            places.append(found)

    # Copies within the source give freedom: adding a member of ``copies`` to a place changes nothing.
    copies = kernel(held)
    copy_lanes = Span(copy >> register_bits for copy in copies)
    for name in (REGISTER, WARP):  # stay in the own lane where a copy is there
        for bit, vector in enumerate(place[name]):
            mask = copy_lanes.solve(vector >> register_bits)
            if mask:
                place[name][bit] = vector ^ combine(copies, mask)

    # In one shuffle all lanes read, for intermediate register t, result register t ^ rotation(lane). The rotation is
    # chosen so that the register a lane must offer depends on its own number alone, whoever reads it.
    registers = list(place[REGISTER])
    rotation: list[int] = []
    chosen: list[int] = []
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
            choices.append((vector ^ combine(copies, consistent & ((1 << len(copies)) - 1)), 0))
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
                pick = (
                    vector
                    ^ combine(registers, turn)
                    ^ combine(copies, found >> len(registers) & ((1 << len(copies)) - 1)),
                    turn,
                )
        if lanes.add(pick[0] >> register_bits):
            agreed.add(pick[0])
        chosen.append(pick[0])
        rotation.append(pick[1])

    # offer[m]: how the register that lane m offers depends on bit m of its number.
    independent: list[int] = []
    seen = Span()
    for vector in chosen:
        if seen.add(vector >> register_bits):
            independent.append(vector)
    lane_basis = Span([vector >> register_bits for vector in independent] + [1 << bit for bit in range(lane_bits)])
    offered = [vector & low for vector in independent] + [0] * lane_bits
    offer = []
    for bit in range(lane_bits):
        mask = lane_basis.solve(1 << bit)
        assert mask is not None
        offer.append(combine(offered, mask))

    def offered_register(vector: int) -> int:
        return vector & low ^ combine(offer, vector >> register_bits)

    before = _exchanges(offer, [offered_register(vector) for vector in place[WARP]])
    lane_source = LinearLayout.from_flat(
        {
            LANE: [vector >> register_bits for vector in chosen],
            WARP: [vector >> register_bits for vector in place[WARP]],
        },
        (1 << lane_bits,),
    )
    wanted = [Shuffle(offered_register(vector), vector >> register_bits) for vector in span_values(registers)]
    shuffles = tuple(dict.fromkeys(wanted))
    index = {shuffle: position for position, shuffle in enumerate(shuffles)}
    return SubgroupShuffle(
        before,
        shuffles,
        tuple(index[shuffle] for shuffle in wanted),
        lane_source,
        _exchanges(rotation, []),
        result.input_size(REGISTER),
    )


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


def _pair(candidates: Sequence[int], functionals: list[int], most: int) -> list[tuple[int, int]]:
    """At most ``most`` pairs (vector, functional), each functional 1 on its own vector and 0 on the others.

    Vectors are taken from the span of ``candidates``, in order. ``functionals`` loses those that were taken, and those
    that are left are 0 on every vector taken.
    """
    pairs: list[tuple[int, int]] = []
    for candidate in candidates:
        if len(pairs) == most:
            break
        for vector, functional in pairs:
            if parity(functional & candidate):
                candidate ^= vector
        taken = next((f for f in functionals if parity(f & candidate)), None)
        if taken is None:
            continue
        functionals.remove(taken)
        functionals[:] = [f ^ taken if parity(f & candidate) else f for f in functionals]
        pairs = [(v, f ^ taken if parity(f & candidate) else f) for v, f in pairs]
        pairs.append((candidate, taken))
    return pairs


def _through_shared(
    source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int
) -> ThroughShared:
    """Offsets that give wide accesses and few bank conflicts, in as few rounds as the scratch allows.

    The tensor is split into a direct sum: vector (the low bits of the offset), bank, segment, and round. The bits of
    the vector and of the round must depend on the register alone, that is, be functionals that vanish on what lanes
    and warps hold.
    """
    bits = source.output_bits
    fits = scratch_bytes // element_bytes
    fixed = [*source.inputs[LANE], *source.inputs[WARP], *result.inputs[LANE], *result.inputs[WARP]]
    free = annihilator(fixed, bits)
    shared_registers = intersection(source.inputs[REGISTER], result.inputs[REGISTER])
    pairs = _pair(shared_registers, free, bits)
    round_bits = max(0, bits - (fits.bit_length() - 1)) if fits else bits + 1
    if round_bits > len(pairs) + len(free):
        raise ConversionError(
            f"a layout conversion of {1 << bits} elements of {element_bytes} bytes needs workgroup memory for at least "
            f"{1 << bits - len(pairs) - len(free)} of them, but owns {scratch_bytes} bytes"
        )
    vector_limit = max(VECTOR_BYTES // element_bytes, 1).bit_length() - 1
    from_free = min(round_bits, len(free))
    from_pairs = round_bits - from_free
    round_functionals = [f for _, f in pairs[len(pairs) - from_pairs :]] + free[:from_free]
    common = pairs[: len(pairs) - from_pairs][:vector_limit]

    # Further bits that are registers of one side and lanes of the other widen that side's accesses alone.
    taken = [f for _, f in common]
    wide_source = _one_sided(source, result, common, vector_limit)
    wide_result = _one_sided(result, source, common, vector_limit)
    extra = wide_source if len(wide_source) >= len(wide_result) else wide_result
    widens_source = extra is wide_source
    vectors = [*common, *extra]
    taken += [f for _, f in extra]

    inner = annihilator([*taken, *round_functionals], bits)
    store_log = len(common) + (len(extra) if widens_source else 0)
    load_log = len(common) + (0 if widens_source else len(extra))
    source_tile = _tile(source, vectors, element_bytes << store_log)
    result_tile = _tile(result, vectors, element_bytes << load_log)
    bank_bits = min(len(inner), max(0, (ROW_BYTES // (element_bytes << len(vectors))).bit_length() - 1))
    segment = _segment(source_tile, result_tile, inner, len(inner) - bank_bits)
    spanned = Span(segment)
    bank = [vector for vector in [*source_tile, *result_tile, *inner] if spanned.add(vector)]
    rest = dual([*taken, *round_functionals], bits)[len(taken) :]
    coordinates = inverse([v for v, _ in vectors] + bank + segment + rest, bits)

    kept = bits - round_bits
    mask = (1 << kept) - 1
    stores, store = _side(source, coordinates, kept, round_bits, store_log)
    loads, load = _side(result, coordinates, kept, round_bits, load_log)
    duplicates = source.free_masks()  # without these bits every element is still held
    return ThroughShared(
        rounds=tuple(SharedRound(s, r) for s, r in zip(stores, loads, strict=True)),
        store=store,
        load=load,
        store_width=1 << store_log,
        load_width=1 << load_log,
        size=mask + 1,
        results=_representatives(result),
        duplicate_lanes=duplicates[LANE],
        duplicate_warps=duplicates[WARP],
    )


def _one_sided(
    wide: LinearLayout, other: LinearLayout, common: Sequence[tuple[int, int]], limit: int
) -> list[tuple[int, int]]:
    """Pairs (vector, functional) of bits that are registers of ``wide`` and lanes of ``other``, to ``limit`` in all.

    The functionals of ``common`` and of the rounds vanish on lanes, so on these vectors.
    """
    room = limit - len(common)
    if not room:
        return []
    functionals = annihilator([*wide.inputs[LANE], *wide.inputs[WARP], *(v for v, _ in common)], wide.output_bits)
    return _pair(intersection(wide.inputs[REGISTER], other.inputs[LANE]), functionals, room)


def _tile(layout: LinearLayout, vectors: Sequence[tuple[int, int]], access_bytes: int) -> list[int]:
    """What the lanes that are served together hold, without the bits of the vector."""
    at_once = 5 - max(0, (access_bytes // BANK_BYTES).bit_length() - 1)
    found = []
    for basis in layout.inputs[LANE][:at_once]:
        for vector, functional in vectors:
            if parity(functional & basis):
                basis ^= vector
        found.append(basis)
    return [basis for basis in found if basis]


def _segment(left: Sequence[int], right: Sequence[int], whole: Sequence[int], size: int) -> list[int]:
    """``size`` vectors of the span of ``whole``; their span meets the others as little as it can."""
    both = Span([*left, *right])
    outside = [vector for vector in whole if both.add(vector)]
    meet = intersection(left, right)
    only_left, only_right = _beyond(meet, left), _beyond(meet, right)
    crossed = [a ^ b for a, b in zip(only_left, only_right, strict=False)]
    chosen = Span()
    return [
        vector
        for vector in [*outside, *crossed, *only_left, *only_right, *whole]
        if chosen.rank < size and chosen.add(vector)
    ]


def _beyond(meet: Sequence[int], vectors: Sequence[int]) -> list[int]:
    """Members of ``vectors`` that extend ``meet`` to their span."""
    span = Span(meet)
    return [vector for vector in vectors if span.add(vector)]


Vectors = tuple[tuple[int, ...], ...]


def _side(
    layout: LinearLayout, coordinates: Sequence[int], kept: int, round_bits: int, width_log: int
) -> tuple[list[Vectors], LinearLayout]:
    """The vectors of registers of each round, and the offsets, of one side of a conversion."""
    mask = (1 << kept) - 1
    inputs = {name: [combine(coordinates, basis) for basis in bases] for name, bases in layout.inputs.items()}
    place = span_values(inputs[REGISTER])
    groups: list[dict[int, dict[int, int]]] = [{} for _ in range(1 << round_bits)]
    width = 1 << width_log
    for register, coordinate in enumerate(place):
        offset = coordinate & mask
        group = groups[coordinate >> kept].setdefault(offset >> width_log, {})
        group.setdefault(offset & (width - 1), register)  # the first of several that hold the same element
    rounds = [tuple(tuple(group[part] for part in range(width)) for group in found.values()) for found in groups]
    offsets = LinearLayout.from_flat(
        {name: [basis & mask for basis in bases] for name, bases in inputs.items()}, (1 << kept,)
    )
    return rounds, offsets


def _representatives(layout: LinearLayout) -> tuple[int, ...]:
    """For each register, the first register that holds the same element."""
    first: dict[int, int] = {}
    return tuple(
        first.setdefault(point, register) for register, point in enumerate(span_values(layout.inputs[REGISTER]))
    )
