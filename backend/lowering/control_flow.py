"""Structured control flow: the ``scf`` dialect to SPIR-V loops and selections. Carried values are phis."""

from __future__ import annotations

from ..analysis.overwriting import orders_device_memory
from ..analysis.split_products import WHOLE
from ..planning.live_registers import ALL
from ..planning.plans import MatrixProducts
from ..spirv import opcodes as op
from ..spirv.function import LOOP_CONTROL_DEPENDENCY_INFINITE, LOOP_CONTROL_DONT_UNROLL, LOOP_CONTROL_NONE
from ..transforms.strip_loops import ROLLED
from ..ttgir.ir import Block, Operation, Value
from .defined_integers import known_divide
from .errors import UnsupportedOperation
from .lowering import UNREAD, Lowering
from .registry import lower, lowers


def _flatten(ctx: Lowering, values: list[Value], targets: list[Value]) -> list[int]:
    """The registers of ``values``, of each those that are read of its target, the value that it becomes."""
    flat: list[int] = []
    for value, target in zip(values, targets, strict=True):
        registers, wanted = ctx.carried(value), ctx.plan.live.of(target)
        flat += registers if wanted == ALL else [one for n, one in enumerate(registers) if wanted >> n & 1]
    return flat


def _bind(ctx: Lowering, values: list[Value], registers: list[int]) -> None:
    """Takes the registers of each value that are read off the front of a flat list."""
    flat = iter(registers)
    for value in values:
        wanted = ctx.plan.live.of(value)
        ctx.define(value, [next(flat) if wanted >> n & 1 else UNREAD for n in range(ctx.register_count(value.type))])


def lower_block(ctx: Lowering, block: Block, targets: list[Value]) -> list[int]:
    """Lowers the operations of a block up to its terminator; gives the registers of the values it yields, which become
    ``targets``."""
    limit = ctx.capabilities.traits.faults.max_nesting
    if ctx.f.nesting > limit:
        assert block.holder is not None
        raise UnsupportedOperation(
            block.holder,
            f"branches and loops are nested more than {limit} deep here",
            "every early return counts as one level: merge their conditions",
        )
    for operation in block.operations[:-1]:
        lower(ctx, operation)
    return _flatten(ctx, block.terminator.operands, targets)


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
    full = f.add(known_divide(ctx, f.sub(f.sub(upper, lower), one), step), one)
    return f.select(f.compare(less, lower, upper), full, f.constant_like(lower, 0))


def _is_matrix_dot(ctx: Lowering, operation: Operation) -> bool:
    """Whether an operation is a dot on matrix units of whole elements."""
    plan = ctx.plan.plans.get(operation)
    return isinstance(plan, MatrixProducts) and plan.split is WHOLE


@lowers("scf.for")
def _for(ctx: Lowering, operation: Operation) -> None:
    """The counter is carried where it cannot wrap around at the end of its type; elsewhere rounds are counted, so that
    the loop ends near INT_MAX too."""
    lower_bound, upper_bound, step, *initial = operation.operands
    body = operation.regions[0].entry
    carried_values = body.arguments[1:]
    f = ctx.f
    traits = ctx.capabilities.traits
    rolled = (
        operation.flag(ROLLED)
        or (traits.rolls_matrix_loops and any(_is_matrix_dot(ctx, one) for one in body.operations))
        or (traits.rolls_dot_loops and any(one.name == "tt.dot" for one in body.operations))
    )
    control = LOOP_CONTROL_DONT_UNROLL if rolled else LOOP_CONTROL_NONE
    if operation.flag(ROLLED) and not initial and any(one.name == "tt.atomic_rmw" for one in body.operations):
        control |= LOOP_CONTROL_DEPENDENCY_INFINITE
    start, end, increment = ctx.scalar(lower_bound), ctx.scalar(upper_bound), ctx.scalar(step)
    if ctx.module.constants.get(increment) == 0:
        raise UnsupportedOperation(operation, "its step is 0", "a step other than 0")
    unsigned = operation.flag("unsignedCmp")
    less = op.ULessThan if unsigned else op.SLessThan

    def run(counter: int, following: int, carried: list[int]) -> list[int]:
        ctx[body.arguments[0]] = counter
        _bind(ctx, carried_values, carried)
        return [following, *lower_block(ctx, body, carried_values)]

    if _cannot_wrap(ctx, end, increment, unsigned):
        results = f.loop(
            [start, *_flatten(ctx, initial, carried_values)],
            lambda carried: f.compare(less, carried[0], end),
            lambda carried: run(carried[0], f.add(carried[0], increment), carried[1:]),
            control,
        )
    else:
        rounds, one = _rounds(ctx, start, end, increment, less), f.constant_like(start, 1)
        results = f.loop(
            [f.constant_like(start, 0), *_flatten(ctx, initial, carried_values)],
            lambda carried: f.compare(op.ULessThan, carried[0], rounds),
            lambda carried: run(f.add(start, f.mul(carried[0], increment)), f.add(carried[0], one), carried[1:]),
            control,
        )
    _bind(ctx, operation.results, results[1:])


@lowers("scf.while")
def _while(ctx: Lowering, operation: Operation) -> None:
    before, after = (region.entry for region in operation.regions)

    def check(carried: list[int]) -> tuple[int, list[int]]:
        _bind(ctx, before.arguments, carried)
        condition, *passed = lower_block(ctx, before, before.terminator.operands)
        return condition, passed

    def run(passed: list[int]) -> list[int]:
        _bind(ctx, after.arguments, passed)
        return lower_block(ctx, after, before.arguments)

    results = ctx.f.loop_with_results(_flatten(ctx, operation.operands, before.arguments), check, run)
    _bind(ctx, operation.results, results)


@lowers("scf.if")
def _if(ctx: Lowering, operation: Operation) -> None:
    then, *otherwise = (region.entry for region in operation.regions if region.blocks)
    results = ctx.f.if_(
        ctx.scalar(operation["condition"]),
        lambda: lower_block(ctx, then, operation.results),
        (lambda: lower_block(ctx, otherwise[0], operation.results)) if otherwise else None,
    )
    _bind(ctx, operation.results, results)


@lowers("tt.return")
def _return(ctx: Lowering, operation: Operation) -> None:
    if ctx.shared.watch is not None:
        ctx.shared.watch.end()
    ctx.f.return_()


@lowers("ttg.barrier")
def _barrier(ctx: Lowering, operation: Operation) -> None:
    ctx.barrier(orders_device_memory(operation))
