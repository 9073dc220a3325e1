"""Computes cheap integers again behind barriers, where they would otherwise be kept across.

On Mesa's CPU driver a value that lives across a barrier costs compile time: a slot in the coroutine's frame, and the
two shuffles that keep LLVM from computing it again in its own way (anchors.py). Addresses and masks of a tile are
hundreds of such values, made of a few that live across anyway: the lane, the subgroup, arguments. So their arithmetic
is repeated, once for each stretch between barriers in which it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv import opcodes as op
from ..spirv.encode import Instruction
from ..spirv.grammar import id_places, ids
from ..spirv.module import ModuleBuilder
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


class Repeated:
    """A body in which values are repeated. ``late``: the instructions that still take values of another stretch, each
    with its own. ``gone``: results that nothing uses any more. ``scopes``: what was repeated where."""

    def __init__(self, module: ModuleBuilder, known: Values) -> None:
        self._module, self._joined = module, known.joined
        self._definitions, self._home, self._uses = known.definitions, known.home, known.uses
        self.body: list[Instruction] = []
        self.late: list[tuple[Instruction, int]] = []
        self.gone: set[int] = set()
        self.scopes = _Scopes()
        self._unused: list[int] = []
        #: The instructions of ``definitions`` in the body that take something repeated now.
        self._replaced: dict[int, Instruction] = {}

    def repeat(self, instruction: Instruction, stretch: int) -> None:
        """Makes ``instruction`` take what is computed in its own stretch."""
        definitions, result = self._definitions, instruction[2]
        for at in id_places(instruction):
            value = instruction[at]
            if self._home.get(value, stretch) == stretch:
                continue
            if value not in definitions:
                self.late.append((instruction, stretch))
                continue
            wanted: dict[int, None] = {}
            self._missing(value, stretch, wanted)
            for one in wanted:
                self._copy(one, stretch)
            if result in definitions and result not in self._replaced:
                self._replaced[result], definitions[result] = instruction, list(instruction)
            instruction[at] = self._here(value, stretch)
            self._uses[instruction[at]] += 1
            self._drop(value)

    def _missing(self, value: int, stretch: int, wanted: dict[int, None]) -> None:
        """Adds what must be repeated for ``value`` to ``wanted``, operands first."""
        if value not in self._definitions or self._home[value] == stretch or value in wanted:
            return
        if self.scopes.find((value, stretch)) is None:
            definition = self._definitions[value]
            for at in id_places(definition):
                self._missing(definition[at], stretch, wanted)
            wanted[value] = None

    def _copy(self, value: int, stretch: int) -> None:
        """Computes ``value`` again, from what is in ``stretch`` already."""
        copy = list(self._definitions[value])
        for at in id_places(copy):
            taken = copy[at] = self._here(copy[at], stretch)
            if taken in self._definitions:
                self._uses[taken] += 1
            elif self._home.get(taken, stretch) != stretch:
                self.late.append((copy, stretch))
        result = copy[2] = self._module.id()
        self._module.type_of[result] = copy[1]
        self._definitions[result], self._home[result], self._uses[result] = copy, stretch, 0
        self.body.append(copy)
        self.scopes.add((value, stretch), result)

    def _here(self, value: int, stretch: int) -> int:
        repeated = value in self._definitions and self._home[value] != stretch
        copy = self.scopes.find((value, stretch)) if repeated else None
        return value if copy is None else copy

    def _drop(self, value: int) -> None:
        """Notes that one use of ``value`` went."""
        if value in self._definitions:
            self._uses[value] -= 1
            if not self._uses[value]:
                self._unused.append(value)

    def drop_unused(self) -> None:
        """Notes which results nothing uses any more."""
        while self._unused:
            value = self._unused.pop()
            if not self._uses[value] and value not in self.gone and value not in self._joined:
                self.gone.add(value)
                for operand in ids(self._replaced.get(value) or self._definitions[value]):
                    self._drop(operand)


def repeat_behind_barriers(
    module: ModuleBuilder, body: list[Instruction], stretches: Stretches, known: Values
) -> Repeated:
    """``body``, the instructions of a function without any that nothing uses, with such integers computed where they
    are used."""
    repeated = Repeated(module, known)
    result, scopes, of = repeated.body, repeated.scopes, stretches.of
    done = 0
    for place in sorted({*stretches.structure, *known.far}):
        result += body[done:place]
        instruction, done = body[place], place
        if instruction[0] == op.Label:
            scopes.enter(instruction[2])
        elif instruction[0] in (op.SelectionMerge, op.LoopMerge):
            # It comes right before the branch: what the branch takes is repeated before both.
            repeated.repeat(body[place + 1], of[place + 1])
            scopes.open(instruction[3])
        else:
            repeated.repeat(instruction, of[place])
    result += body[done:]
    repeated.drop_unused()
    return repeated
