"""Folding gives what the instruction would."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from triton.backends.spirv.spirv import fold
from triton.backends.spirv.spirv import opcodes as op
from triton.backends.spirv.spirv.function import FunctionBuilder
from triton.backends.spirv.spirv.module import ModuleBuilder

WIDTHS = st.sampled_from((8, 16, 32, 64))


def builder() -> tuple[ModuleBuilder, FunctionBuilder]:
    module = ModuleBuilder()
    return module, FunctionBuilder(module, module.void)


def numpy_result(opcode: int, a: int, b: int, width: int) -> int | None:
    """The instruction on NumPy integers of that width; None where SPIR-V leaves it undefined."""
    unsigned, signed = np.dtype(f"u{width // 8}"), np.dtype(f"i{width // 8}")
    x, y = np.array([a], unsigned), np.array([b], unsigned)
    if opcode in (op.UDiv, op.UMod):
        return None if b == 0 else int((x // y if opcode == op.UDiv else x % y)[0])
    if opcode in (op.ShiftLeftLogical, op.ShiftRightLogical, op.ShiftRightArithmetic):
        if b >= width:
            return None
        if opcode == op.ShiftRightArithmetic:
            return int((x.view(signed) >> y.view(signed)).view(unsigned)[0])
        return int((x << y if opcode == op.ShiftLeftLogical else x >> y)[0])
    function = {
        op.IAdd: np.add,
        op.ISub: np.subtract,
        op.IMul: np.multiply,
        op.BitwiseAnd: np.bitwise_and,
        op.BitwiseOr: np.bitwise_or,
        op.BitwiseXor: np.bitwise_xor,
    }[opcode]
    with np.errstate(over="ignore"):
        return int(function(x, y)[0])


@hypothesis.given(st.data())
def test_constants(data):
    width = data.draw(WIDTHS)
    edges = st.sampled_from((0, 1, width - 1, width, 2 ** (width - 1), 2**width - 1))
    numbers = st.one_of(st.integers(0, 2**width - 1), edges)
    opcode, a, b = data.draw(st.sampled_from(sorted(fold.BINARY))), data.draw(numbers), data.draw(numbers)
    module, f = builder()
    result = f.binary(opcode, module.uint(a, width), module.uint(b, width))
    expected = numpy_result(opcode, a, b, width)
    if expected is not None:
        assert module.constants[result] == expected and f.type_of(result) == module.int(width)


#: Instruction → the same on NumPy's arrays of two types of 8 bits, unsigned and signed.
COMPARISONS = {
    op.IEqual: lambda a, b, x, y: a == b,
    op.INotEqual: lambda a, b, x, y: a != b,
    op.ULessThan: lambda a, b, x, y: a < b,
    op.ULessThanEqual: lambda a, b, x, y: a <= b,
    op.UGreaterThan: lambda a, b, x, y: a > b,
    op.UGreaterThanEqual: lambda a, b, x, y: a >= b,
    op.SLessThan: lambda a, b, x, y: x < y,
    op.SLessThanEqual: lambda a, b, x, y: x <= y,
    op.SGreaterThan: lambda a, b, x, y: x > y,
    op.SGreaterThanEqual: lambda a, b, x, y: x >= y,
}


SHIFTS = (op.ShiftLeftLogical, op.ShiftRightLogical, op.ShiftRightArithmetic)
#: The same of instructions that give numbers.
NUMBERS = {
    op.IAdd: lambda a, b, x, y: a + b,
    op.ISub: lambda a, b, x, y: a - b,
    op.IMul: lambda a, b, x, y: a * b,
    op.UDiv: lambda a, b, x, y: a // b,
    op.UMod: lambda a, b, x, y: a % b,
    op.BitwiseAnd: lambda a, b, x, y: a & b,
    op.BitwiseOr: lambda a, b, x, y: a | b,
    op.BitwiseXor: lambda a, b, x, y: a ^ b,
    op.ShiftLeftLogical: lambda a, b, x, y: a << b,
    op.ShiftRightLogical: lambda a, b, x, y: a >> b,
    op.ShiftRightArithmetic: lambda a, b, x, y: (x >> y).view(np.uint8),
}


@pytest.mark.parametrize("opcode", fold.BINARY)
def test_every_pair_of_8_bits(opcode):
    a, b = (one.ravel().astype(np.uint8) for one in np.meshgrid(np.arange(256), np.arange(256)))
    with np.errstate(all="ignore"):
        expected = NUMBERS[opcode](a, b, a.view(np.int8), b.view(np.int8)).tolist()
    rule, divides, shifts = fold.BINARY[opcode], opcode in (op.UDiv, op.UMod), opcode in SHIFTS
    for x, y, right in zip(a.tolist(), b.tolist(), expected, strict=True):
        found = rule(x, y, 8)
        undefined = (divides and y == 0) or (shifts and y >= 8)
        assert (found is None) if undefined else (found is not None and found % 256 == right), (x, y)


@pytest.mark.parametrize("opcode", fold.COMPARE)
def test_every_comparison_of_8_bits(opcode):
    a, b = (one.ravel().astype(np.uint8) for one in np.meshgrid(np.arange(256), np.arange(256)))
    expected = COMPARISONS[opcode](a, b, a.view(np.int8), b.view(np.int8))
    rule = fold.COMPARE[opcode]
    assert [bool(rule(x, y, 8)) for x, y in zip(a.tolist(), b.tolist(), strict=True)] == expected.tolist()


@hypothesis.given(st.data())
def test_comparisons(data):
    width = data.draw(WIDTHS)
    numbers = st.one_of(st.integers(0, 2**width - 1), st.sampled_from((0, 2 ** (width - 1), 2**width - 1)))
    opcode, a, b = data.draw(st.sampled_from(sorted(fold.COMPARE))), data.draw(numbers), data.draw(numbers)
    unsigned, signed = np.dtype(f"u{width // 8}"), np.dtype(f"i{width // 8}")
    x, y = np.array([a], unsigned), np.array([b], unsigned)
    if opcode in (op.SLessThan, op.SLessThanEqual, op.SGreaterThan, op.SGreaterThanEqual):
        x, y = x.view(signed), y.view(signed)
    compare = {
        op.IEqual: np.equal,
        op.INotEqual: np.not_equal,
        op.ULessThan: np.less,
        op.SLessThan: np.less,
        op.ULessThanEqual: np.less_equal,
        op.SLessThanEqual: np.less_equal,
        op.UGreaterThan: np.greater,
        op.SGreaterThan: np.greater,
        op.UGreaterThanEqual: np.greater_equal,
        op.SGreaterThanEqual: np.greater_equal,
    }[opcode]
    module, f = builder()
    assert module.constants[f.compare(opcode, module.uint(a, width), module.uint(b, width))] is bool(compare(x, y)[0])


@hypothesis.given(st.data())
def test_extensions(data):
    old, new, signed = data.draw(WIDTHS), data.draw(WIDTHS), data.draw(st.booleans())
    value = data.draw(st.integers(0, 2**old - 1))
    module, f = builder()
    constant = module.uint(value, old)
    result = f.sign_extend(constant, new) if signed else f.zero_extend(constant, new)
    number = value - 2**old if signed and value >> (old - 1) else value
    assert module.constants[result] == number % 2**new and f.type_of(result) == module.int(new)


@pytest.mark.parametrize(
    ("opcode", "right", "kept"),
    [
        (op.IAdd, 0, True),
        (op.ISub, 0, True),
        (op.IMul, 1, True),
        (op.BitwiseOr, 0, True),
        (op.BitwiseXor, 0, True),
        (op.UDiv, 1, True),
        (op.ShiftLeftLogical, 0, True),
        (op.IMul, 0, False),
        (op.BitwiseAnd, 0, False),
    ],
)
def test_identities(opcode, right, kept):
    module, f = builder()
    value = f.effect(op.Load, module.u32, 1)
    constant = module.uint(right)
    assert f.binary(opcode, value, constant) == (value if kept else constant)
    if opcode in op.COMMUTATIVE:
        assert f.binary(opcode, constant, value) == (value if kept else constant)


def test_a_product_with_a_power_of_two_is_a_shift():
    module, f = builder()
    value = f.effect(op.Load, module.u32, 1)
    product = f.binary(op.IMul, value, module.uint(8))
    assert product == f.binary(op.ShiftLeftLogical, value, module.uint(3))


def test_division_by_zero_and_far_shifts_are_left_alone():
    module, f = builder()
    for opcode, right in ((op.UDiv, 0), (op.UMod, 0), (op.ShiftLeftLogical, 32), (op.ShiftRightArithmetic, 99)):
        assert f.binary(opcode, module.uint(5), module.uint(right)) not in module.constants
