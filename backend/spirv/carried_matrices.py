"""Lets loops carry cooperative matrices rather than their components.

A matrix that a loop adds to is taken apart at the end of each iteration, and its components are phis, from which the
next iteration makes a matrix again. NVIDIA's driver keeps the phis of a product in the matrix's registers. Where
something is computed with them first, as attention scales its sums, it does not, and copies them all in every
iteration. There the matrix becomes the phi, and its components are taken out of it at the start of the iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from . import opcodes as op
from .encode import Instruction
from .grammar import ids_of_each
from .module import ModuleBuilder

_ENDS = frozenset({op.Branch, op.BranchConditional, op.SelectionMerge, op.LoopMerge})
#: A loop that adds up so many products or fewer of operands that it keeps in registers, as attention keeps its queries,
#: carries matrices: with four of 16×16 (heads of 64), attention is 0.99 to 1.16 times as fast on an H100. With eight
#: (heads of 128), its fastest tiles are 0.95 to 0.97 times as fast.
_KEPT = 4
#: What passes components on, or makes a matrix of them.
_PASSES = frozenset({op.CompositeConstruct, op.CompositeInsert, op.Phi})


def carry_matrices(module: ModuleBuilder, body: list[Instruction], entry: int) -> list[Instruction]:
    """``body``, the instructions of a function behind the label of its ``entry``, whose loops carry the matrices that
    they compute with."""
    products = {words[2]: words[1] for words in body if words[0] == op.CooperativeMatrixMulAddKHR}
    if not products or not any(words[0] == op.LoopMerge for words in body):
        return body
    return _Carried(module, body, entry, products).body


@dataclass
class _Loop:
    """The header of a loop and the block before it, the places of the header's label and of the one behind the loop,
    and the header's phis."""

    header: int
    preheader: int
    start: int
    end: int
    phis: list[Instruction]


def _loops(body: list[Instruction], entry: int) -> list[_Loop]:
    """The function's loops, each before those that it contains."""
    labels = {words[2]: place for place, words in enumerate(body) if words[0] == op.Label}
    found: list[_Loop] = []
    before = label = entry
    phis: list[Instruction] = []
    for words in body:
        if words[0] == op.Label:
            before, label, phis = label, words[2], []
        elif words[0] == op.Phi:
            phis.append(words)
        elif words[0] == op.LoopMerge:
            found.append(_Loop(label, before, labels[label], labels[words[3]], phis))
    return found


def _kept(body: list[Instruction], places: dict[int, int], loop: _Loop) -> int:
    """How many products that the loop adds up have an operand made of components from before the loop, at most."""

    def is_kept(matrix: int) -> bool:
        place = places.get(matrix, -1)
        while place > loop.start and body[place][0] == op.CompositeInsert:
            if places.get(body[place][3], -1) > loop.start:
                return False
            place = places.get(body[place][4], -1)
        return place < loop.start

    sums: dict[int, int] = {}
    for words in body[loop.start : loop.end]:
        if words[0] == op.CooperativeMatrixMulAddKHR:
            left, right, before = words[3:6]
            sums[words[2]] = sums.get(before, 0) + (is_kept(left) or is_kept(right))
    return max(sums.values(), default=0)


class _Carried:
    """A function whose loops carry matrices: ``body``."""

    def __init__(self, module: ModuleBuilder, body: list[Instruction], entry: int, products: dict[int, int]) -> None:
        self._module, self._products = module, products
        #: Component → the product that it is of, and its number there; product → how many it has.
        self._components: dict[int, tuple[int, int]] = {}
        self._sizes: Counter[int] = Counter()
        for words in body:
            if words[0] == op.CompositeExtract and words[3] in products:
                self._components[words[2]] = words[3], words[4]
                self._sizes[words[3]] += 1
        #: Block → what goes before its end; its new phis; what goes behind its phis.
        self._ends: dict[int, list[Instruction]] = {}
        self._phis: dict[int, list[Instruction]] = {}
        self._taken_apart: dict[int, list[Instruction]] = {}
        self._gone: set[int] = set()
        uses = ids_of_each(body)
        places = {words[2]: place for place, words in enumerate(body) if words[2]}
        for loop in _loops(body, entry):
            if _kept(body, places, loop) > _KEPT:
                continue
            for matrix, members in self._groups(loop):
                phis = {phi[2] for phi in members}
                if any(
                    not phis.isdisjoint(uses[place])
                    for place in range(loop.start, loop.end)
                    if body[place][0] not in _PASSES
                ):
                    self._carry(loop, matrix, members)
        self.body = self._placed(body, entry) if self._gone else body

    def _groups(self, loop: _Loop) -> Iterator[tuple[int, list[Instruction]]]:
        """The products that arrive from the last iteration component by component, and these phis in their order."""
        groups: dict[int, dict[int, Instruction]] = {}
        for phi in loop.phis:
            matrix, number = self._components.get(phi[5], (0, 0))
            if matrix:
                groups.setdefault(matrix, {}).setdefault(number, phi)
        for matrix, members in groups.items():
            if len(members) == self._sizes[matrix]:
                yield matrix, [members[number] for number in range(len(members))]

    def _carry(self, loop: _Loop, matrix: int, members: list[Instruction]) -> None:
        type_id, latch = self._products[matrix], members[0][6]
        start = self._matrix(type_id, [phi[3] for phi in members], self._ends.setdefault(loop.preheader, []))
        carried = self._result(type_id)
        self._phis.setdefault(loop.header, []).append([op.Phi, type_id, carried, start, loop.preheader, matrix, latch])
        self._taken_apart.setdefault(loop.header, []).extend(
            [op.CompositeExtract, phi[1], phi[2], carried, number] for number, phi in enumerate(members)
        )
        self._gone.update(phi[2] for phi in members)

    def _matrix(self, type_id: int, values: list[int], instructions: list[Instruction]) -> int:
        """The matrix of these components, which is made by what is appended to ``instructions`` if it is not there."""
        whole = self._components.get(values[0], (0, 0))[0]
        if whole and [self._components.get(value) for value in values] == [(whole, n) for n in range(len(values))]:
            return whole
        if len(set(values)) == 1:
            instructions.append([op.CompositeConstruct, type_id, self._result(type_id), values[0]])
            return instructions[-1][2]
        made = self._module.null(type_id)
        for number, value in enumerate(values):
            instructions.append([op.CompositeInsert, type_id, self._result(type_id), value, made, number])
            made = instructions[-1][2]
        return made

    def _result(self, type_id: int) -> int:
        result = self._module.id()
        self._module.type_of[result] = type_id
        return result

    def _placed(self, body: list[Instruction], entry: int) -> list[Instruction]:
        result: list[Instruction] = []
        block = entry
        waiting: list[Instruction] = []  # for the end of the block's phis
        for words in body:
            if words[0] == op.Phi and words[2] in self._gone:
                continue
            if words[0] != op.Phi and waiting:
                result += waiting
                waiting = []
            if words[0] == op.Label:
                block = words[2]
                result += [words, *self._phis.get(block, ())]
                waiting = self._taken_apart.get(block, [])
                continue
            if words[0] in _ENDS:
                result += self._ends.pop(block, ())
            result.append(words)
        return result
