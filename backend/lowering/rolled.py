"""Long code for each register in a loop over registers, so that its size does not grow with the tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..planning.plans import Rolled, Unmade
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import StorageClass
from ..ttgir.ir import Operation
from .elementwise import map_registers, map_wanted
from .lowering import Lowering, UnmadeRegisters


def map_rolled(ctx: Lowering, operation: Operation, emit: Callable[..., int]) -> None:
    """map_registers for long code: in a loop over registers where so many of them differ as planned."""
    plan = ctx.plan_of(operation, Rolled)
    rows = list(zip(*(ctx.registers(operand) for operand in operation.operands), strict=True))
    if len(set(rows)) <= plan.unrolled:
        map_registers(ctx, operation, emit)
        return
    types = [ctx.type_id(operation.result.type)]
    ctx.define(operation.result, [value for (value,) in for_each(ctx, plan, rows, types, lambda *ids: [emit(*ids)])])


def map_unpacked(
    ctx: Lowering, operation: Operation, rows: Sequence[tuple[int, ...]], emit: Callable[..., int]
) -> None:
    """Defines the result of an operation that unpacks, ``emit(*row)`` for each of ``rows``, as planning/rolling.py
    says: here, in a loop over registers, or where it is used."""
    plan, result = ctx.plan.plans.get(operation), operation.result
    if isinstance(plan, Unmade):
        ctx[result] = UnmadeRegisters(rows, emit)
    elif isinstance(plan, Rolled) and len(set(rows)) > plan.unrolled:
        values = for_each(ctx, plan, rows, [ctx.type_id(result.type)], lambda *ids: [emit(*ids)])
        ctx.define(result, [value for (value,) in values])
    else:
        ctx.define(result, map_wanted(ctx, operation, rows, emit))


def map_made(ctx: Lowering, operation: Operation, emit: Callable[..., int]) -> None:
    """map_registers for an operation that may have to compute registers of its operands, in a loop over registers."""
    operands = [ctx[operand] for operand in operation.operands]
    if not any(isinstance(operand, UnmadeRegisters) for operand in operands):
        map_registers(ctx, operation, emit)
        return
    columns: list[Sequence[tuple[int, ...]]] = []
    for operand, value in zip(operands, operation.operands, strict=True):
        columns.append(operand.rows if isinstance(operand, UnmadeRegisters) else [(id,) for id in ctx.registers(value)])
    widths = [len(column[0]) for column in columns]

    def emit_row(*ids: int) -> list[int]:
        given, values = iter(ids), []
        for operand, width in zip(operands, widths, strict=True):
            part = [next(given) for _ in range(width)]
            values.append(operand.emit(*part) if isinstance(operand, UnmadeRegisters) else part[0])
        return [emit(*values)]

    rows = [tuple(id for part in parts for id in part) for parts in zip(*columns, strict=True)]
    made = for_each(ctx, ctx.plan_of(operation, Rolled), rows, [ctx.type_id(operation.result.type)], emit_row)
    ctx.define(operation.result, [value for (value,) in made])


def for_each(
    ctx: Lowering,
    plan: Rolled,
    rows: Sequence[tuple[int, ...]],
    result_types: Sequence[int],
    emit: Callable[..., Sequence[int]],
) -> Iterator[Sequence[int]]:
    """The results of ``emit(*row)``, which have the types ``result_types``, for each of ``rows``: one after the other
    as they are asked for, or all in a loop where so many of them differ as planned."""
    distinct, known = list(dict.fromkeys(rows)), dict[tuple[int, ...], Sequence[int]]()
    if len(distinct) > plan.unrolled:
        known.update(zip(distinct, _in_rounds(ctx, distinct, result_types, plan.together, emit), strict=True))
    for row in rows:
        if row not in known:
            known[row] = emit(*row)
        yield known[row]


def in_turn(
    ctx: Lowering,
    plan: Rolled,
    rows: Sequence[tuple[int, ...]],
    result_types: Sequence[int],
    emit: Callable[..., Sequence[int]],
) -> list[Sequence[int]]:
    """Computes what has effects, in a loop if there are many rows: each row counts, also one that equals another. A row
    of zeros has no effect."""
    if len(rows) > plan.unrolled:
        return [*_in_rounds(ctx, rows, result_types, plan.together, emit)]
    return [emit(*row) for row in rows]


def _in_rounds(
    ctx: Lowering,
    rows: Sequence[tuple[int, ...]],
    result_types: Sequence[int],
    together: int,
    emit: Callable[..., Sequence[int]],
) -> list[list[int]]:
    """The results of ``emit(*row)`` for each of ``rows``, which have the types ``result_types``: in a loop,
    ``together`` rows a round. All rows have values of the same types."""
    f, module = ctx.f, ctx.module
    count, types = len(rows), [f.type_of(value) for value in rows[0]]
    # The last round computes rows of its own where the count is not a multiple, from zeros.
    rounded = -(-count // together) * together

    def array(type_id: int) -> tuple[int, int]:
        return f.variable(module.array(type_id, rounded)), module.pointer(StorageClass.Function, type_id)

    inputs, outputs = [array(type_id) for type_id in types], [array(type_id) for type_id in result_types]
    padded = [*rows, *[tuple(map(module.null, types))] * (rounded - count)]
    for index, row in enumerate(padded):
        for (variable, pointer), value in zip(inputs, row, strict=True):
            f.store(f.access(pointer, variable, module.uint(index)), value)

    def body(carried: list[int]) -> list[int]:
        for place in range(together):
            index = f.add(carried[0], module.uint(place))
            values = [
                f.load(type_id, f.access(pointer, variable, index))
                for (variable, pointer), type_id in zip(inputs, types, strict=True)
            ]
            targets = [f.access(pointer, variable, index) for variable, pointer in outputs]
            for target, result in zip(targets, emit(*values), strict=True):
                f.store(target, result)
        return [f.add(carried[0], module.uint(together))]

    f.loop(
        [module.uint(0)],
        lambda carried: f.compare(op.ULessThan, carried[0], module.uint(rounded)),
        body,
        LOOP_CONTROL_DONT_UNROLL,
    )
    return [
        [
            f.load(type_id, f.access(pointer, variable, module.uint(index)))
            for (variable, pointer), type_id in zip(outputs, result_types, strict=True)
        ]
        for index in range(count)
    ]
