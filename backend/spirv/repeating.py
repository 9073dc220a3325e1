"""Computes cheap integers again behind barriers, where they would otherwise be kept across.

On Mesa's CPU driver a value that lives across a barrier costs compile time: a slot in the coroutine's frame, and the
two shuffles that keep LLVM from computing it again in its own way (anchors.py). Addresses and masks of a tile are
hundreds of such values, made of a few that live across anyway: the lane, the subgroup, arguments. So their arithmetic
is repeated, once for each stretch between barriers in which it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import opcodes as op
from .encode import Instruction
from .grammar import id_places, ids
from .module import ModuleBuilder
from .stretches import Stretches

#: Integer arithmetic, comparisons and selections: exact wherever they are computed, and without decorations.
_ARITHMETIC = frozenset(range(op.ConvertFToU, op.BitCount + 1)) - {op.ConvertUToPtr, op.UMulExtended, op.SMulExtended}
_INTEGERS = frozenset({"bool", "int"})

#: Instructions that may be repeated for one value.
LONGEST = 8


class _Scopes:
    """What was repeated where, as far as it dominates the current place."""

    def __init__(self) -> None:
        self._merges: list[int] = []
        self._known: list[dict[tuple[int, int], int]] = [{}]

    def open(self, merge: int) -> None:
        """A selection or loop begins that ends at the block ``merge``."""
        self._merges.append(merge)
        self._known.append({})

    def enter(self, label: int) -> None:
        """A block begins."""
        if self._merges and label == self._merges[-1]:
            self._merges.pop()
            self._known.pop()
        elif self._merges:
            self._known[-1] = {}  # another block of the construct: the one before need not dominate it

    def find(self, key: tuple[int, int]) -> int | None:
        return next((known[key] for known in self._known if key in known), None)

    def add(self, key: tuple[int, int], value: int) -> None:
        self._known[-1][key] = value


class Values:
    """What is known of the values of a function that are cheap to compute again.

    ``definitions``: the instructions of values that may be repeated, which take at most LONGEST instructions from
    values that may not. ``anchored``: values that may be anchored (anchors.py). ``home``: the stretch of each value of
    both. ``uses``: how many operands each is, of phis apart (they are in ``joined``). ``far``: the places of
    instructions that use one of another stretch.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        body: list[Instruction],
        operands: list[Sequence[int]],
        of: list[int],
        anchored: frozenset[int],
        scalars: frozenset[str],
    ) -> None:
        """One walk over ``body``, with the ``operands`` of each instruction that are ids, and the stretch that each is
        in. Results of the opcodes ``anchored`` and of ``scalars`` may be anchored outside of selections. Where a value
        would take more than LONGEST, the longest of its operands may not be repeated: long ones are scalars of the
        kernel, which many values share."""
        self.home: dict[int, int] = {}
        self.definitions: dict[int, Instruction] = {}
        self.uses: dict[int, int] = {}
        self.joined: set[int] = set()
        self.far: list[int] = []
        self.anchored: set[int] = set()
        home, uses, definitions, far = self.home, self.uses, self.definitions, self.far
        integers = {type_id for type_id, (kind, _) in module.kinds.items() if kind in _INTEGERS}
        others = {type_id for type_id, (kind, _) in module.kinds.items() if kind in scalars}
        type_of = module.type_of
        lengths: dict[int, int] = {}
        merges: list[int] = []
        for place, (instruction, values, stretch) in enumerate(zip(body, operands, of, strict=True)):
            opcode = instruction[0]
            if opcode == op.Phi:
                self.joined.update(values)
                continue
            crosses = False
            for value in values:
                at = home.get(value)
                if at is not None:
                    uses[value] += 1
                    if at != stretch:
                        crosses = True
            if crosses:
                far.append(place)
            if opcode not in anchored:
                if opcode == op.SelectionMerge:
                    merges.append(instruction[3])
                elif opcode == op.Label and merges and merges[-1] == instruction[2]:
                    merges.pop()
                continue
            type_id, result = instruction[1], instruction[2]
            if type_id in others and not merges:
                self.anchored.add(result)
                home[result], uses[result] = stretch, 0
            if type_id not in integers or opcode not in _ARITHMETIC:
                continue
            if not all([type_of.get(value, 0) in integers for value in values]):
                continue
            distinct = set(values)
            length = 1 + sum([lengths.get(value, 0) for value in distinct])
            while length > LONGEST:
                longest = max(distinct, key=lambda value: lengths.get(value, 0))
                length -= lengths.pop(longest)
                del definitions[longest]
            definitions[result], lengths[result] = instruction, length
            home[result], uses[result] = stretch, 0


