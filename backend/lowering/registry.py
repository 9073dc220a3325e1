"""The table of lowering rules, and how an operation is lowered by one."""

from __future__ import annotations

from collections.abc import Callable

from ..compile_time import TooLong, check
from ..ttgir.ir import Operation
from .debug_info import located, name_registers
from .errors import LoweringError, UnsupportedOperation
from .lowering import Lowering
from .refusals import refusal

Rule = Callable[[Lowering, Operation], None]

#: Operation name → the rule that lowers it.
RULES: dict[str, Rule] = {}


def lowers(*names: str) -> Callable[[Rule], Rule]:
    """Registers the decorated rule for each of ``names``."""

    def register(rule: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has two lowering rules: {RULES[name].__name__} and {rule.__name__}")
            RULES[name] = rule
        return rule

    return register


def lower(ctx: Lowering, operation: Operation) -> None:
    """Lowers one operation by its rule; an error without a place gets this operation's."""
    check()
    rule = RULES.get(operation.name)
    if rule is None:
        raise refusal(operation)
    need = ctx.plan.barriers.get(operation)
    if need is not None:
        ctx.wait(need)
    if operation in ctx.plan.reads_first.waits:
        ctx.wait_for_reads()
    outer, ctx.operation = ctx.operation, operation
    try:
        _carry_out(ctx, rule, operation)
    except (UnsupportedOperation, LoweringError, TooLong):
        raise
    except NotImplementedError as error:
        raise UnsupportedOperation(operation, str(error)) from error
    except Exception as error:
        raise LoweringError(
            f"{operation.location}: while lowering '{operation.name}': {type(error).__name__}: {error}"
        ) from error
    ctx.operation = outer


def _carry_out(ctx: Lowering, rule: Rule, operation: Operation) -> None:
    if ctx.f.lines is None:
        rule(ctx, operation)
        return
    with located(ctx.f, operation):
        rule(ctx, operation)
    for result in operation.results:
        name_registers(ctx.f, operation.location, ctx.ids(result))
