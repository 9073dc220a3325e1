"""The order in which the programs of a range run: along the axis of the grid in which stores follow each other.

Launches promise that a program may wait for one of a lower number (docs/cpu.md). One that has neither atomic
instructions, nor volatile loads, nor barriers that reach other programs cannot wait: its programs may run in any order.
Tiles of an image whose columns are the grid's second axis are stored one row of tiles after the other then, so that
pages follow each other, and what one tile reads beyond its edge is still in the cache.
"""

from __future__ import annotations

from ..optional import PROGRAM_ORDER
from ..spirv.opcodes import BuiltIn, MemoryAccess, Scope, StorageClass
from .decoded_module import KernelModule, ModuleInstruction
from .divergence import Divergence, Key

#: Scopes whose barriers order accesses of one program alone.
_OWN = (Scope.Workgroup, Scope.Subgroup, Scope.Invocation)
#: Products of a sum, at most.
_LONGEST = 4
#: Sums and differences → the sign of the second operand. Of an or, the bits are taken to be different ones.
_SUMS = {"OpIAdd": 1, "OpISub": -1, "OpBitwiseOr": 1}
#: Instructions that growth is followed through: these, products, and conversions.
_FOLLOWED = (*_SUMS, "OpIMul", "OpShiftLeftLogical", "OpSConvert", "OpUConvert")
#: A sum of products: factors that are known when the kernel runs → the factor that is known now.
_Sum = dict[tuple[Key, ...], int]


def fastest_axis(program: KernelModule, divergence: Divergence) -> str:
    """``"y"`` if the programs of a launch run along the second axis first, else ``"x"``."""
    if program.emulation is not None or program.watched or PROGRAM_ORDER in program.without or _may_wait(program):
        return "x"
    stores = [
        divergence.keys(item.operands[0])[0]
        for block in program.blocks.values()
        for item in block.body
        if item.name == "OpStore" and program.type(item.operands[0]).storage == StorageClass.PhysicalStorageBuffer
    ]
    along_x, along_y = (_Strides(program, divergence, axis) for axis in range(2))
    return "y" if stores and all(_is_longer(along_x.of(key), along_y.of(key)) for key in stores) else "x"


def _is_longer(x: _Sum | None, y: _Sum | None) -> bool:
    """Whether a step along the first axis is longer than one along the second: a product of a number that is known at
    run time, such as the width of a matrix, is longer than one that is known now."""
    if not x or not y or any(y):
        return False
    return any(x) or abs(x[()]) > abs(y[()])


def _may_wait(program: KernelModule) -> bool:
    """Whether a program might wait for another one, or be told from it by when it runs."""
    for block in program.blocks.values():
        for item in block.body:
            if item.name.startswith("OpAtomic"):
                return True
            if item.name in ("OpControlBarrier", "OpMemoryBarrier"):
                *_, scope, _ = (program.constants[operand].bits for operand in item.operands)
                if scope not in _OWN:
                    return True
            if item.name == "OpLoad" and len(item.operands) > 1 and item.operands[1] & MemoryAccess.Volatile:
                return True
    return False


class _Strides:
    """By how much numbers that all lanes share grow from one program to the next along an axis."""

    def __init__(self, program: KernelModule, divergence: Divergence, axis: int) -> None:
        self._program, self._divergence, self._axis = program, divergence, axis
        self._known: dict[Key, _Sum | None] = {}

    def of(self, key: Key) -> _Sum | None:
        """The growth; None where it is no sum of products."""
        if key not in self._known:
            self._known[key] = None  # of a number that depends on itself, but for phis
            item = self._program.definitions.get(key) if isinstance(key, int) else None
            if item is not None:
                self._known[key] = self._grown(item)
            elif isinstance(key, int):
                self._known[key] = {}
        return self._known[key]

    def _grown(self, item: ModuleInstruction) -> _Sum | None:
        if item.name == "OpLoad":
            return self._loaded(item)
        if item.name == "OpAccessChain":
            if item.operands[0] in self._program.variables:
                return {}
            _, parts = self._divergence.path(item)
            total = self.of(self._key(item.operands[0]))
            for index, stride in parts:
                total = _added(total, _multiplied(self.of(self._key(index)), {(): stride}))
            return total
        if item.name == "OpPhi":
            return self._of_phi(item)
        values = [value for value in item.operands if value in self._program.type_of]
        steps = [self.of(self._key(value)) for value in values]
        if all(step == {} for step in steps):
            return {}
        if item.name in _SUMS:
            return _added(steps[0], _multiplied(steps[1], {(): _SUMS[item.name]}))
        if item.name not in _FOLLOWED:
            return None
        if len(steps) == 1:
            return steps[0]
        if item.name == "OpIMul" and steps[0] == {}:
            values, steps = values[::-1], steps[::-1]
        return _multiplied(steps[0], self._factor(item, self._key(values[1]))) if steps[1] == {} else None

    def _factor(self, item: ModuleInstruction, key: Key) -> _Sum | None:
        """What a product, or a shift, by a number that no program changes multiplies by."""
        shape = self._divergence.shape[key]
        if shape is None or not shape.uniform:
            return None
        if item.name == "OpShiftLeftLogical":
            return {(): 1 << shape.offsets[0] % 64} if shape.known else None
        return {(): shape.offsets[0]} if shape.known else {(key,): 1}

    def _loaded(self, item: ModuleInstruction) -> _Sum | None:
        """1 of the program's number, 0 of what else the launch says. What memory holds may differ in any way."""
        program, storage = self._program, self._program.type(item.operands[0]).storage
        chain = program.definitions.get(item.operands[0])
        if storage == StorageClass.Input and chain is not None:
            number = program.built_ins[chain.operands[0]]
            if number == BuiltIn.GlobalInvocationId:
                return None
            axis = program.constants[chain.operands[1]].bits
            return {(): 1} if number == BuiltIn.WorkgroupId and axis == self._axis else {}
        return {} if storage in (StorageClass.Input, StorageClass.PushConstant) else None

    def _of_phi(self, item: ModuleInstruction) -> _Sum | None:
        """What all that it may be grow by; a pointer that a loop moves on, by what the first one does."""
        first = self._known[item.result] = self.of(self._key(item.operands[0]))
        return first if all(self.of(self._key(value)) == first for value in item.operands[2::2]) else None

    def _key(self, value: int) -> Key:
        return self._divergence.keys(value)[0]


def _added(a: _Sum | None, b: _Sum | None) -> _Sum | None:
    """The sum."""
    if a is None or b is None:
        return None
    total = {factors: a.get(factors, 0) + b.get(factors, 0) for factors in {**a, **b}}
    return {factors: number for factors, number in total.items() if number}


def _multiplied(a: _Sum | None, b: _Sum | None) -> _Sum | None:
    """The product; None where it is long."""
    if a is None or b is None or len(a) * len(b) > _LONGEST:
        return None
    total: _Sum | None = {}
    for factors, number in a.items():
        for others, other in b.items():
            total = _added(total, {tuple(sorted((*factors, *others), key=str)): number * other})
    return total
