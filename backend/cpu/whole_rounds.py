"""Rounds of a loop in which all lanes pass the bounds of their tensors: what says so, found before the round.

A loop over strips asks of each vector whether its elements are below a bound. In most rounds all are. What is compared
is a sum of numbers that all lanes share, of a constant, and of the lane's number: one comparison of shared numbers says
it for all vectors whose sums have the same numbers. Control translates such a round twice, with the masks and without.
"""

from __future__ import annotations

from typing import NamedTuple

from ..optional import WHOLE_ROUNDS
from . import lane_shapes
from .decoded_module import KernelModule
from .divergence import Divergence, Key, Loop

#: Comparison → whether the left operand is the smaller one, whether equal ones hold, and whether numbers are signed.
_BOUNDS = {
    f"Op{letter}{name}": (smaller, equal, letter == "S")
    for letter in "SU"
    for name, smaller, equal in (
        ("LessThan", True, False),
        ("LessThanEqual", True, True),
        ("GreaterThan", False, False),
        ("GreaterThanEqual", False, True),
    )
}

#: Instructions of a round that is translated twice, in all and for each access that has no mask then: beyond, the code
#: would be too long for what is spared. Random numbers, of 170 instructions for one store, have 313 lines, not 490.
_LONGEST = 600
_FOR_EACH = 50


class _Compared(NamedTuple):
    """A comparison of the sum of ``terms``, each times its factor, and of a number that is known with ``limit``.
    ``equal``: whether it holds for equal ones; ``signed``; ``bits``: of the numbers."""

    terms: tuple[tuple[Key, int], ...]
    limit: Key
    equal: bool
    signed: bool
    bits: int


class Bound(NamedTuple):
    """What is asked before a round: whether ``compared`` holds with all numbers from ``least`` to ``most``."""

    compared: _Compared
    least: int
    most: int


class WholeRounds:
    """What is known of conditions in rounds whose lanes are all within bounds."""

    def __init__(self, program: KernelModule, divergence: Divergence) -> None:
        self._program, self._divergence = program, divergence

    def of(self, loop: Loop) -> tuple[list[Bound], set[Key]]:
        """What is to be asked before a round, and the conditions that hold in all lanes then. None where a round cannot
        be translated twice, or not for this."""
        program, divergence = self._program, self._divergence
        blocks = [program.blocks[label] for label in loop.blocks]
        length = sum(len(block.body) for block in blocks)
        if (
            program.emulation is not None
            or WHOLE_ROUNDS in program.without
            or loop.divergent
            or any(block.following and block.label != loop.header for block in blocks)
            or length > _LONGEST
        ):
            return [], set()
        results = {
            item.result
            for block in blocks
            for item in (*(block.phis if block.label != loop.header else ()), *block.body)
            if item.result
        }
        inside = {key for result in results for key in (result, *divergence.keys(result))}
        header = {item.result for item in program.blocks[loop.header].body}
        if any(value in results and value not in header for value in loop.left):
            return [], set()
        found: dict[_Compared, tuple[int, int]] = {}
        true: set[Key] = set()
        accesses = 0
        for block in blocks:
            end = block.end
            if end is None or end.name != "OpBranchConditional" or not block.merge or block.following:
                continue
            condition = divergence.keys(end.operands[0])[0]
            shape = divergence.shape[condition]
            if shape is None or not shape.uniform:
                accesses += self._require(condition, inside, found, true)
        if length > _FOR_EACH * accesses:
            return [], set()
        return [Bound(one, *span) for one, span in found.items()], true

    def _require(
        self, condition: Key, inside: set[Key], found: dict[_Compared, tuple[int, int]], true: set[Key]
    ) -> bool:
        """Adds what a condition needs to hold in all lanes. Whether that can be asked before the round."""
        if condition in true:
            return True
        item = self._program.definitions.get(condition) if isinstance(condition, int) else None
        if item is None or item.name not in ("OpLogicalAnd", *_BOUNDS):
            return False
        operands = [self._divergence.keys(operand)[0] for operand in item.operands[:2]]
        if item.name == "OpLogicalAnd":
            if not all([self._require(operand, inside, found, true) for operand in operands]):
                return False
        else:
            smaller, equal, signed = _BOUNDS[item.name]
            number, limit = operands if smaller else operands[::-1]
            shape, other = self._divergence.shape[number], self._divergence.shape[limit]
            if shape is None or other is None or not other.plain or limit in inside:
                return False
            terms, constant = self._sum(number)
            if any(term in inside for term, _ in terms):
                return False
            bits = self._divergence.bits(number)
            constant = lane_shapes.signed(constant, bits) - shape.offsets[0]
            key = _Compared(terms, limit, equal, signed, bits)
            least, most = constant + min(shape.offsets), constant + max(shape.offsets)
            before = found.get(key, (least, most))
            found[key] = min(least, before[0]), max(most, before[1])
        true.add(condition)
        return True

    def _sum(self, key: Key, factor: int = 1) -> tuple[tuple[tuple[Key, int], ...], int]:
        """The numbers of lane 0 whose sum a scalar times ``factor`` is, each with its own factor: those that are known
        only when the kernel runs, and what is known."""
        divergence, shape = self._divergence, self._divergence.shape[key]
        assert shape is not None
        if shape.known:
            return (), shape.offsets[0] * factor
        item = self._program.definitions.get(key) if isinstance(key, int) else None
        if item is not None and item.name in ("OpIAdd", "OpBitwiseOr", "OpShiftLeftLogical"):
            operands = [divergence.keys(operand)[0] for operand in item.operands[:2]]
            known = [divergence.shape.get(operand) for operand in operands]
            # Of an or, bits of lanes that the other operand does not have (lane_shapes.py).
            added = item.name == "OpIAdd" or any(one is not None and one.known and not one.offsets[0] for one in known)
            if item.name == "OpShiftLeftLogical":
                by = known[1]
                if known[0] is not None and by is not None and by.known and by.uniform:
                    return self._sum(operands[0], factor << by.offsets[0] % divergence.bits(key))
            elif added and all(one is not None for one in known):
                parts = [self._sum(operand, factor) for operand in operands]
                return tuple(sorted((*parts[0][0], *parts[1][0]), key=str)), parts[0][1] + parts[1][1]
        return ((key, factor),), 0
