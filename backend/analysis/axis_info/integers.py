"""Rules of integer arithmetic, comparisons, selection and casts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ttgir.ir import DenseAttr, Operation
from ...ttgir.types import FloatType, IndexType, IntegerType, PointerType, TensorType, element_type
from . import constant_folding
from .info import (
    MAX_DIVISOR,
    AxisInfo,
    by_dimension,
    constant,
    divisor_at,
    divisor_of,
    meet,
    pointee_bytes,
    power_of_two_divisor,
    shape_of,
    tamed,
    unknown,
    unsigned,
    width_of,
)
from .rule_table import rule
from .signs import never_negative


def _fold(operation: Operation, left: AxisInfo, right: AxisInfo) -> AxisInfo | None:
    """The result where both operands are constants and the operation is defined on them."""
    if left.constant is None or right.constant is None:
        return None
    value = constant_folding.binary(operation, left.constant, right.constant)
    return None if value is None else constant(operation.result.type, value)


def _both(left: AxisInfo, right: AxisInfo, dim: int) -> int:
    """The block in which both are constant."""
    return min(left.constancy[dim], right.constancy[dim])


@rule("arith.constant")
def _constant(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    value: Any = operation.attribute("value")
    type_ = operation.result.type
    if isinstance(value, DenseAttr):
        if not value.splat:
            return unknown(type_)
        value = value.values[0]
    if isinstance(element_type(type_), IntegerType | IndexType) and isinstance(value, int):
        return constant(type_, value)
    return replace(unknown(type_), constancy=shape_of(type_))


@rule("tt.make_range")
def _make_range(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    start, end = int(operation.attribute("start")), int(operation.attribute("end"))
    return AxisInfo((power_of_two_divisor(end - start),), (power_of_two_divisor(start),), (1,))


@rule("arith.addi", "arith.subi")
def _add(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    folded = _fold(operation, left, right)
    if folded:
        return folded
    subtract = operation.name == "arith.subi"

    def claims(dim: int) -> tuple[int, int, int]:
        contiguity = min(left.contiguity[dim], right.constancy[dim])
        if not subtract:
            contiguity = max(contiguity, min(left.constancy[dim], right.contiguity[dim]))
        return (
            contiguity,
            min(divisor_at(left, dim, contiguity), divisor_at(right, dim, contiguity)),
            _both(left, right, dim),
        )

    return by_dimension(left, claims)


@rule("tt.addptr")
def _addptr(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    pointer, offset = operands
    step = pointee_bytes(operation.result.type)
    if width_of(operation["offset"].type) < 64:
        offset = tamed(offset)

    def claims(dim: int) -> tuple[int, int, int]:
        contiguity = max(
            min(pointer.contiguity[dim], offset.constancy[dim]), min(pointer.constancy[dim], offset.contiguity[dim])
        )
        moved = min(divisor_at(offset, dim, contiguity) * power_of_two_divisor(step), MAX_DIVISOR)
        return (
            contiguity,
            min(divisor_at(pointer, dim, contiguity, step), moved),
            min(pointer.constancy[dim], offset.constancy[dim]),
        )

    return by_dimension(pointer, claims)


@rule("arith.muli")
def _multiply(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if left.constant == 1:
        return right
    if right.constant == 1:
        return left
    if left.constant == 0 or right.constant == 0:
        return constant(operation.result.type, 0)
    return _fold(operation, left, right) or by_dimension(
        left, lambda dim: (1, min(divisor_of(left, dim) * divisor_of(right, dim), MAX_DIVISOR), _both(left, right, dim))
    )


@rule("arith.divsi", "arith.divui")
def _divide(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 1:
        return left
    folded = _fold(operation, left, right)
    if folded:
        return folded
    divisor = right.constant
    if divisor is not None:
        divisor = abs(divisor) if operation.name == "arith.divsi" else unsigned(divisor, operation.result.type)

    blocks = _blocks(operation, left, right)

    def claims(dim: int) -> tuple[int, int, int]:
        both = _both(left, right, dim)
        exact = divisor_of(left, dim)
        quotient = 1
        if divisor and divisor & (divisor - 1) == 0 and exact >= divisor:
            quotient = exact // divisor
        return 1, quotient, max(both, blocks[dim])

    return by_dimension(left, claims)


def _blocks(operation: Operation, left: AxisInfo, right: AxisInfo) -> tuple[int, ...]:
    """Blocks in which the dividend counts up between two multiples of the divisor: there quotients are equal, and
    remainders count up. Division truncates, so that of negative numbers the first in a block is one too few."""
    blocks = tuple(
        min(left.contiguity[dim], left.divisibility[dim], right.constancy[dim], divisor_of(right, dim))
        for dim in range(left.rank)
    )
    signed = operation.name in ("arith.divsi", "arith.remsi")
    if signed and max(blocks) > 1 and not never_negative(operation["lhs"]):
        return (1,) * left.rank
    return blocks


@rule("arith.remsi", "arith.remui")
def _remainder(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 1:
        return constant(operation.result.type, 0)

    blocks = _blocks(operation, left, right)

    def claims(dim: int) -> tuple[int, int, int]:
        return (blocks[dim], min(divisor_at(left, dim, blocks[dim]), divisor_of(right, dim)), _both(left, right, dim))

    return _fold(operation, left, right) or by_dimension(left, claims)


@rule("arith.andi", "arith.ori", "arith.xori")
def _bitwise(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if operation.name != "arith.andi":
        if right.constant == 0:
            return left
        if left.constant == 0:
            return right
    combine = max if operation.name == "arith.andi" else min
    return _fold(operation, left, right) or by_dimension(
        left, lambda dim: (1, combine(divisor_of(left, dim), divisor_of(right, dim)), _both(left, right, dim))
    )


@rule("arith.shli")
def _shift_left(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 0:
        return left
    amount = right.constant if right.constant is not None and 0 <= right.constant < 64 else 0
    return _fold(operation, left, right) or by_dimension(
        left, lambda dim: (1, min(divisor_of(left, dim) << amount, MAX_DIVISOR), _both(left, right, dim))
    )


@rule("arith.shrsi", "arith.shrui")
def _shift_right(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    if right.constant == 0:
        return left
    amount = right.constant

    def claims(dim: int) -> tuple[int, int, int]:
        both = _both(left, right, dim)
        if amount is None or not 0 < amount < width_of(operation.result.type):
            return 1, 1, both
        block = min(left.contiguity[dim], left.divisibility[dim], 1 << amount)
        return 1, max(divisor_of(left, dim) >> amount, 1), max(both, block)

    return _fold(operation, left, right) or by_dimension(left, claims)


@rule("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
def _min_max(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    folded = _fold(operation, *operands)
    return folded or replace(meet(*(tamed(operand) for operand in operands)), constant=None)


@rule("arith.cmpi")
def _compare(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    left, right = operands
    predicate = operation.attribute("predicate")
    kind = predicate if predicate in ("eq", "ne") else predicate[1:]
    if left.constant is not None and right.constant is not None:
        return constant(operation.result.type, constant_folding.compare(operation, left.constant, right.constant))

    def claims(dim: int) -> tuple[int, int, int]:
        constancy = _both(left, right, dim)
        if kind in ("lt", "ge"):  # blocks of the left that cannot step over a multiple of the right
            constancy = max(constancy, _uncrossed(left, right, dim))
        elif kind in ("gt", "le"):
            constancy = max(constancy, _uncrossed(right, left, dim))
        return 1, 1, constancy

    return by_dimension(left, claims)


def _uncrossed(counting: AxisInfo, fixed: AxisInfo, dim: int) -> int:
    """Blocks in which ``counting`` counts up from a multiple of their size, and ``fixed`` is another such multiple."""
    return min(counting.contiguity[dim], counting.divisibility[dim], fixed.constancy[dim], divisor_of(fixed, dim))


@rule("arith.select")
def _select(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    condition, left, right = operands
    if condition.constant is not None:
        return left if condition.constant else right
    if not isinstance(operation["condition"].type, TensorType):
        return meet(left, right)
    blocks = tuple(map(min, condition.constancy, left.contiguity, right.contiguity))
    return AxisInfo(
        blocks,
        tuple(min(divisor_at(left, d, b), divisor_at(right, d, b)) for d, b in enumerate(blocks)),
        tuple(map(min, condition.constancy, left.constancy, right.constancy)),
        left.constant if left.constant == right.constant else None,
    )


@rule("arith.extsi", "arith.extui", "arith.index_cast", "arith.index_castui")
def _extend(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    if info.constant is not None:
        return constant(operation.result.type, constant_folding.extend(operation, info.constant))
    return tamed(info)


@rule("arith.trunci")
def _truncate(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    return info if info.constant is None else constant(operation.result.type, info.constant)


@rule("ttg.convert_layout")
def _same(_: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    return operands[0]


@rule("tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int")
def _reinterpret(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    steps = []
    for type_ in (operation["src"].type, operation.result.type):
        element = element_type(type_)
        if isinstance(element, FloatType):
            return replace(unknown(operation.result.type), constancy=info.constancy)
        steps.append(pointee_bytes(type_) if isinstance(element, PointerType) else 1)
    if steps[0] == steps[1]:
        return replace(info, constant=None)
    step = power_of_two_divisor(steps[0])
    return by_dimension(info, lambda dim: (1, divisor_of(info, dim, step), info.constancy[dim]))
