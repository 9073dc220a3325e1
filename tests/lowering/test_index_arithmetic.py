"""Index arithmetic over GF(2): exclusive or where bits meet, additions elsewhere."""

from triton.backends.spirv.lowering.index_arithmetic import combine
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.module import ModuleBuilder


def numbers() -> tuple[FunctionBuilder, int, int]:
    """A function and two numbers that are not known."""
    module = ModuleBuilder()
    f = FunctionBuilder(module, module.void, [module.u32, module.u32])
    return f, *f.parameters


def instructions(f: FunctionBuilder, opcode: int) -> int:
    f.return_()
    return sum(instruction[0] == opcode for instruction in f._body)


def test_bits_that_do_not_meet_are_added():
    f, a, b = numbers()
    assert combine(f, a, 0b0011, b, 0b1100) == f.add(a, b)


def test_bits_that_meet_are_exclusive():
    f, a, b = numbers()
    assert combine(f, a, 0b0110, b, 0b1100) == f.xor(a, b)


def test_of_a_constant_only_what_meets_is_exclusive():
    f, a, _ = numbers()
    uint = f.module.uint
    for constant in (0b0_00100, 0b1_00100, 0b10_00100, 0b11_00100):
        combined = combine(f, a, 0b11100, uint(constant), constant)
        assert f.base_and_constant(combined) == (f.xor(a, uint(0b100)), constant & ~0b11100)
    assert instructions(f, op.BitwiseXor) == 1


def test_a_constant_whose_mask_says_more_than_it_sets():
    f, a, _ = numbers()
    assert combine(f, a, 0b11100, f.module.uint(0), 0b111111) == a
