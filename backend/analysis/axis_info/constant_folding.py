"""What TTIR's operations on integers make of numbers that are known.

A number of an integer type is held signed, within the type's bits (``info.wrapped``); an i1 is 0 or 1. Results are not
wrapped.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from ...ttgir.ir import Operation
from .info import unsigned, width_of

Binary = Callable[[int, int], int]


def _truncating_divide(a: int, b: int) -> int:
    """Integer division that truncates, as the hardware's."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_SIGNED: Mapping[str, Binary] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.divsi": _truncating_divide,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.remsi": lambda a, b: a - b * _truncating_divide(a, b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
}
_UNSIGNED: Mapping[str, Binary] = {
    "arith.divui": lambda a, b: a // b,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.remui": lambda a, b: a % b,
    "arith.maxui": max,
    "arith.minui": min,
    "arith.shrui": lambda a, b: a >> b,
}
_SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def binary(operation: Operation, a: int, b: int) -> int | None:
    """The result of an operation on two integers; None for others, and where it is not defined."""
    name, type_ = operation.name, operation.result.type
    if name in _SHIFTS and not 0 <= b < width_of(type_):
        return None
    try:
        if name in _SIGNED:
            return _SIGNED[name](a, b)
        if name in _UNSIGNED:
            return _UNSIGNED[name](unsigned(a, type_), unsigned(b, type_))
    except ZeroDivisionError:
        pass
    return None


def compare(operation: Operation, a: int, b: int) -> bool:
    """The result of ``arith.cmpi``."""
    predicate, type_ = operation.attribute("predicate"), operation["lhs"].type
    if predicate in ("eq", "ne"):
        return _COMPARISONS[predicate](a, b)
    if predicate[0] == "u":
        a, b = unsigned(a, type_), unsigned(b, type_)
    elif width_of(type_) == 1:
        a, b = -a, -b
    return _COMPARISONS[predicate[1:]](a, b)


def extend(operation: Operation, a: int) -> int:
    """The result of ``arith.extsi``, ``arith.extui`` and casts to and from ``index``."""
    source = operation["src"].type
    if operation.name in ("arith.extsi", "arith.index_cast"):
        return -a if width_of(source) == 1 else a
    return unsigned(a, source)
