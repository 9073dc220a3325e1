"""Words carried by selections and loops instead of the elements packed in them."""

import copy
import random

import pytest
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv import packed_phis
from triton.backends.spirv.spirv.encode import Instruction
from triton.backends.spirv.spirv.module import ModuleBuilder
from triton.backends.spirv.spirv.opcodes import StorageClass

from .test_function import Kernel

#: Elements of the loaded vector of two words.
HALVES = 4


class Packed(Kernel):
    """A kernel that loads pairs of words as halves, and stores halves as such pairs."""

    def __init__(self) -> None:
        super().__init__()
        module = self.module
        self.half, self.pair = module.int(16), module.vector(module.int(16), 2)
        self.words = module.vector(module.u32, 2)
        self._place = module.variable(StorageClass.Workgroup, self.words)

    def loaded(self) -> list[int]:
        f = self.f
        words = f.load(self.words, self._place)
        pairs = [f.bitcast(f.emit(op.CompositeExtract, self.module.u32, words, n), self.pair) for n in range(2)]
        return [f.emit(op.CompositeExtract, self.half, pair, n) for pair in pairs for n in range(2)]

    def stored(self, halves: list[int]) -> None:
        f = self.f
        words = [
            f.bitcast(f.emit(op.CompositeConstruct, self.pair, *halves[n : n + 2]), self.module.u32) for n in (0, 2)
        ]
        f.store(self._place, f.emit(op.CompositeConstruct, self.words, *words))

    def positive(self) -> int:
        return self.f.compare(op.ULessThan, self.module.uint(0), self.number)


def phis(text: str) -> list[str]:
    """The types of the phis."""
    return sorted(line.split("OpPhi ")[1].split()[0] for line in text.splitlines() if "OpPhi" in line)


def test_a_selection_between_a_load_and_zeros_gives_words() -> None:
    kernel = Packed()
    zeros = [kernel.module.uint(0, 16)] * HALVES
    kernel.stored(kernel.f.if_(kernel.positive(), kernel.loaded, defaults=zeros))
    text = kernel.text()
    assert phis(text) == ["%v2uint"]
    assert "OpBitcast" not in text and "OpCompositeConstruct" not in text


def test_other_defaults_are_packed_where_they_come_from() -> None:
    kernel = Packed()
    ones = [kernel.module.uint(1, 16)] * HALVES
    kernel.stored(kernel.f.if_(kernel.positive(), kernel.loaded, defaults=ones))
    text = kernel.text()
    assert phis(text) == ["%v2uint"]
    assert text.index("OpCompositeConstruct %v2uint") < text.index("OpSelectionMerge")


def test_a_loop_carries_the_words_that_a_guarded_load_gives() -> None:
    kernel = Packed()
    f, module = kernel.f, kernel.module
    zeros = [module.uint(0, 16)] * HALVES

    def body(carried: list[int]) -> list[int]:
        following = f.if_(kernel.positive(), kernel.loaded, defaults=zeros)
        kernel.stored(carried[1:])
        return [f.add(carried[0], module.uint(1)), *following]

    f.loop([module.uint(0), *kernel.loaded()], lambda carried: f.compare(op.ULessThan, carried[0], kernel.number), body)
    assert phis(kernel.text()) == ["%uint", "%v2uint", "%v2uint"]


def test_elements_that_are_used_one_by_one_are_taken_out_of_the_word() -> None:
    kernel = Packed()
    f, zeros = kernel.f, [kernel.module.uint(0, 16)] * HALVES
    halves = f.if_(kernel.positive(), kernel.loaded, defaults=zeros)
    kernel.stored(halves)
    kernel.write(f.emit(op.UConvert, kernel.module.u32, halves[3]))
    text = kernel.text()
    assert phis(text) == ["%v2uint"]
    assert "OpCompositeExtract %ushort" in text


def test_elements_that_are_computed_stay_elements() -> None:
    kernel = Packed()
    f, one = kernel.f, kernel.module.uint(1, 16)

    def body(carried: list[int]) -> list[int]:
        return [f.add(carried[0], kernel.module.uint(1)), *(f.add(half, one) for half in carried[1:])]

    results = f.loop(
        [kernel.module.uint(0), *kernel.loaded()],
        lambda carried: f.compare(op.ULessThan, carried[0], kernel.number),
        body,
    )
    kernel.stored(results[1:])
    # Carried in words, they would be packed in each round.
    assert phis(kernel.text()) == ["%uint", *["%ushort"] * HALVES]


# -- against an evaluation of the instructions -----------------------------------------------------------------------


