"""Rules of tensor shapes, loads and what has no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ttgir.ir import DenseAttr, Operation
from ...ttgir.types import Type
from .info import MAX_DIVISOR, AxisInfo, columns, divisor_at, divisor_of, only_filled_once, shape_of, step_of, unknown
from .rule_table import rule


def best_divisor(info: AxisInfo, type_: Type) -> int:
    """What divides every element, as the best of all dimensions says."""
    step = step_of(type_)
    return max(divisor_of(info, dim, step) for dim in range(info.rank))


@rule("tt.splat")
def _splat(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    shape = shape_of(operation.result.type)
    return AxisInfo((1,) * len(shape), info.divisibility[:1] * len(shape), shape, info.constant)


@rule("tt.broadcast")
def _broadcast(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    before, after = shape_of(operation["src"].type), shape_of(operation.result.type)
    return AxisInfo(
        info.contiguity,
        info.divisibility,
        tuple(
            extent if old == 1 else constancy
            for old, extent, constancy in zip(before, after, info.constancy, strict=True)
        ),
        info.constant,
    )


@rule("tt.expand_dims")
def _expand_dims(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    axis = int(operation.attribute("axis"))
    everywhere = best_divisor(info, operation["src"].type)

    def insert(entries: tuple[int, ...], entry: int) -> tuple[int, ...]:
        return entries[:axis] + (entry,) + entries[axis:]

    return AxisInfo(
        insert(info.contiguity, 1), insert(info.divisibility, everywhere), insert(info.constancy, 1), info.constant
    )


@rule("tt.trans")
def _transpose(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    order = operation.attribute("order")
    order = order.values if isinstance(order, DenseAttr) else order
    return replace(
        columns([(info.contiguity[dim], info.divisibility[dim], info.constancy[dim]) for dim in order]),
        constant=info.constant,
    )


@rule("tt.reshape")
def _reshape(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = operands
    before, after = operation["src"].type, operation.result.type
    if info.constant is not None:
        return replace(
            unknown(after),
            divisibility=info.divisibility[:1] * len(shape_of(after)),
            constancy=shape_of(after),
            constant=info.constant,
        )
    everywhere = best_divisor(info, before)
    rank = len(shape_of(after))
    claims = [(1, everywhere, 1)] * rank
    if not operation.flag("allow_reorder"):  # row-major: lines of the last dimension are cut or joined
        extent = min(shape_of(before)[-1], shape_of(after)[-1])
        contiguity = min(info.contiguity[-1], extent)
        divisor = divisor_at(info, info.rank - 1, contiguity, step_of(before))
        claims[-1] = contiguity, divisor, min(info.constancy[-1], extent)
    return columns(claims)


@rule("spirv.spill")
def _spill(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    return operands[0] if only_filled_once(operation.result) else unknown(operation.result.type)


@rule("spirv.strip")
def _strip(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    """It begins at its own multiple extent, a power of two."""
    info, type_ = operands[0], operation.result.type
    if operation.attribute("whole") is not None:  # of another shape
        return unknown(type_)
    claims = []
    for dim, extent in enumerate(shape_of(type_)):
        contiguity = min(info.contiguity[dim], extent)
        divisor = divisor_at(info, dim, contiguity, step_of(type_))
        claims.append((contiguity, divisor, min(info.constancy[dim], extent)))
    return replace(columns(claims), constant=info.constant)


@rule("tt.load")
def _load(operation: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
    if operation.attribute("isVolatile") or operation["ptr"].type == operation.result.type:
        return unknown(operation.result.type)
    pointer = operands[0]
    if pointer.rank != len(shape_of(operation.result.type)):
        return unknown(operation.result.type)
    return replace(
        unknown(operation.result.type),
        constancy=tuple(map(min, *(operand.constancy for operand in operands), pointer.constancy)),
    )


@rule("ub.poison")
def _poison(operation: Operation, _: Sequence[AxisInfo]) -> AxisInfo:
    shape = shape_of(operation.result.type)
    return AxisInfo((1,) * len(shape), (MAX_DIVISOR,) * len(shape), shape)
