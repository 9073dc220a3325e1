"""``tt.dot`` on matrix units: the operands and the result are fragments, whose components are registers.

Fragments are made of registers, or loaded from shared memory, and taken apart again for every dot: drivers hold them in
the same registers. Within a dot accumulators stay fragments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..analysis.matrix_dots import strided
from ..layouts.element_sizes import bytes_in_memory, element_type
from ..layouts.linear import unflatten
from ..layouts.matrix_dots import Fragment
from ..planning.plans import MatrixProducts
from ..spirv.opcodes import MatrixUse
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, Type
from .floats import convert
from .matrix_units import CooperativeMatrices, EmulatedMatrices, MatrixUnit, component_type
from .shared import buffer_end
from .shared_memory import SharedOperand

if TYPE_CHECKING:
    from .lowering import Lowering


def lower_matrix_dot(ctx: Lowering, operation: Operation) -> None:
    """Lowers a dot whose result is of matrix fragments."""
    planned = ctx.plan_of(operation, MatrixProducts)
    configuration, plan = planned.configuration, planned.fragments
    assert configuration is not None and plan is not None
    unit = (EmulatedMatrices if planned.emulated else CooperativeMatrices)(ctx, configuration)
    accumulator, result = component_type(configuration.c), element_type(operation.result.type)
    totals = [_as(ctx, value, result, accumulator) for value in ctx.registers(operation.operands[2])]

    lefts, rights = (_operand(ctx, unit, use, operation.operands[use]) for use in (MatrixUse.A, MatrixUse.B))
    results = [unit.fragment(MatrixUse.Result, [totals[r or 0] for r in fragment]) for fragment in plan.result]
    made: dict[tuple[int, int], object] = {}
    for a, b, number in plan.products:  # a fragment is made where it is used first: not all of them at once
        if (MatrixUse.A, a) not in made:
            made[MatrixUse.A, a] = lefts(plan.left[a])
        if (MatrixUse.B, b) not in made:
            made[MatrixUse.B, b] = rights(plan.right[b])
        results[number] = unit.multiply(made[MatrixUse.A, a], made[MatrixUse.B, b], results[number])
    components = [unit.components(fragment) for fragment in results]
    ctx.define(
        operation.result,
        [_as(ctx, components[fragment][component], accumulator, result) for fragment, component in plan.owners],
    )


def _operand(ctx: Lowering, unit: MatrixUnit, use: int, value: Value) -> Callable[[Fragment], object]:
    """What makes fragments of operand A or B."""
    lowered = ctx[value]
    if isinstance(lowered, SharedOperand):
        assert isinstance(unit, CooperativeMatrices)
        return _loader(ctx, unit, use, lowered)
    registers, zero = ctx.registers(value), ctx.module.null(ctx.type_id(element_type(value.type)))
    return lambda fragment: unit.fragment(use, [zero if r is None else registers[r] for r in fragment])


def _loader(ctx: Lowering, unit: CooperativeMatrices, use: int, operand: SharedOperand) -> Callable[[Fragment], object]:
    """What loads fragments from the operand's buffer."""
    f, module, buffer, tensor = ctx.f, ctx.module, operand.buffer, operand.type
    lie = strided(buffer.type)
    assert lie is not None
    layout = ctx.layout(tensor)
    images = layout.images("register")

    def offset(row: int, column: int) -> int:
        return row * lie.stride + column if lie.row_major else column * lie.stride + row

    start = module.uint(buffer.byte_offset // bytes_in_memory(tensor))
    for bit, basis in enumerate(layout.bases["warp"]):
        moved = offset(*basis)
        if moved:
            start = f.add(start, f.mul(f.and_(f.shr(ctx.warp, bit), module.uint(1)), module.uint(moved)))

    def load(fragment: Fragment) -> object:
        assert fragment[0] is not None
        place = offset(*unflatten(images[fragment[0]], layout.shape))
        index = f.add(start, module.uint(place))
        pointer = ctx.shared.element(ctx, tensor.element, index, buffer.byte_offset, buffer_end(buffer))
        return unit.load(use, pointer, lie)

    return load


def _as(ctx: Lowering, value: int, source: Type, target: Type) -> int:
    return convert(ctx, value, source, target) if isinstance(source, FloatType) else value
