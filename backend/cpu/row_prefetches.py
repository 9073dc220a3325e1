"""Loads in loops over rows, whose next rows are asked for ahead.

The processor finds ahead by itself what follows in memory. The rows of a tile are a stride apart that is known only
when the kernel runs, and lie on other pages: nothing is asked for there before a load does. An address that a round of
the loop moves by such a stride is asked for as many rounds before as read some kilobytes. What the address becomes
then is a guess (an or counts as a sum): a request for any place is allowed, and changes no result.
"""

from __future__ import annotations

from typing import NamedTuple

from ..optional import ROW_PREFETCHES
from ..spirv.opcodes import StorageClass
from .decoded_module import KernelModule, ModuleInstruction
from .divergence import Divergence, Key, Loop

#: Bytes that are read between the request for a row and its load. Sums of columns in blocks of 16 rows by 128 columns
#: (a row is 512 bytes) on a Sapphire Rapids, GB/s without requests and with those for 1, 2, 4, 8, 16 and 32 rows ahead:
#: 47 and 46, 48, 50, 51, 50, 45 in rows that begin at lines of the cache; 39 and 47 (8 rows) in others.
_AHEAD = 4096

#: Bytes that a known stride has at least, if its rows are asked for.
_FAR = 2048

#: Loads of a round whose rows are asked for, at most. Where there are more, many may ask for the same rows. On a
#: Sapphire Rapids, five-point stencils in tiles of 32×32 and 16×64, of 10 and 20 loads, took 699 and 403 µs with
#: requests, 420 and 344 without; sums of columns gained 18% in blocks of 8 loads, and 3 to 6% in those of 16.
_MOST = 8

#: Products of a sum, at most.
_LONGEST = 4

#: Sums and differences → the sign of the second operand. Of an or, the bits are taken to be different ones.
SUMS = {"OpIAdd": 1, "OpISub": -1, "OpBitwiseOr": 1}

#: Instructions that growth is followed through: these, products, and conversions.
FOLLOWED = (*SUMS, "OpIMul", "OpShiftLeftLogical", "OpSConvert", "OpUConvert")

#: A sum of products: factors that are known when the kernel runs → the factor that is known now.
Sum = dict[tuple[Key, ...], int]


class Ahead(NamedTuple):
    """How far ahead of a load's address is what is asked for: the sum of ``products``, times ``rounds``."""

    products: tuple[tuple[tuple[Key, ...], int], ...]
    rounds: int