class Machine:
    """Runs a function's instructions. A scalar is an integer, a vector a tuple of them."""

    def __init__(self, module: ModuleBuilder, number: int, memory: list[tuple[int, int]]) -> None:
        self._module, self._number, self._memory = module, number, list(memory)
        self.written: list[object] = []

    def _width(self, type_id: int) -> int:
        return self._module.kinds[type_id][1]

    def run(self, body: list[Instruction], entry: int) -> list[object]:
        blocks: dict[int, list[Instruction]] = {entry: []}
        current = blocks[entry]
        for instruction in body:
            if instruction[0] == op.Label:
                current = blocks[instruction[2]] = []
            else:
                current.append(instruction)
        values: dict[int, object] = dict(self._module.constants)
        before, block = 0, entry
        while True:
            following = 0
            arriving = {
                phi[2]: self._value(values, dict(zip(phi[4::2], phi[3::2], strict=True))[before])
                for phi in blocks[block]
                if phi[0] == op.Phi
            }
            values |= arriving
            for instruction in blocks[block]:
                opcode, type_id, result, *operands = instruction
                if opcode in (op.Phi, op.SelectionMerge, op.LoopMerge):
                    continue
                if opcode == op.Branch:
                    following = operands[0]
                elif opcode == op.BranchConditional:
                    following = operands[1] if values[operands[0]] else operands[2]
                elif opcode == op.Return:
                    return self.written
                elif opcode == op.Store:
                    self.written.append(self._value(values, operands[1]))
                else:
                    values[result] = self._result(values, opcode, type_id, operands)
            before, block = block, following

    def _value(self, values: dict[int, object], value: int) -> object:
        if value not in values:  # a null vector
            return tuple(0 for _ in range(self._module.kinds[self._module.type_of[value]][1]))
        return values[value]

    def _result(self, values: dict[int, object], opcode: int, type_id: int, operands: list[int]) -> object:
        if opcode == op.Load:
            return self._memory.pop(0) if self._module.kinds[type_id] == ("vector", 2) else (self._number,) * 3
        taken = [self._value(values, operand) for operand in operands if opcode != op.CompositeExtract]
        if opcode == op.CompositeExtract:
            return self._value(values, operands[0])[operands[1]]  # type: ignore[index]
        if opcode == op.CompositeConstruct:
            return tuple(taken)
        if opcode == op.Bitcast:
            (value,) = taken
            if isinstance(value, tuple):
                return value[0] | value[1] << 16
            return (value & 0xFFFF, value >> 16)  # type: ignore[operator]
        if opcode == op.IAdd:
            return (taken[0] + taken[1]) % (1 << self._width(type_id))  # type: ignore[operator]
        assert opcode == op.ULessThan, opcode
        return taken[0] < taken[1]  # type: ignore[operator]


def _random_kernel(rng: random.Random) -> Packed:
    """Loads, selections and loops, nested, of four halves; now and then elements change places or are added to."""
    kernel = Packed()
    f, module = kernel.f, kernel.module

    def default() -> list[int]:
        return [module.uint(rng.choice((0, 0, 7)), 16)] * HALVES

    def nested(halves: list[int], kind: str, depth: int) -> list[int]:
        if kind == "select":
            condition = f.compare(op.ULessThan, module.uint(rng.randrange(3)), kernel.number)
            return f.if_(condition, lambda: block(halves, depth), defaults=halves)
        rounds = module.uint(rng.randrange(3))
        _, *results = f.loop(
            [module.uint(0), *halves],
            lambda carried: f.compare(op.ULessThan, carried[0], rounds),
            lambda carried: [f.add(carried[0], module.uint(1)), *block(carried[1:], depth)],
        )
        return results

    def block(halves: list[int], depth: int) -> list[int]:
        for _ in range(rng.randrange(1, 4)):
            kind = rng.choice(("load", "select", "loop", "store", "mix", "default"))
            if kind == "load":
                halves = kernel.loaded()
            elif kind == "default":
                halves = default()
            elif kind == "store":
                kernel.stored(halves)
            elif kind == "mix":
                halves = rng.choice(
                    (halves[::-1], [f.add(halves[0], halves[1]), *halves[1:]], [halves[2], *halves[1:]])
                )
            elif depth:
                halves = nested(halves, kind, depth - 1)
        return halves

    kernel.stored(block(kernel.loaded(), 3))
    return kernel


@pytest.mark.parametrize("seed", range(150))
def test_random_functions_store_the_same(seed: int) -> None:
    kernel = _random_kernel(random.Random(seed))
    plain = [*copy.deepcopy(kernel.f._body), [op.Return, 0, 0]]
    carried = packed_phis.carry_words(kernel.module, copy.deepcopy(plain), kernel.f._entry)
    rng = random.Random(seed)
    memory = [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(2000)]
    for number in range(4):
        expected, given = (
            Machine(kernel.module, number, memory).run(body, kernel.f._entry) for body in (plain, carried)
        )
        assert expected and expected == given
    kernel.text()


def test_random_functions_have_fewer_narrow_phis() -> None:
    def narrow(body: list[Instruction], module: ModuleBuilder) -> int:
        return sum(i[0] == op.Phi and module.kinds.get(i[1]) == ("int", 16) for i in body)

    before = after = 0
    for seed in range(150):
        kernel = _random_kernel(random.Random(seed))
        before += narrow(kernel.f._body, kernel.module)
        after += narrow(
            packed_phis.carry_words(kernel.module, copy.deepcopy(kernel.f._body), kernel.f._entry), kernel.module
        )
    assert after < before / 2, (before, after)
