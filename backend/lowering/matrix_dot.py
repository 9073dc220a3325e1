"""``tt.dot`` on matrix units: the operands and the result are fragments, whose components are registers.

Fragments are made of registers and taken apart again for every dot: drivers hold them in the same registers. Within a
dot accumulators stay fragments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..layouts.elements import element_type
from ..planning.plans import MatrixProducts
from ..spirv.opcodes import MatrixUse
from ..ttgir.ir import Operation
from ..ttgir.types import FloatType, Type
from .floats import convert
from .matrix_units import CooperativeMatrices, EmulatedMatrices, component_type

if TYPE_CHECKING:
    from .context import Context


def lower_matrix_dot(ctx: Context, operation: Operation) -> None:
    """Lowers a dot whose result is of matrix fragments."""
    planned = ctx.plan_of(operation, MatrixProducts)
    configuration, plan = planned.configuration, planned.fragments
    assert configuration is not None and plan is not None
    unit = (EmulatedMatrices if planned.emulated else CooperativeMatrices)(ctx, configuration)
    accumulator, result = component_type(configuration.c), element_type(operation.result.type)
    left, right, initial = (ctx.registers(value) for value in operation.operands)
    totals = [_as(ctx, value, result, accumulator) for value in initial]
    zeros = [ctx.module.null(ctx.type_id(element_type(value.type))) for value in operation.operands]

    def fragments(use: int, registers: list[int], wanted: tuple[tuple[int | None, ...], ...]) -> list[object]:
        return [
            unit.fragment(use, [zeros[use] if number is None else registers[number] for number in fragment])
            for fragment in wanted
        ]

    lefts = fragments(MatrixUse.A, left, plan.left)
    rights = fragments(MatrixUse.B, right, plan.right)
    results = fragments(MatrixUse.Result, totals, plan.result)
    for a, b, number in plan.products:
        results[number] = unit.multiply(lefts[a], rights[b], results[number])
    components = [unit.components(fragment) for fragment in results]
    ctx.define(
        operation.result,
        [_as(ctx, components[fragment][component], accumulator, result) for fragment, component in plan.owners],
    )


def _as(ctx: Context, value: int, source: Type, target: Type) -> int:
    return convert(ctx, value, source, target) if isinstance(source, FloatType) else value
