"""What instructions give for operands that are known: integers, signed where not said otherwise, of one width."""

from __future__ import annotations

from collections.abc import Callable


def _unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


#: Instruction → the result of its operands, and their width.
INTEGERS: dict[str, Callable[[int, int, int], int]] = {
    "OpIAdd": lambda a, b, w: a + b,
    "OpISub": lambda a, b, w: a - b,
    "OpIMul": lambda a, b, w: a * b,
    "OpBitwiseAnd": lambda a, b, w: a & b,
    "OpBitwiseOr": lambda a, b, w: a | b,
    "OpBitwiseXor": lambda a, b, w: a ^ b,
    "OpShiftLeftLogical": lambda a, b, w: a << (_unsigned(b, w) % w),
    "OpShiftRightLogical": lambda a, b, w: _unsigned(a, w) >> (_unsigned(b, w) % w),
    "OpShiftRightArithmetic": lambda a, b, w: a >> (_unsigned(b, w) % w),
    "OpUDiv": lambda a, b, w: _unsigned(a, w) // (_unsigned(b, w) or 1),
    "OpUMod": lambda a, b, w: _unsigned(a, w) % (_unsigned(b, w) or 1),
}

#: Comparison → whether it holds.
COMPARISONS: dict[str, Callable[[int, int, int], int]] = {
    "OpIEqual": lambda a, b, w: int(a == b),
    "OpINotEqual": lambda a, b, w: int(a != b),
    "OpSLessThan": lambda a, b, w: int(a < b),
    "OpSLessThanEqual": lambda a, b, w: int(a <= b),
    "OpSGreaterThan": lambda a, b, w: int(a > b),
    "OpSGreaterThanEqual": lambda a, b, w: int(a >= b),
    "OpULessThan": lambda a, b, w: int(_unsigned(a, w) < _unsigned(b, w)),
    "OpULessThanEqual": lambda a, b, w: int(_unsigned(a, w) <= _unsigned(b, w)),
    "OpUGreaterThan": lambda a, b, w: int(_unsigned(a, w) > _unsigned(b, w)),
    "OpUGreaterThanEqual": lambda a, b, w: int(_unsigned(a, w) >= _unsigned(b, w)),
}

#: Operations on conditions, which are 0 or 1.
CONDITIONS: dict[str, Callable[..., int]] = {
    "OpLogicalAnd": lambda a, b: a & b,
    "OpLogicalOr": lambda a, b: a | b,
    "OpLogicalEqual": lambda a, b: int(a == b),
    "OpLogicalNotEqual": lambda a, b: int(a != b),
    "OpLogicalNot": lambda a: 1 - a,
    "OpSelect": lambda condition, a, b: a if condition else b,
}
