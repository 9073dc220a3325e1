"""Value numbering and structured control flow; every module is validated by spirv-val."""

import random
import subprocess

import pytest
from triton.backends.spirv.driver_quirks import Faults
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.module import ModuleBuilder
from triton.backends.spirv.spirv.opcodes import BuiltIn, ExecutionMode_, StorageClass

from tests.spirv_val import validated


class Kernel:
    """A compute kernel under construction that reads an invocation number and writes workgroup memory."""

    def __init__(self) -> None:
        self.module = ModuleBuilder()
        self.f = FunctionBuilder(self.module, self.module.void)
        module, u32 = self.module, self.module.u32
        vector = module.vector(u32, 3)
        loaded = self.f.load(vector, module.built_in(BuiltIn.WorkgroupId, vector, "workgroup"))
        self.number = self.f.emit(op.CompositeExtract, u32, loaded, 0)
        self._output = module.variable(StorageClass.Workgroup, u32)

    def write(self, value: int) -> None:
        self.f.store(self._output, value)

    def text(self) -> str:
        """The disassembly of the validated module."""
        self.f.return_()
        function = self.f.finish()
        self.module.set_entry(self.f.id, "main", [[ExecutionMode_.LocalSize, 1, 1, 1]])
        data = validated(self.module.finish(function))
        return subprocess.run(["spirv-dis", "-"], input=data, capture_output=True, check=True).stdout.decode()


def test_equal_instructions_share_a_result_and_commutative_ones_in_either_order():
    kernel = Kernel()
    f, five = kernel.f, kernel.f.add(kernel.number, kernel.number)
    assert f.add(kernel.number, five) == f.add(five, kernel.number)
    assert f.sub(kernel.number, five) != f.sub(five, kernel.number)
    assert f.load(kernel.module.u32, kernel._output) != f.load(kernel.module.u32, kernel._output)
    kernel.write(five)
    assert kernel.text().count("OpIAdd") == 1


def test_what_an_arm_numbered_is_forgotten_and_what_came_before_is_not():
    kernel = Kernel()
    f, module = kernel.f, kernel.module
    before = f.mul(kernel.number, kernel.number)
    inside: list[int] = []

    def arm() -> list[int]:
        inside.append(f.add(kernel.number, before))
        assert f.mul(kernel.number, kernel.number) == before
        return inside[-1:]

    condition = f.compare(op.ULessThan, kernel.number, module.uint(7))
    (joined,) = f.if_(condition, arm, arm)
    after = f.add(kernel.number, before)
    assert len({*inside, after}) == 3
    kernel.write(joined)
    kernel.write(after)
    assert kernel.text().count("OpPhi") == 1


def test_a_known_condition_needs_no_branch():
    kernel = Kernel()
    f, module = kernel.f, kernel.module
    for known in (True, False):
        (value,) = f.if_(module.boolean(known), lambda: [module.uint(1)], lambda: [module.uint(2)])
        assert module.constants[value] == (1 if known else 2)
    kernel.write(value)
    assert "OpSelectionMerge" not in kernel.text()


def test_without_otherwise_the_defaults_hold():
    kernel = Kernel()
    f, module = kernel.f, kernel.module
    condition = f.compare(op.IEqual, kernel.number, module.uint(3))
    same, other = f.if_(
        condition,
        lambda: [kernel.number, f.add(kernel.number, kernel.number)],
        defaults=[kernel.number, module.uint(9)],
    )
    assert same == kernel.number
    kernel.write(other)
    assert kernel.text().count("OpPhi") == 1


def test_loop_results_dominate_what_follows():
    kernel = Kernel()
    f, module = kernel.f, kernel.module

    def body(carried: list[int]) -> list[int]:
        index, total = carried
        (more,) = f.if_(
            f.compare(op.UGreaterThan, total, module.uint(50)),
            lambda: [f.add(total, index)],
            defaults=[f.add(total, total)],
        )
        return [f.add(index, module.uint(1)), more]

    index, total = f.loop(
        [module.uint(0), kernel.number], lambda carried: f.compare(op.ULessThan, carried[0], module.uint(10)), body
    )
    kernel.write(f.add(index, total))
    assert kernel.text().count("OpLoopMerge") == 1


