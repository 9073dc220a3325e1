"""Structured control flow: the ``scf`` dialect to SPIR-V loops and selections. Carried values are phis."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..spirv import opcodes as op
from ..ttgir.ir import Block, Operation, Value
from .registry import lowers

if TYPE_CHECKING:
    from .context import Context


def _flatten(ctx: Context, values: list[Value]) -> list[int]:
    return [register for value in values for register in ctx.registers(value)]


def _bind(ctx: Context, values: list[Value], registers: list[int]) -> None:
    """Takes each value's registers off the front of a flat list."""
    position = 0
    for value in values:
        count = ctx.register_count(value.type)
        ctx.define(value, registers[position:position + count])
        position += count


def lower_block(ctx: Context, block: Block) -> list[int]:
    """Lowers the operations of a block up to its terminator; gives the registers of the values it yields."""
    for operation in block.operations[:-1]:
        ctx.lower(operation)
    return _flatten(ctx, block.terminator.operands)


@lowers("scf.for")
def _for(ctx: Context, operation: Operation) -> None:
    lower_bound, upper_bound, step, *initial = operation.operands
    body = operation.regions[0].entry
    f = ctx.f
    end, increment = ctx.scalar(upper_bound), ctx.scalar(step)
    less = op.ULessThan if operation.attributes.get("unsignedCmp") else op.SLessThan

    def run(carried: list[int]) -> list[int]:
        ctx[body.arguments[0]] = carried[0]
        _bind(ctx, body.arguments[1:], carried[1:])
        following = lower_block(ctx, body)
        return [f.add(carried[0], increment), *following]

    results = f.loop([ctx.scalar(lower_bound), *_flatten(ctx, initial)],
                     lambda carried: f.compare(less, carried[0], end), run)
    _bind(ctx, operation.results, results[1:])


@lowers("scf.while")
def _while(ctx: Context, operation: Operation) -> None:
    before, after = (region.entry for region in operation.regions)

    def check(carried: list[int]) -> tuple[int, list[int]]:
        _bind(ctx, before.arguments, carried)
        condition, *passed = lower_block(ctx, before)
        return condition, passed

    def run(passed: list[int]) -> list[int]:
        _bind(ctx, after.arguments, passed)
        return lower_block(ctx, after)

    results = ctx.f.loop_with_results(_flatten(ctx, operation.operands), check, run)
    _bind(ctx, operation.results, results)


@lowers("scf.if")
def _if(ctx: Context, operation: Operation) -> None:
    then, *otherwise = (region.entry for region in operation.regions if region.blocks)
    results = ctx.f.if_(ctx.scalar(operation.operands[0]), lambda: lower_block(ctx, then),
                        (lambda: lower_block(ctx, otherwise[0])) if otherwise else None)
    _bind(ctx, operation.results, results)


@lowers("tt.return")
def _return(ctx: Context, operation: Operation) -> None:
    ctx.f.return_()


@lowers("ttg.barrier")
def _barrier(ctx: Context, operation: Operation) -> None:
    ctx.barrier(global_memory=operation.attributes.get("addrSpace", "local") != "local")
