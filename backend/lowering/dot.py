"""``tt.dot`` on plain multiply-adds: the accumulator is blocked, each lane owns all of K for its rows and columns.

The loop over K is a loop in the emitted code. Its body holds as many steps as keep it under the target's budget of
multiply-adds: further unrolling would only take longer to compile. If there are more accumulators than the target keeps
in registers, rectangles of them are updated one after the other, each in its own loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..analysis.matrix_dots import is_matrix_dot, unfolded
from ..layouts.linear import LinearLayout, unflatten
from ..planning.plans import Dot
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL
from ..spirv.opcodes import Glsl
from ..ttgir.encodings import BlockedEncoding
from ..ttgir.ir import Operation
from ..ttgir.operations.dots import added_in
from ..ttgir.types import TensorType, Type, element_type
from .dot_operands import Fetch, OperandSource, as_type, indexed, operand
from .errors import UnsupportedOperation
from .lowering import Lowering
from .matrix_dot import lower_matrix_dot
from .registry import lowers


@dataclass(frozen=True)
class Accumulator:
    """Where one accumulator register lies in its tile, counted from the lane's own origin."""

    batch: tuple[int, ...]
    row: int
    column: int


def _places(layout: LinearLayout) -> list[Accumulator]:
    points = (unflatten(place, layout.shape) for place in layout.images("register"))
    return [Accumulator(point[:-2], point[-2], point[-1]) for point in points]


@lowers("tt.dot")
def _dot(ctx: Lowering, operation: Operation) -> None:
    a, b, accumulator = operation.operands
    type_ = accumulator.type
    assert isinstance(type_, TensorType) and isinstance(a.type, TensorType)
    if is_matrix_dot(operation):
        lower_matrix_dot(ctx, operation)
        return
    if not isinstance(unfolded(type_.encoding), BlockedEncoding):
        raise UnsupportedOperation(operation, f"an accumulator with encoding {type_.encoding} is not supported")
    compute = _compute_type(operation, type_.element)
    result = type_.element
    places = _places(ctx.layout(type_))
    steps = a.type.shape[-1]
    rows = operand(ctx, a, axis=-2, k_axis=-1, compute=compute)
    columns = operand(ctx, b, axis=-1, k_axis=-2, compute=compute)
    multiply_add = _multiply_add(ctx, compute)
    totals = [as_type(ctx, value, result, compute) for value in ctx.registers(accumulator)]
    plan = ctx.plan_of(operation, Dot)
    unroll = plan.unroll
    if plan.looped:
        rows, columns = indexed(ctx, plan, rows, columns)
    for part in plan.parts:
        chosen = [places[register] for register in part]
        left_keys = list(dict.fromkeys((*place.batch, place.row) for place in chosen))
        right_keys = list(dict.fromkeys((*place.batch, place.column) for place in chosen))

        def step(
            totals: list[int],
            fetch_row: Fetch,
            fetch_column: Fetch,
            k: int,
            chosen: list[Accumulator] = chosen,
            left_keys: list[tuple[int, ...]] = left_keys,
            right_keys: list[tuple[int, ...]] = right_keys,
        ) -> list[int]:
            left = {key: fetch_row(key, k) for key in left_keys}
            right = {key: fetch_column(key, k) for key in right_keys}
            return [
                multiply_add(left[*place.batch, place.row], right[*place.batch, place.column], total)
                for place, total in zip(chosen, totals, strict=True)
            ]

        initial = [totals[register] for register in part]
        if unroll == steps:
            zero = ctx.module.uint(0)
            fetch_row, fetch_column = rows.at(zero, steps), columns.at(zero, steps)
            for k in range(steps):
                initial = step(initial, fetch_row, fetch_column, k)
        else:
            initial = _loop_over_k(ctx, steps, unroll, initial, rows, columns, step)
        for register, total in zip(part, initial, strict=True):
            totals[register] = total
    ctx.define(operation.result, [as_type(ctx, total, compute, result) for total in totals])


def _loop_over_k(
    ctx: Lowering,
    steps: int,
    unroll: int,
    initial: list[int],
    rows: OperandSource,
    columns: OperandSource,
    step: Callable[[list[int], Fetch, Fetch, int], list[int]],
) -> list[int]:
    f, module = ctx.f, ctx.module

    def body(carried: list[int]) -> list[int]:
        k, *totals = carried
        fetch_row, fetch_column = rows.at(k, unroll), columns.at(k, unroll)
        for offset in range(unroll):
            totals = step(totals, fetch_row, fetch_column, offset)
        return [f.add(k, module.uint(unroll)), *totals]

    return f.loop(
        [module.uint(0), *initial],
        lambda carried: f.compare(op.ULessThan, carried[0], module.uint(steps)),
        body,
        LOOP_CONTROL_DONT_UNROLL,
    )[1:]


# -- arithmetic --------------------------------------------------------------------------------------------------
def _compute_type(operation: Operation, result: Type) -> Type:
    """What products are added in."""
    compute = added_in(operation)
    if compute is not None:
        return compute
    a, b = (element_type(operand.type) for operand in operation.operands[:2])
    inputs = f"{a}" if a == b else f"{a} and {b}"
    raise UnsupportedOperation(
        operation,
        f"a dot of {inputs} into {result} is not supported",
        "use float8, float16, bfloat16, float32, float64 or int8 operands",
    )


def _multiply_add(ctx: Lowering, compute: Type) -> Callable[[int, int, int], int]:
    f = ctx.f
    if ctx.elements.is_native(compute):
        type_id = ctx.type_id(compute)
        return lambda a, b, c: f.glsl(Glsl.Fma, type_id, a, b, c)
    return lambda a, b, c: f.add(f.mul(a, b), c)
