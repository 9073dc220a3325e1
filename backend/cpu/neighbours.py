"""Accesses whose lanes have neighbouring elements at run time, though the compiler cannot know it.

``columns % N`` is such a number: its lanes follow each other but where it starts anew. An address that is made of one,
the *root*, by extension, by a known factor and by numbers that all lanes share is that of neighbouring elements
whenever the root's lanes are neighbours. That is found out once, where the root is made, and the addresses of all lanes
are made only where they are not.
"""

from __future__ import annotations

from typing import NamedTuple

from ..optional import NEIGHBOURING_LANES
from .decoded_module import KernelModule, ModuleInstruction
from .divergence import Divergence, Key

_THROUGH = ("OpIAdd", "OpISub", "OpIMul", "OpShiftLeftLogical", "OpSConvert", "OpUConvert", "OpConvertUToPtr")


class Step(NamedTuple):
    """How an address depends on a spread number: ``root`` × ``factor``, the root being extended if it is narrower than
    64 bits, as a ``signed`` number or not."""

    root: Key
    factor: int
    signed: bool = True


class Neighbours:
    """The addresses of a program that may be those of neighbouring elements."""

    def __init__(self, program: KernelModule, divergence: Divergence) -> None:
        self._program, self._divergence = program, divergence
        #: Address of an access → how it is made.
        self.steps: dict[Key, Step] = {}
        #: Numbers whose lanes are compared where they are made → whether they are extended as signed ones.
        self.roots: dict[Key, bool] = {}
        #: Spread numbers that are only part of such addresses.
        self.parts: set[Key] = set()
        if NEIGHBOURING_LANES in program.without:
            return
        for block in program.blocks.values():
            for item in block.body:
                if item.name in ("OpLoad", "OpStore"):
                    self._access(item)

    def _access(self, item: ModuleInstruction) -> None:
        program, divergence = self._program, self._divergence
        address = divergence.keys(item.operands[0])[0]
        value = item.result or item.operands[1]
        if divergence.shape[address] is not None or program.type(value).kind in ("vector", "array"):
            return
        size = program.size(program.type_of[value])
        step = self._step(address)
        if step is None or step.root == address or step.factor != size:
            return
        if self.roots.setdefault(step.root, step.signed) != step.signed:
            return
        self.steps[address] = step
        key: Key = address
        while key != step.root and key in divergence.addresses:
            self.parts.add(key)
            key = self._spread_operand(key)

    def definition(self, key: Key) -> ModuleInstruction | None:
        """The instruction that makes a scalar, if it is no component of anything."""
        return self._program.definitions.get(key) if isinstance(key, int) else None

    def _spread_operand(self, key: Key) -> Key:
        item = self.definition(key)
        assert item is not None
        operands = [self._divergence.keys(operand)[0] for operand in item.operands[:2]]
        return next(operand for operand in operands if self._divergence.shape[operand] is None)

    def _step(self, key: Key) -> Step | None:
        """How a spread number of 64 bits is made of one; None where it is made of two."""
        divergence, item = self._divergence, self.definition(key)
        if item is None or item.name not in _THROUGH:
            return Step(key, 1)
        operands = [divergence.keys(operand)[0] for operand in item.operands[:2]]
        spread = [operand for operand in operands if divergence.shape[operand] is None]
        if len(spread) != 1 or (item.name == "OpISub" and spread[0] != operands[0]):
            return Step(key, 1)
        if item.name in ("OpSConvert", "OpUConvert"):
            if divergence.bits(spread[0]) >= divergence.bits(key):
                return Step(key, 1)
            return Step(spread[0], 1, item.name == "OpSConvert")
        factor = 1
        if item.name in ("OpIMul", "OpShiftLeftLogical"):
            other = divergence.shape[operands[1] if spread[0] == operands[0] else operands[0]]
            if other is None or not other.known or not other.uniform:
                return Step(key, 1)
            if item.name == "OpShiftLeftLogical" and spread[0] != operands[0]:
                return Step(key, 1)
            factor = other.offsets[0] if item.name == "OpIMul" else 1 << other.offsets[0]
        else:
            other = divergence.shape[operands[1] if spread[0] == operands[0] else operands[0]]
            if other is None or not other.uniform:
                return Step(key, 1)
        inner = self._step(spread[0])
        return None if inner is None else inner._replace(factor=inner.factor * factor)
