"""Conversions through workgroup memory: where elements lie in it, and in which rounds they go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .distributed import LANE, REGISTER, WARP
from .gf2 import Span, annihilator, combine, dual, intersection, inverse, parity, span_values
from .linear import LinearLayout

#: Shared memory is served in rows of 32 banks of 4 bytes, at most 16 bytes a lane.
ROW_BYTES = 128
BANK_BYTES = 4
VECTOR_BYTES = 16


#: Registers whose elements are stored, or loaded, by one instruction.
Vectors = tuple[tuple[int, ...], ...]


class ConversionError(ValueError):
    """A conversion that cannot be done in the scratch memory given."""


@dataclass(frozen=True)
class SharedRound:
    """One use of the scratch buffer: ``stores``, a barrier, ``loads`` by every lane, and a barrier before the next.

    Each entry is a vector: source registers (``stores``) or result registers (``loads``) whose elements lie at
    consecutive offsets, beginning with that of the first register, which is a multiple of the vector's length.
    ``stores`` are the stores of lanes whose ``ThroughShared.turn`` is 0; see ``ThroughShared.stores``.
    """

    stores: Vectors
    loads: Vectors


@dataclass(frozen=True)
class ThroughShared:
    """``store`` and ``load``: (register, lane, warp) to an element offset in the scratch buffer, below ``size``.

    ``store`` is over source registers and ``load`` over result registers; a register counts in its own round only.
    ``store_width`` and ``load_width``: elements of each vector. ``results[i]``: the register whose loaded value result
    register i takes (i itself unless it is a duplicate). A lane whose number meets ``duplicate_lanes``, or whose warp
    number meets ``duplicate_warps``, holds only copies of what others store and need not store. ``turn``: (lane, warp)
    to what is added, by exclusive or, to the number of the round in which a lane stores a register; 0 for all where
    the register alone says so.
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
    turn: LinearLayout

    @property
    def takes_turns(self) -> bool:
        """True if lanes store the same register in different rounds."""
        return any(basis for bases in self.turn.inputs.values() for basis in bases)

    def stores(self, number: int) -> list[tuple[int, Vectors]]:
        """What is stored in a round: (turn, vectors) for each value of ``turn`` whose lanes store something."""
        turns = sorted({*span_values([basis for bases in self.turn.inputs.values() for basis in bases])})
        return [(turn, self.rounds[number ^ turn].stores) for turn in turns if self.rounds[number ^ turn].stores]


