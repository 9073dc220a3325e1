"""Structured control flow: the ``scf`` dialect to SPIR-V loops and selections. Carried values are phis."""

from __future__ import annotations

from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DONT_UNROLL, LOOP_CONTROL_NONE
from ..transforms.strip_loops import ROLLED
from ..ttgir.ir import Block, Operation, Value
from .errors import UnsupportedOperation
from .integers import unsigned_divide
from .lowering import Lowering
from .registry import lower, lowers


def _flatten(ctx: Lowering, values: list[Value]) -> list[int]:
    return [register for value in values for register in ctx.carried(value)]


def _bind(ctx: Lowering, values: list[Value], registers: list[int]) -> None:
    """Takes each value's registers off the front of a flat list."""
    position = 0
    for value in values:
        count = ctx.register_count(value.type)
        ctx.define(value, registers[position : position + count])
        position += count


def lower_block(ctx: Lowering, block: Block) -> list[int]:
    """Lowers the operations of a block up to its terminator; gives the registers of the values it yields."""
    limit = ctx.capabilities.traits.max_nesting
    if ctx.f.nesting > limit:
        assert block.parent is not None and block.parent.parent is not None
        raise UnsupportedOperation(
            block.parent.parent,
            f"branches and loops are nested more than {limit} deep here",
            "every early return counts as one level: merge their conditions",
        )
    for operation in block.operations[:-1]:
        lower(ctx, operation)
    return _flatten(ctx, block.terminator.operands)


def _cannot_wrap(ctx: Lowering, upper: int, step: int, unsigned: bool) -> bool:
    """Whether the counter stays within its type when it steps past ``upper``: the step is 1, or both are constants
    that leave room."""
    known_upper, known_step = ctx.module.constants.get(upper), ctx.module.constants.get(step)
    if known_step == 1:
        return True
    if known_upper is None or known_step is None:
        return False
    width = ctx.module.kinds[ctx.f.type_of(upper)][1]
    limit, end = (1 << width if unsigned else 1 << (width - 1)), int(known_upper)
    if end >= limit:  # negative
        end -= 1 << width
    return 0 < int(known_step) < limit and end + int(known_step) <= limit


def _rounds(ctx: Lowering, lower: int, upper: int, step: int, less: int) -> int:
    """How often a loop runs, as an unsigned integer of the counter's type: the distance fits even where it does not
    in the signed type."""
    f = ctx.f
    one = f.constant_like(lower, 1)
    full = f.add(unsigned_divide(ctx, f.sub(f.sub(upper, lower), one), step), one)
    return f.select(f.compare(less, lower, upper), full, f.constant_like(lower, 0))


@lowers("scf.for")
def _for(ctx: Lowering, operation: Operation) -> None:
    """The counter is carried where it cannot wrap around at the end of its type; elsewhere rounds are counted, so that
    the loop ends near INT_MAX too."""
    lower_bound, upper_bound, step, *initial = operation.operands
    body = operation.regions[0].entry
    f = ctx.f
    control = LOOP_CONTROL_DONT_UNROLL if ROLLED in operation.attributes else LOOP_CONTROL_NONE
    start, end, increment = ctx.scalar(lower_bound), ctx.scalar(upper_bound), ctx.scalar(step)
    unsigned = "unsignedCmp" in operation.attributes
    less = op.ULessThan if unsigned else op.SLessThan

    def run(counter: int, following: int, carried: list[int]) -> list[int]:
        ctx[body.arguments[0]] = counter
        _bind(ctx, body.arguments[1:], carried)
        return [following, *lower_block(ctx, body)]

    if _cannot_wrap(ctx, end, increment, unsigned):
        results = f.loop(
            [start, *_flatten(ctx, initial)],
            lambda carried: f.compare(less, carried[0], end),
            lambda carried: run(carried[0], f.add(carried[0], increment), carried[1:]),
            control,
        )
    else:
        rounds, one = _rounds(ctx, start, end, increment, less), f.constant_like(start, 1)
        results = f.loop(
            [f.constant_like(start, 0), *_flatten(ctx, initial)],
            lambda carried: f.compare(op.ULessThan, carried[0], rounds),
            lambda carried: run(f.add(start, f.mul(carried[0], increment)), f.add(carried[0], one), carried[1:]),
        )
    _bind(ctx, operation.results, results[1:])


@lowers("scf.while")
def _while(ctx: Lowering, operation: Operation) -> None:
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
def _if(ctx: Lowering, operation: Operation) -> None:
    then, *otherwise = (region.entry for region in operation.regions if region.blocks)
    results = ctx.f.if_(
        ctx.scalar(operation.operands[0]),
        lambda: lower_block(ctx, then),
        (lambda: lower_block(ctx, otherwise[0])) if otherwise else None,
    )
    _bind(ctx, operation.results, results)


@lowers("tt.return")
def _return(ctx: Lowering, operation: Operation) -> None:
    ctx.f.return_()


@lowers("ttg.barrier")
def _barrier(ctx: Lowering, operation: Operation) -> None:
    global_memory = operation.attributes.get("addrSpace", "local") != "local"
    ctx.wait(ctx.plan.barriers.needs[operation], global_memory)
