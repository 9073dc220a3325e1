"""``tt.dot`` on matrix units: the operands and the result are fragments, whose components are registers.

Fragments are made of registers, or loaded from shared memory, and taken apart again for every dot: drivers hold them in
the same registers. Within a dot accumulators stay fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..analysis.matrix_dots import strided
from ..analysis.split_products import Split
from ..layouts.dot_fragments import Fragment, MatrixDot
from ..layouts.element_sizes import bytes_in_memory
from ..layouts.linear import unflatten
from ..planning.memory_pools import first_element
from ..planning.plans import MatrixProducts
from ..spirv import opcodes as op
from ..spirv.opcodes import Glsl, MatrixUse
from ..ttgir.ir import Operation, Value
from ..ttgir.types import FloatType, Type, element_type
from .floats import convert
from .lowering import Lowering
from .matrix_units import MatrixUnit, component_type
from .shared import tensor_reader
from .split_floats import bf16_parts
from .workgroup_memory import SharedOperand


def lower_matrix_dot(ctx: Lowering, operation: Operation) -> None:
    """Lowers a dot whose result is of matrix fragments."""
    planned = ctx.plan_of(operation, MatrixProducts)
    configuration, plan = planned.configuration, planned.fragments
    assert configuration is not None and plan is not None
    split = planned.split
    unit = MatrixUnit(ctx, configuration)
    accumulator, result = component_type(configuration.c), element_type(operation.result.type)
    totals = [_as(ctx, value, result, accumulator) for value in ctx.registers(operation["c"])]

    operands = [_operand(ctx, unit, use, operation.operands[use], split) for use in (MatrixUse.A, MatrixUse.B)]
    fragments = plan.left, plan.right
    zero = ctx.module.null(ctx.type_id(accumulator))
    starts = [zero] * len(totals) if split.apart else totals
    results = [unit.fragment(MatrixUse.Result, [starts[r or 0] for r in fragment]) for fragment in plan.result]
    made: dict[tuple[int, int], Sequence[int]] = {}

    def part(use: int, number: int, which: int) -> int:
        if (use, number) not in made:  # a fragment is made where it is used first: not all of them at once
            made[use, number] = operands[use](fragments[use][number])
        return made[use, number][which]

    for products in _ordered(plan, split):
        for of_a, of_b in split.terms:
            for a, b, number in products:
                left, right = part(MatrixUse.A, a, of_a), part(MatrixUse.B, b, of_b)
                results[number] = unit.multiply(left, right, results[number])
    components = [unit.components(fragment) for fragment in results]
    sums = [components[fragment][component] for fragment, component in plan.owners]
    if split.apart:
        sums = [_sum(ctx, one, split.factor, total) for one, total in zip(sums, totals, strict=True)]
    ctx.define(operation.result, [_as(ctx, one, accumulator, result) for one in sums])


def _ordered(plan: MatrixDot, split: Split) -> Iterator[Sequence[tuple[int, int, int]]]:
    """The products of a dot in turn: a step along K of all results, or all steps of one result, which is added to the
    accumulator then and needs no more registers."""
    count = len(plan.result)
    if split.apart and split.parts == 1:
        yield from (plan.products[number::count] for number in range(count))
        return
    yield from (plan.products[step : step + count] for step in range(0, len(plan.products), count))


def _sum(ctx: Lowering, value: int, factor: float, total: int) -> int:
    """``value`` × ``factor`` + ``total``, where the product is exact."""
    f, type_id = ctx.f, ctx.f.type_of(total)
    if factor == 1.0:
        return f.emit(op.FAdd, type_id, value, total)
    return f.glsl(Glsl.Fma, type_id, value, ctx.module.real(factor, 32), total)


def _operand(
    ctx: Lowering, unit: MatrixUnit, use: int, value: Value, split: Split
) -> Callable[[Fragment], Sequence[int]]:
    """What makes the fragments of operand A or B, one for each part of its elements."""
    lowered, element = ctx[value], element_type(value.type)
    read: Callable[[int], int]
    if not isinstance(lowered, SharedOperand):
        read = ctx.registers(value).__getitem__
    elif split.parts == 1:
        load = _loader(ctx, unit, use, lowered)
        return lambda fragment: (load(fragment),)
    else:
        reader = tensor_reader(ctx, lowered.buffer, lowered.type)
        read = lambda register: reader(register)[0]  # noqa: E731
    zero = ctx.module.null(ctx.type_id(element))

    def make(fragment: Fragment) -> Sequence[int]:
        components = [zero if register is None else read(register) for register in fragment]
        if split.parts == 1:
            return (unit.fragment(use, components),)
        parts = [bf16_parts(ctx, component, split.parts) for component in components]
        return [unit.fragment(use, list(part)) for part in zip(*parts, strict=True)]

    return make


def _loader(ctx: Lowering, unit: MatrixUnit, use: int, operand: SharedOperand) -> Callable[[Fragment], int]:
    """What loads fragments from the operand's buffer."""
    f, module, buffer, tensor = ctx.f, ctx.module, operand.buffer, operand.type
    lie = strided(buffer.view.type)
    assert lie is not None
    layout = ctx.layout(tensor)
    images = layout.images("register")
    rows, columns = unit.configuration.extents[use]
    lines = (rows, columns) if lie.row_major else (columns, rows)

    def offset(row: int, column: int) -> int:
        return row * lie.stride + column if lie.row_major else column * lie.stride + row

    start = module.uint(first_element(buffer.view.first, bytes_in_memory(tensor)))
    for bit, basis in enumerate(layout.bases["warp"]):
        moved = offset(*basis)
        if moved:
            start = f.add(start, f.mul(f.and_(f.shr(ctx.warp, bit), module.uint(1)), module.uint(moved)))

    def load(fragment: Fragment) -> int:
        assert fragment[0] is not None
        place = offset(*unflatten(images[fragment[0]], layout.shape))
        index = f.add(start, module.uint(place))
        element = unit.loaded_as(tensor.element)
        pointer = ctx.shared.matrix(ctx, element, index, lines, lie.stride, buffer.view.start, buffer.view.end)
        return unit.load(use, pointer, lie)

    return load


def _as(ctx: Lowering, value: int, source: Type, target: Type) -> int:
    return convert(ctx, value, source, target) if isinstance(source, FloatType) else value