def plan_rounds(source: LinearLayout, result: LinearLayout, element_bytes: int, scratch_bytes: int) -> ThroughShared:
    """Offsets that give wide accesses and few bank conflicts, in as few rounds as the scratch allows.

    The tensor is split into a direct sum: vector (the low bits of the offset), bank, segment, and round. The bits of
    the vector and of the round are to depend on the register alone, that is, be functionals that vanish on what lanes
    and warps hold. If that gives too few rounds, the further bits vanish on what lanes and warps of the result hold:
    lanes of the source take turns in storing then, whole warps where that suffices, because they are cheaper to branch
    on.
    """
    bits = source.output_bits
    fits = scratch_bytes // element_bytes
    fixed = [*source.inputs[LANE], *source.inputs[WARP], *result.inputs[LANE], *result.inputs[WARP]]
    free = annihilator(fixed, bits)
    shared_registers = intersection(source.inputs[REGISTER], result.inputs[REGISTER])
    pairs = _pair(shared_registers, free, bits)
    round_bits = max(0, bits - (fits.bit_length() - 1)) if fits else bits + 1
    by_turns = _turns(source, result, [*free, *(f for _, f in pairs)])
    by_register = min(round_bits, len(pairs) + len(free))
    if round_bits > by_register + len(by_turns):
        raise ConversionError(
            f"a layout conversion of {1 << bits} elements of {element_bytes} bytes needs workgroup memory for at least "
            f"{1 << bits - by_register - len(by_turns)} of them, but owns {scratch_bytes} bytes"
        )
    vector_limit = max(VECTOR_BYTES // element_bytes, 1).bit_length() - 1
    from_free = min(by_register, len(free))
    unpaired = len(pairs) - (by_register - from_free)
    round_functionals = [f for _, f in pairs[unpaired:]] + free[:from_free] + by_turns[: round_bits - by_register]
    common = pairs[:unpaired][:vector_limit]

    # Further bits that are registers of one side and lanes of the other widen that side's accesses alone.
    taken = [f for _, f in common]
    wide_source = _one_sided(source, result, common, round_functionals, vector_limit)
    wide_result = _one_sided(result, source, common, round_functionals, vector_limit)
    extra = wide_source if len(wide_source) >= len(wide_result) else wide_result
    widens_source = extra is wide_source
    vectors = [*common, *extra]
    taken += [f for _, f in extra]

    inner = annihilator([*taken, *round_functionals], bits)
    store_log = len(common) + (len(extra) if widens_source else 0)
    load_log = len(common) + (0 if widens_source else len(extra))
    rest = dual([*taken, *round_functionals], bits)[len(taken) :]
    apart = [*vectors, *zip(rest, round_functionals, strict=True)]
    source_tile = _tile(source, apart, element_bytes << store_log)
    result_tile = _tile(result, apart, element_bytes << load_log)
    bank_bits = min(len(inner), max(0, (ROW_BYTES // (element_bytes << len(vectors))).bit_length() - 1))
    segment = _segment(source_tile, result_tile, inner, len(inner) - bank_bits)
    spanned = Span(segment)
    bank = [vector for vector in [*source_tile, *result_tile, *inner] if spanned.add(vector)]
    coordinates = inverse([v for v, _ in vectors] + bank + segment + rest, bits)

    kept = bits - round_bits
    mask = (1 << kept) - 1
    stores, store, turn = _side(source, coordinates, kept, round_bits, store_log)
    loads, load, _ = _side(result, coordinates, kept, round_bits, load_log)
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
        turn=turn,
    )


def _turns(source: LinearLayout, result: LinearLayout, taken: Sequence[int]) -> list[int]:
    """Functionals beyond the span of ``taken`` that vanish on what lanes and warps of the result hold: first those that
    vanish on what lanes of the source hold."""
    fixed = [*result.inputs[LANE], *result.inputs[WARP]]
    bits, span = result.output_bits, Span(taken)
    return [f for extra in (source.inputs[LANE], ()) for f in annihilator([*fixed, *extra], bits) if span.add(f)]


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


def _one_sided(
    wide: LinearLayout, other: LinearLayout, common: Sequence[tuple[int, int]], rounds: Sequence[int], limit: int
) -> list[tuple[int, int]]:
    """Pairs (vector, functional) of bits that are registers of ``wide`` and lanes of ``other``, to ``limit`` in all.

    The functionals of ``common`` vanish on lanes, so on these vectors; the functionals of ``rounds`` have to.
    """
    room = limit - len(common)
    if not room:
        return []
    bits = wide.output_bits
    functionals = annihilator([*wide.inputs[LANE], *wide.inputs[WARP], *(v for v, _ in common)], bits)
    candidates = intersection(wide.inputs[REGISTER], other.inputs[LANE])
    if any(parity(f & vector) for f in rounds for vector in candidates):
        candidates = intersection(candidates, annihilator(rounds, bits))
    return _pair(candidates, functionals, room)


def _tile(layout: LinearLayout, apart: Sequence[tuple[int, int]], access_bytes: int) -> list[int]:
    """What the lanes that are served together hold, without the bits of the vector and of the round."""
    at_once = 5 - max(0, (access_bytes // BANK_BYTES).bit_length() - 1)
    found = []
    for basis in layout.inputs[LANE][:at_once]:
        for vector, functional in apart:
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


def _side(
    layout: LinearLayout, coordinates: Sequence[int], kept: int, round_bits: int, width_log: int
) -> tuple[list[Vectors], LinearLayout, LinearLayout]:
    """The vectors of registers of each round, the offsets, and the turns, of one side of a conversion."""
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
    turns = {name: [basis >> kept for basis in bases] for name, bases in inputs.items() if name != REGISTER}
    return rounds, offsets, LinearLayout.from_flat(turns, (1 << round_bits,))


def _representatives(layout: LinearLayout) -> tuple[int, ...]:
    """For each register, the first register that holds the same element."""
    first: dict[int, int] = {}
    return tuple(
        first.setdefault(point, register) for register, point in enumerate(span_values(layout.inputs[REGISTER]))
    )