@pytest.mark.parametrize("seed", range(25))
def test_random_nests_of_branches_and_loops_are_valid(seed):
    """Nested control flow whose values come from anywhere that dominates them."""
    rng, kernel = random.Random(seed), Kernel()
    f, module = kernel.f, kernel.module

    def branch(depth: int, known: list[int], condition: int, defaults: list[int], both: bool) -> list[int]:
        def arm() -> list[int]:
            return block(depth - 1, known)[-2:]

        return f.if_(condition, arm, arm if both else None, defaults)

    def loop(depth: int, known: list[int], initial: int, limit: int) -> list[int]:
        return f.loop(
            [module.uint(0), initial],
            lambda carried: f.compare(op.ULessThan, carried[0], limit),
            lambda carried: [f.add(carried[0], module.uint(1)), block(depth - 1, [*known, *carried])[-1]],
        )

    def block(depth: int, known: list[int]) -> list[int]:
        known = list(known)
        for _ in range(rng.randint(1, 4)):
            a, b = rng.choice(known), rng.choice(known)
            condition = f.compare(rng.choice((op.ULessThan, op.IEqual, op.SGreaterThan)), a, b)
            choice = rng.random() if depth else 0
            if choice < 0.5:
                known.append(f.binary(rng.choice((op.IAdd, op.IMul, op.BitwiseXor)), a, b))
            elif choice < 0.75:
                known += branch(depth, known, condition, [a, b], rng.random() < 0.5)
            else:
                known += loop(depth, known, a, b)
        return [known[0], *known]

    for value in block(3, [kernel.number, module.uint(3)])[-4:]:
        kernel.write(value)
    kernel.text()


def test_dead_code_goes_away():
    kernel = Kernel()
    f = kernel.f
    f.mul(f.add(kernel.number, kernel.number), kernel.number)
    kernel.write(kernel.number)
    text = kernel.text()
    assert "OpIMul" not in text and "OpIAdd" not in text


def test_constants_that_are_added_one_after_the_other_are_one():
    kernel = Kernel()
    f, uint = kernel.f, kernel.module.uint
    inner = f.add(kernel.number, uint(5))
    assert f.base_and_constant(inner) == (kernel.number, 5)
    assert f.add(inner, uint(3)) == f.add(uint(8), kernel.number)
    assert f.base_and_constant(f.add(inner, uint(3))) == (kernel.number, 8)
    assert f.add(inner, uint(2**32 - 5)) == kernel.number
    kernel.write(f.add(f.add(inner, uint(2)), uint(4)))
    assert kernel.text().count("OpIAdd") == 1


@pytest.mark.parametrize("width", [16, 32, 64])
def test_constants_of_sums_are_added_last(width: int) -> None:
    """So that numbers that differ by constants share a register; narrow sums stay as they are."""
    kernel = Kernel()
    f, uint = kernel.f, kernel.module.uint
    number = f.zero_extend(kernel.number, width)
    start = f.mul(number, number)
    ends = [f.add(start, f.add(number, uint(constant, width))) for constant in (1, 2)]
    both = f.add(ends[0], f.add(number, uint(2**width - 1, width)))
    if width == 16:
        assert all(f.base_and_constant(end) == (end, 0) for end in ends)
    else:
        base = f.add(start, number)
        assert [f.base_and_constant(end) for end in ends] == [(base, 1), (base, 2)]
        assert both == f.add(base, number)  # 1 and -1
    for value in (*ends, both):
        kernel.write(f.zero_extend(value, 32))
    assert kernel.text().count("OpIAdd") == (6 if width == 16 else 4)


def test_signed_comparisons_of_64_bits_are_unsigned_where_the_driver_narrows_them():
    kernel = Kernel()
    f, module = kernel.f, kernel.module
    f.faults = Faults(narrows_comparisons=True)
    wide = f.add(f.zero_extend(kernel.number, 64), module.uint(7, 64))
    for number in (
        f.compare(op.SLessThan, wide, module.uint(5, 64)),
        f.compare(op.SLessThan, kernel.number, f.mul(*[kernel.number] * 2)),
    ):
        kernel.write(f.select(number, module.uint(1), module.uint(0)))
    text = kernel.text()
    assert text.count("OpULessThan") == 1 and text.count("OpSLessThan") == 1 and text.count("OpBitwiseXor") == 1


def test_equality_and_floats_of_64_bits_do_not_ask_for_a_sign_where_the_driver_narrows_comparisons():
    kernel = Kernel()
    f, module = kernel.f, kernel.module
    f.faults = Faults(narrows_comparisons=True)
    wide = f.add(f.zero_extend(kernel.number, 64), module.uint(7, 64))
    sign = f.binary(op.ShiftRightArithmetic, wide, module.uint(63, 64))
    equal = f.compare(op.INotEqual, sign, module.uint(0, 64))
    kernel.write(f.select(equal, module.uint(1), module.uint(0)))
    kernel.write(f.bitcast(f.integer_to_float(module.float(32), wide, True), module.int(32)))
    kernel.write(f.bitcast(f.integer_to_float(module.float(32), kernel.number, True), module.int(32)))
    text = kernel.text()
    assert text.count("OpConvertSToF") == 1 and text.count("OpConvertUToF") == 1 and text.count("OpFNegate") == 1
    assert text.count("OpBitwiseXor") == 2 and text.count("OpULessThan") == 1
