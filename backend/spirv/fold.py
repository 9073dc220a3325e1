"""Constant folding and algebraic identities for the integer and boolean instructions that address arithmetic emits.

Floating-point instructions are never folded: their rounding is the device's.
"""

from __future__ import annotations

from collections.abc import Callable

from . import opcodes as op


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _shift_left(a: int, b: int, width: int) -> int | None:
    return a << b if b < width else None


def _shift_right(a: int, b: int, width: int) -> int | None:
    return a >> b if b < width else None


def _shift_right_signed(a: int, b: int, width: int) -> int | None:
    return _signed(a, width) >> b if b < width else None


#: opcode → value of (a, b, width) for unsigned a and b; the result is taken modulo 2^width.
BINARY: dict[int, Callable[[int, int, int], int | None]] = {
    op.IAdd: lambda a, b, w: a + b,
    op.ISub: lambda a, b, w: a - b,
    op.IMul: lambda a, b, w: a * b,
    op.UDiv: lambda a, b, w: a // b if b else None,
    op.UMod: lambda a, b, w: a % b if b else None,
    op.BitwiseAnd: lambda a, b, w: a & b,
    op.BitwiseOr: lambda a, b, w: a | b,
    op.BitwiseXor: lambda a, b, w: a ^ b,
    op.ShiftLeftLogical: _shift_left,
    op.ShiftRightLogical: _shift_right,
    op.ShiftRightArithmetic: _shift_right_signed,
}

COMPARE: dict[int, Callable[[int, int, int], bool]] = {
    op.IEqual: lambda a, b, w: a == b,
    op.INotEqual: lambda a, b, w: a != b,
    op.ULessThan: lambda a, b, w: a < b,
    op.ULessThanEqual: lambda a, b, w: a <= b,
    op.UGreaterThan: lambda a, b, w: a > b,
    op.UGreaterThanEqual: lambda a, b, w: a >= b,
    op.SLessThan: lambda a, b, w: _signed(a, w) < _signed(b, w),
    op.SLessThanEqual: lambda a, b, w: _signed(a, w) <= _signed(b, w),
    op.SGreaterThan: lambda a, b, w: _signed(a, w) > _signed(b, w),
    op.SGreaterThanEqual: lambda a, b, w: _signed(a, w) >= _signed(b, w),
}

#: Comparisons whose outcome sign extension does not change.
SIGNED_COMPARE = frozenset(
    {op.IEqual, op.INotEqual, op.SLessThan, op.SLessThanEqual, op.SGreaterThan, op.SGreaterThanEqual}
)

#: Comparison of signed numbers → the same of unsigned ones: of both with the sign flipped.
UNSIGNED = {
    op.SLessThan: op.ULessThan,
    op.SLessThanEqual: op.ULessThanEqual,
    op.SGreaterThan: op.UGreaterThan,
    op.SGreaterThanEqual: op.UGreaterThanEqual,
}

#: opcode → right operand that leaves the left one as it is.
RIGHT_IDENTITY = {
    op.IAdd: 0,
    op.ISub: 0,
    op.IMul: 1,
    op.BitwiseOr: 0,
    op.BitwiseXor: 0,
    op.ShiftLeftLogical: 0,
    op.ShiftRightLogical: 0,
    op.ShiftRightArithmetic: 0,
    op.UDiv: 1,
    op.SDiv: 1,
}

#: opcodes that are zero when either operand is.
ZERO_ABSORBS = frozenset({op.IMul, op.BitwiseAnd})

#: opcodes that an operand's own definition, or a constant operand, may make unnecessary.
SIMPLER = frozenset({op.BitwiseXor, op.Bitcast, op.Select, op.LogicalEqual, op.LogicalNotEqual})

#: opcodes whose results those simplifications look through.
TRANSPARENT = frozenset({op.BitwiseXor, op.Bitcast, op.LogicalNot})


def _ways() -> dict[int, int]:
    """The table WAYS."""
    found: dict[int, int] = {}
    for bit, opcodes in (
        (COMMUTES, op.COMMUTATIVE),
        (SIMPLIFIES, SIMPLER),
        (DEFINES, TRANSPARENT),
        (CONTRACTS, op.CONTRACTIBLE | {op.ExtInst, op.FConvert}),
    ):
        for opcode in opcodes:
            found[opcode] = found.get(opcode, 0) | bit
    return found


#: Opcode → which of the sets above it is in, as the bits of one number: what is asked for each instruction. Of ExtInst
#: and FConvert some may be contracted.
COMMUTES, SIMPLIFIES, DEFINES, CONTRACTS = 1, 2, 4, 8
WAYS = _ways()
