"""``tt.elementwise_inline_asm``: a piece of PTX for as many elements at a time as a pack has.

Elements narrower than 32 bits share registers of 32 where a pack has several, the first in the lowest bits, as in
upstream's CUDA backend. Of a tensor whose elements fill no whole number of packs, the last pack ends with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..planning.plans import InlineAssembly
from ..ptx.program import PtxError, Register
from ..spirv import opcodes as op
from ..ttgir.ir import Operation
from ..ttgir.types import Type, element_type
from .assembly.instructions import execute
from .assembly.registers import Registers
from .casts import boolean_as_integer
from .errors import UnsupportedOperation
from .lowering import Lowering
from .numerics.numeric import Int
from .registry import lowers
from .rolled import for_each


def _bits(registers: Registers, ctx: Lowering, value: int, width: int) -> Int:
    """An element's bits, in an integer of at least 32."""
    f = ctx.f
    if width == 1:
        return Int(registers.n, boolean_as_integer(ctx, value, 32, 1))
    raw = f.bitcast(value, ctx.elements.integer(width))
    return Int(registers.n, f.zero_extend(raw, 32) if width < 32 else raw)


def _element(ctx: Lowering, bits: Int, type_: Type, width: int) -> int:
    """The element of a type whose bits are the lowest of ``bits``."""
    f = ctx.f
    if width == 1:
        return f.compare(op.INotEqual, (bits & 1).id, ctx.module.uint(0))
    raw = bits.id if bits.width == width else f.zero_extend(bits.id, width)
    return f.bitcast(raw, ctx.type_id(type_))


@lowers("tt.elementwise_inline_asm")
def _inline_assembly(ctx: Lowering, operation: Operation) -> None:
    plan = ctx.plan_of(operation, InlineAssembly)
    operands = [ctx.registers(operand) for operand in operation.operands]
    count = len(operands[0]) if operands else ctx.register_count(operation.results[0].type)
    packs: list[tuple[int, ...]] = []
    for start in range(0, count, plan.pack):
        pack: list[int] = []
        for registers in operands:
            elements = registers[start : start + plan.pack]
            zeros = [ctx.module.null(ctx.f.type_of(registers[0]))] * (plan.pack - len(elements))
            pack += [*elements, *zeros]
        packs.append(tuple(pack))

    def emit(*elements: int) -> list[int]:
        try:
            return _run(ctx, operation, plan, elements)
        except PtxError as error:
            raise UnsupportedOperation(operation, f"inline assembly: {error.reason}", error.instead) from error

    types = [ctx.type_id(result.type) for result in operation.results for _ in range(plan.pack)]
    computed = list(for_each(ctx, plan, packs, types, emit))
    for number, result in enumerate(operation.results):
        place = slice(number * plan.pack, (number + 1) * plan.pack)
        ctx.define(result, [element for pack in computed for element in pack[place]][:count])


def _run(ctx: Lowering, operation: Operation, plan: InlineAssembly, elements: Sequence[int]) -> list[int]:
    """The elements of the results of one pack, result after result; ``elements``: of the operands."""
    widths = {f"${index}": width for index, width in enumerate(plan.constraints.results + plan.constraints.arguments)}
    registers = Registers(ctx, {**widths, **plan.program.widths})
    names = iter(plan.constraints.names)
    for number, operand in enumerate(operation.operands):
        width = plan.element_width(operand.type)
        together = plan.sharing(width)
        of_operand = elements[number * plan.pack : (number + 1) * plan.pack]
        values = [_bits(registers, ctx, value, width) for value in of_operand]
        for start in range(0, plan.pack, together):
            bits = values[start]
            for place in range(1, together):
                bits = bits | (values[start + place] << (place * width))
            registers.set_bits(Register(next(names)), bits)
    for instruction in plan.program.instructions:
        execute(registers, instruction)
    results: list[int] = []
    place = 0
    for result in operation.results:
        type_ = element_type(result.type)
        width = plan.element_width(result.type)
        for _ in range(plan.pack // plan.sharing(width)):
            bits = registers.bits(Register(f"${place}"))
            place += 1
            results += [
                _element(ctx, bits >> (width * index) if index else bits, type_, width)
                for index in range(plan.sharing(width))
            ]
    return results