class RowPrefetches:
    """What the loads of a program ask for. ``ahead``: the result of a load → what is asked for there."""

    def __init__(self, program: KernelModule, divergence: Divergence, lanes: int) -> None:
        self._program, self._divergence, self._lanes = program, divergence, lanes
        self.ahead: dict[int, Ahead] = {}
        if program.emulation is None and ROW_PREFETCHES not in program.without:
            for loop in divergence.loops.values():
                self._loop(loop)

    def _loop(self, loop: Loop) -> None:
        program, divergence = self._program, self._divergence
        inner = {label for other in divergence.loops.values() if other.blocks < loop.blocks for label in other.blocks}
        loads = [
            item
            for label in loop.blocks - inner
            for item in program.blocks[label].body
            if item.name == "OpLoad" and self._reads_row(item)
        ]
        if loop.divergent or not 0 < len(loads) <= _MOST:
            return
        steps = _Steps(program, divergence, loop)
        moved = {item.result: steps.of(divergence.keys(item.operands[0])[0]) for item in loads}
        read = sum(self._lanes * program.size(item.type) for item in loads)
        rounds = max(_AHEAD // read, 1)
        for result, step in moved.items():
            if step and (any(step) or abs(step[()]) >= _FAR):
                self.ahead[result] = Ahead(tuple(step.items()), rounds)

    def _reads_row(self, item: ModuleInstruction) -> bool:
        """Whether the lanes of a load have neighbouring elements of device memory."""
        program, divergence = self._program, self._divergence
        if program.type(item.operands[0]).storage != StorageClass.PhysicalStorageBuffer:
            return False
        shape = divergence.shape[divergence.keys(item.operands[0])[0]]
        size = program.size(item.type)
        return shape is not None and all(
            offset - shape.offsets[0] == size * lane for lane, offset in enumerate(shape.offsets)
        )


class _Steps:
    """By how much scalars grow from one round of a loop to the next."""

    def __init__(self, program: KernelModule, divergence: Divergence, loop: Loop) -> None:
        self._program, self._divergence, self._loop = program, divergence, loop
        self._inside = {
            item.result
            for label in loop.blocks
            for item in (*program.blocks[label].phis, *program.blocks[label].body)
            if item.result
        }
        self._header = {phi.result: phi for phi in program.blocks[loop.header].phis}
        self._known: dict[Key, Sum | None] = {}

    def of(self, key: Key) -> Sum | None:
        """The growth; None where it is no sum of products of numbers that all lanes share and no round changes."""
        if (key if isinstance(key, int) else key[0]) not in self._inside:
            return {}
        if key not in self._known:
            self._known[key] = None  # of a number that depends on itself in another way than by growing
            self._known[key] = self._grown(key) if isinstance(key, int) else None
        return self._known[key]

    def _grown(self, key: int) -> Sum | None:
        item = self._program.definitions[key]
        if item.name == "OpPhi":
            return self._of_phi(item)
        if item.name == "OpAccessChain":
            _, parts = self._divergence.path(item)
            total = self.of(self._key(item.operands[0]))
            for index, stride in parts:
                total = added(total, multiplied(self.of(self._key(index)), {(): stride}))
            return total
        if item.name not in FOLLOWED:
            return None
        operands = [self._key(operand) for operand in item.operands[:2]]
        if len(operands) == 1:
            return self.of(operands[0])
        steps = [self.of(operand) for operand in operands]
        if item.name in SUMS:
            return added(steps[0], multiplied(steps[1], {(): SUMS[item.name]}))
        if item.name == "OpIMul" and steps[0] == {}:
            operands, steps = operands[::-1], steps[::-1]
        if steps[1] != {}:
            return None
        return multiplied(steps[0], self._factor(item, operands[1])) if steps[0] else steps[0]

    def _factor(self, item: ModuleInstruction, key: Key) -> Sum | None:
        """What a product or a shift by a number multiplies by."""
        if item.name == "OpIMul":
            return self._value(key)
        shape = self._divergence.shape[key]
        return {(): 1 << shape.offsets[0] % 64} if shape is not None and shape.known and shape.uniform else None

    def _value(self, key: Key) -> Sum | None:
        """A number that all lanes share and no round changes, as a sum of products of numbers from before the loop."""
        shape = self._divergence.shape[key]
        if shape is None or not shape.uniform:
            return None
        if shape.known:
            return {(): shape.offsets[0]}
        if (key if isinstance(key, int) else key[0]) not in self._inside:
            return {(key,): 1}
        item = self._program.definitions.get(key) if isinstance(key, int) else None
        if item is None or item.name not in FOLLOWED:
            return None
        operands = [self._key(operand) for operand in item.operands[:2]]
        value = self._value(operands[0])
        if item.name in SUMS:
            return added(value, multiplied(self._value(operands[1]), {(): SUMS[item.name]}))
        return value if len(operands) == 1 else multiplied(value, self._factor(item, operands[1]))

    def _of_phi(self, item: ModuleInstruction) -> Sum | None:
        """A phi of the header grows by what is added to it, one of a merge as the values that it may be do."""
        pairs = list(zip(item.operands[::2], item.operands[1::2], strict=True))
        if item.result not in self._header:
            found = [self.of(self._key(value)) for value, _ in pairs]
            return found[0] if all(one == found[0] for one in found) else None
        if any(label in self._loop.blocks and value == item.result for value, label in pairs):
            return {}
        following = next((value for value, label in pairs if label in self._loop.blocks), 0)
        added = self._program.definitions.get(following)
        if added is None or added.name != "OpIAdd" or item.result not in added.operands:
            return None
        other = self._key(added.operands[added.operands[0] == item.result])
        return self._value(other)

    def _key(self, value: int) -> Key:
        return self._divergence.keys(value)[0]


def added(a: Sum | None, b: Sum | None) -> Sum | None:
    """The sum."""
    if a is None or b is None:
        return None
    total = {factors: a.get(factors, 0) + b.get(factors, 0) for factors in {**a, **b}}
    return {factors: number for factors, number in total.items() if number}


def multiplied(a: Sum | None, b: Sum | None) -> Sum | None:
    """The product; None where it is long."""
    if a is None or b is None or len(a) * len(b) > _LONGEST:
        return None
    total: Sum | None = {}
    for factors, number in a.items():
        for others, other in b.items():
            total = added(total, {tuple(sorted((*factors, *others), key=str)): number * other})
    return total
