"""Computes cheap integers again behind barriers, where they would otherwise be kept across.

On Mesa's CPU driver a value that lives across a barrier costs compile time: a slot in the coroutine's frame, and the
two shuffles that keep LLVM from computing it again in its own way (anchors.py). Addresses and masks of a tile are
hundreds of such values, made of a few that live across anyway: the lane, the subgroup, arguments. So their arithmetic
is repeated, once for each stretch between barriers in which it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import opcodes as op
from .encode import Instruction
from .grammar import id_places, ids, ids_of_each
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


@dataclass
class _Repeatable:
    """Values that take at most LONGEST instructions from values that are not among them. ``definitions`` and ``home``:
    the instruction of each, and the stretch that it is in. ``uses``: how many operands each is, of phis apart (they are
    in ``joined``). ``far``: the places of instructions that may use one of another stretch."""

    definitions: dict[int, Instruction] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)
    far: list[int] = field(default_factory=list)


def repeat_behind_barriers(
    module: ModuleBuilder, body: list[Instruction], stretches: Stretches
) -> tuple[list[Instruction], bool]:
    """``body``, the instructions of a function without any that nothing uses, with such integers computed where they
    are used. Whether there were any."""
    known = _repeatable(module, body, stretches.of)
    definitions, home, uses = known.definitions, known.home, known.uses
    if not known.far:
        return body, False
    result: list[Instruction] = []
    scopes = _Scopes()
    unused: list[int] = []
    changed = False

    def missing(value: int, stretch: int, found: dict[int, None]) -> None:
        """Adds what must be repeated for ``value`` to ``found``, operands first."""
        if home.get(value, stretch) != stretch and value not in found and scopes.find((value, stretch)) is None:
            for at in id_places(definitions[value]):
                missing(definitions[value][at], stretch, found)
            found[value] = None

    def here(value: int, stretch: int) -> int:
        copy = scopes.find((value, stretch)) if home.get(value, stretch) != stretch else None
        return value if copy is None else copy

    def drop(value: int) -> None:
        """Notes that one use of ``value`` went."""
        if value in uses:
            uses[value] -= 1
            if not uses[value]:
                unused.append(value)

    def repeat(instruction: Instruction, stretch: int) -> None:
        """Makes ``instruction`` take what is computed in its own stretch."""
        nonlocal changed
        for at in id_places(instruction):
            value = instruction[at]
            if home.get(value, stretch) == stretch:
                continue
            found: dict[int, None] = {}
            missing(value, stretch, found)
            for one in found:
                copy = list(definitions[one])
                for inner in id_places(copy):
                    copy[inner] = here(copy[inner], stretch)
                    if copy[inner] in uses:
                        uses[copy[inner]] += 1
                copy[2] = module.id()
                module.type_of[copy[2]] = copy[1]
                result.append(copy)
                scopes.add((one, stretch), copy[2])
            instruction[at] = here(value, stretch)
            drop(value)
            changed = True

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
    gone: set[int] = set()
    while unused:
        value = unused.pop()
        if not uses[value] and value not in gone and value not in known.joined:
            gone.add(value)
            for operand in ids(definitions[value]):
                drop(operand)
    return [instruction for instruction in result if instruction[2] not in gone] if gone else result, changed


def _repeatable(module: ModuleBuilder, body: list[Instruction], of: list[int]) -> _Repeatable:
    """What may be repeated. Where a value would take more than LONGEST, the longest of its operands may not be: long
    ones are scalars of the kernel, which many values share."""
    integers = {type_id for type_id, (kind, _) in module.kinds.items() if kind in _INTEGERS}
    type_of = module.type_of
    found = _Repeatable()
    definitions, home, uses = found.definitions, found.home, found.uses
    lengths: dict[int, int] = {}
    for place, (instruction, operands, stretch) in enumerate(zip(body, ids_of_each(body), of, strict=True)):
        opcode = instruction[0]
        if opcode == op.Phi:
            found.joined.update(operands)
            continue
        far = False
        for value in operands:
            if value in home:
                uses[value] += 1
                far = far or home[value] != stretch
        if far:
            found.far.append(place)
        if opcode not in _ARITHMETIC or instruction[1] not in integers:
            continue
        if not all([type_of.get(value, 0) in integers for value in operands]):
            continue
        length = 1 + sum([lengths.get(value, 0) for value in set(operands)])
        while length > LONGEST:
            longest = max(set(operands), key=lambda value: lengths.get(value, 0))
            length -= lengths.pop(longest)
            del definitions[longest], home[longest], uses[longest]
        result = instruction[2]
        definitions[result], home[result], lengths[result], uses[result] = instruction, stretch, length, 0
    return found