@dataclass
class Repeated:
    """A body in which values are repeated. ``late``: the instructions that still take values of another stretch, each
    with its own. ``gone``: results that nothing uses any more."""

    body: list[Instruction] = field(default_factory=list)
    late: list[tuple[Instruction, int]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)


def repeat_behind_barriers(
    module: ModuleBuilder, body: list[Instruction], stretches: Stretches, known: Values
) -> Repeated:
    """``body``, the instructions of a function without any that nothing uses, with such integers computed where they
    are used."""
    definitions, home, uses = known.definitions, known.home, known.uses
    found = Repeated()
    result, late = found.body, found.late
    scopes = _Scopes()
    unused: list[int] = []
    #: The instructions of ``definitions`` in the body that take something repeated now.
    replaced: dict[int, Instruction] = {}

    def missing(value: int, stretch: int, wanted: dict[int, None]) -> None:
        """Adds what must be repeated for ``value`` to ``wanted``, operands first."""
        if value not in definitions or home[value] == stretch or value in wanted:
            return
        if scopes.find((value, stretch)) is None:
            for at in id_places(definitions[value]):
                missing(definitions[value][at], stretch, wanted)
            wanted[value] = None

    def here(value: int, stretch: int) -> int:
        copy = scopes.find((value, stretch)) if value in definitions and home[value] != stretch else None
        return value if copy is None else copy

    def drop(value: int) -> None:
        """Notes that one use of ``value`` went."""
        if value in definitions:
            uses[value] -= 1
            if not uses[value]:
                unused.append(value)

    def repeat(instruction: Instruction, stretch: int) -> None:
        """Makes ``instruction`` take what is computed in its own stretch."""
        for at in id_places(instruction):
            value = instruction[at]
            if home.get(value, stretch) == stretch:
                continue
            if value not in definitions:
                late.append((instruction, stretch))
                continue
            wanted: dict[int, None] = {}
            missing(value, stretch, wanted)
            for one in wanted:
                copy = list(definitions[one])
                for inner in id_places(copy):
                    taken = copy[inner] = here(copy[inner], stretch)
                    if taken in definitions:
                        uses[taken] += 1
                    elif home.get(taken, stretch) != stretch:
                        late.append((copy, stretch))
                copy[2] = module.id()
                module.type_of[copy[2]] = copy[1]
                definitions[copy[2]], home[copy[2]], uses[copy[2]] = copy, stretch, 0
                result.append(copy)
                scopes.add((one, stretch), copy[2])
            if instruction[2] in definitions and instruction[2] not in replaced:
                replaced[instruction[2]], definitions[instruction[2]] = instruction, list(instruction)
            instruction[at] = here(value, stretch)
            uses[instruction[at]] += 1
            drop(value)

    done = 0
    for place in sorted({*stretches.structure, *known.far}):
        result += body[done:place]
        instruction, stretch, done = body[place], stretches.of[place], place
        if instruction[0] == op.Label:
            scopes.enter(instruction[2])
        elif instruction[0] in (op.SelectionMerge, op.LoopMerge):
            # It comes right before the branch: what the branch takes is repeated before both.
            repeat(body[place + 1], stretches.of[place + 1])
            scopes.open(instruction[3])
        else:
            repeat(instruction, stretch)
    result += body[done:]
    gone = found.gone
    while unused:
        value = unused.pop()
        if not uses[value] and value not in gone and value not in known.joined:
            gone.add(value)
            for operand in ids(replaced.get(value) or definitions[value]):
                drop(operand)
    return found
