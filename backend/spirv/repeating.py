"""Computes cheap integers again behind barriers, where they would otherwise be kept across.

On Mesa's CPU driver a value that lives across a barrier costs compile time: a slot in the coroutine's frame, and the
two shuffles that keep LLVM from computing it again in its own way (anchors.py). Addresses and masks of a tile are
hundreds of such values, made of a few that live across anyway: the lane, the subgroup, arguments. So their arithmetic
is repeated, once for each stretch between barriers in which it is used.
"""

from __future__ import annotations

from . import opcodes as op
from .encode import Instruction, drop_dead
from .grammar import id_places, ids
from .module import ModuleBuilder

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


def repeat_behind_barriers(
    module: ModuleBuilder, body: list[Instruction], regions: list[int]
) -> tuple[list[Instruction], bool]:
    """``body``, the instructions of a function, with such integers computed where they are used; ``regions``: of each
    instruction, the number of barriers before it. Whether there were any."""
    definitions = _repeatable(module, body)
    place = {instruction[2]: region for instruction, region in zip(body, regions, strict=True) if instruction[2]}
    result: list[Instruction] = []
    scopes = _Scopes()
    changed = False

    def missing(value: int, region: int, found: dict[int, None]) -> None:
        """Adds what must be repeated for ``value`` to ``found``, operands first."""
        if value in definitions and value not in found and place[value] != region:
            if scopes.find((value, region)) is None:
                for at in id_places(definitions[value]):
                    missing(definitions[value][at], region, found)
                found[value] = None

    def here(value: int, region: int) -> int:
        known = scopes.find((value, region)) if value in definitions and place[value] != region else None
        return value if known is None else known

    for instruction, region in zip(body, regions, strict=True):
        if instruction[0] == op.Label:
            scopes.enter(instruction[2])
        merge = result.pop() if result and result[-1][0] in (op.SelectionMerge, op.LoopMerge) else None
        if instruction[0] != op.Phi and not definitions.keys().isdisjoint(instruction[3:]):
            for at in id_places(instruction):
                value = instruction[at]
                if value not in definitions or place[value] == region:
                    continue
                found: dict[int, None] = {}
                missing(value, region, found)
                for one in found:
                    copy = list(definitions[one])
                    for inner in id_places(copy):
                        copy[inner] = here(copy[inner], region)
                    copy[2] = module.id()
                    module.type_of[copy[2]] = copy[1]
                    result.append(copy)
                    scopes.add((one, region), copy[2])
                instruction[at] = here(value, region)
                changed = True
        if merge is not None:  # it comes right before the branch, what was repeated before both
            scopes.open(merge[3])
            result.append(merge)
        result.append(instruction)
    return (drop_dead(result) if changed else result), changed


def _repeatable(module: ModuleBuilder, body: list[Instruction]) -> dict[int, Instruction]:
    """The values that take at most LONGEST instructions from values that are not among them. Where a value would take
    more, the longest of its operands is none: long ones are scalars of the kernel, which many values share."""
    integers = {type_id for type_id, (kind, _) in module.kinds.items() if kind in _INTEGERS}
    type_of = module.type_of
    found: dict[int, Instruction] = {}
    lengths: dict[int, int] = {}
    for instruction in body:
        if instruction[0] not in _ARITHMETIC or instruction[1] not in integers:
            continue
        operands = set(ids(instruction))
        if not all(type_of.get(value, 0) in integers for value in operands):
            continue
        length = 1 + sum(lengths.get(value, 0) for value in operands)
        while length > LONGEST:
            longest = max(operands, key=lambda value: lengths.get(value, 0))
            length -= lengths.pop(longest)
            del found[longest]
        found[instruction[2]], lengths[instruction[2]] = instruction, length
    return found
