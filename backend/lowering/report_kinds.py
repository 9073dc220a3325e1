"""The kinds of reports from kernels to the host, a row each (docs/internals/abi.md, "Reports").

A kind's messages, and what it has of the report buffer, are in ``abi/report_buffer.py``; what reads them is a row of
``runtime/reports/kinds.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..planning.kernel_plan import Planned
from ..planning.loop_limit import watches_loops
from ..transforms.kernel_function import kernel_of
from ..ttgir.ir import UNKNOWN, Function
from ..ttgir.operations import Effect, definition_of
from .bounds_check import Bounds
from .loop_check import watch_loops
from .lowering import Lowering
from .watched_programs import begin_watch


@dataclass(frozen=True)
class ReportKind:
    """``wanted``: whether a kernel makes such reports. ``begin``: emits what they need, in the entry block."""

    wanted: Callable[[Planned], bool]
    begin: Callable[[Lowering, Function], None]


def _has_races(planned: Planned) -> bool:
    return "races" in planned.options.asked.checks and planned.plan.shared_bytes > 0


def _loops_end(planned: Planned) -> bool:
    kernel = kernel_of(planned.source)
    return watches_loops(kernel, planned.capabilities, planned.plan.plans, _has_races(planned))


def _speaks(planned: Planned) -> bool:
    return any(Effect.REPORTS in definition_of(operation).effects for operation in kernel_of(planned.source).walk())


def _read_bounds(ctx: Lowering, kernel: Function) -> None:
    roots = ctx.plan.pointers.roots
    assert kernel.body is not None and roots is not None
    arguments = kernel.body.entry.arguments
    ctx.bounds = Bounds(ctx, ctx.reports, kernel, roots, lambda number: ctx.scalar(arguments[number]))


def _begin_asserts(ctx: Lowering, kernel: Function) -> None:
    if any(operation.name == "tt.assert" for operation in kernel.walk()):
        ctx.reports.message("asserted", UNKNOWN)


def _watch_shared(ctx: Lowering, kernel: Function) -> None:
    assert ctx.shared.watch is not None
    ctx.shared.watch.begin(ctx, ctx.reports, lambda: ctx.operation)


def _watch_loops(ctx: Lowering, kernel: Function) -> None:
    watch_loops(ctx, ctx.reports, lambda: ctx.operation.location if ctx.operation is not None else UNKNOWN)


#: In the order in which they begin, which is that of their parts in the buffer.
BOUNDS = ReportKind(lambda planned: "bounds" in planned.options.asked.checks, _read_bounds)
RACES = ReportKind(_has_races, _watch_shared)
PROGRAM_RACES = ReportKind(lambda planned: "program_races" in planned.options.asked.checks, begin_watch)
LOOPS = ReportKind(_loops_end, _watch_loops)
#: Rules of debug.py make them.
ASSERTS_AND_PRINTS = ReportKind(_speaks, _begin_asserts)
KINDS = (BOUNDS, RACES, PROGRAM_RACES, LOOPS, ASSERTS_AND_PRINTS)
