"""The plan of a kernel as text, for people: one line an operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from ..analysis.barriers import BARRIER, Need
from ..ttgir.ir import Function, Location, Operation
from .kernel_plan import KernelPlan

_BARRIERS = {Need.SUBGROUP: "within the subgroup", Need.WORKGROUP: "of the workgroup"}


def plan_lines(kernel: Function, plan: KernelPlan, places: bool = True) -> list[tuple[str, Operation | None]]:
    """What workgroup memory the kernel takes, how its pointers are held, then a line for each operation that has a
    plan: its place in the source and where that was called from, if ``places``, its name, the plan, and after
    ``because`` why a cheaper one was not possible. With each line the operation that it is about."""
    rows = [(_place(operation.location) if places else "", operation, text) for operation, text in _rows(kernel, plan)]
    width = max((len(place) + 2 for place, _, _ in rows if place), default=0)
    names = max((len(operation.name) for _, operation, _ in rows), default=0)
    lines = [(f"{place:<{width}}{entry.name:<{names}}  {text}", entry) for place, entry, text in rows]
    pointers = plan.pointers.summary(kernel)
    heading = [_memory(plan), *([f"pointers: {pointers}"] if pointers else [])]
    return [*((line, None) for line in heading), *lines]


def plan_text(kernel: Function, plan: KernelPlan) -> str:
    """The lines of ``plan_lines``."""
    return "".join(f"{line}\n" for line, _ in plan_lines(kernel, plan))


def _memory(plan: KernelPlan) -> str:
    view = plan.view
    seen = "one block" if view.explicit else "an array for each type"
    fits = "" if plan.fits else ": more than the device has"
    return f"shared memory: {plan.shared_bytes} of {view.limit} bytes{fits}; seen as {seen}"


def _rows(kernel: Function, plan: KernelPlan) -> Iterator[tuple[Operation, str]]:
    for operation in kernel.walk():
        text = _text(operation, plan)
        if text:
            yield operation, text


def _place(location: Location | None) -> str:
    """File, line and column, the innermost first."""
    frames = []
    while location is not None:
        if location.file:
            frames.append(f"{PurePath(location.file).name}:{location.line}:{location.column}")
        location = location.caller
    return " from ".join(frames) or "?"


def _text(operation: Operation, plan: KernelPlan) -> str:
    if operation.name == BARRIER:
        return _BARRIERS[Need.WORKGROUP]
    planned = plan.plans.get(operation)
    summary = planned.summary() if planned is not None else ""
    if planned is not None and summary and planned.reason:
        summary = f"{summary}, because {planned.reason}"
    need = Need.WORKGROUP if operation in plan.reads_first.waits else plan.barriers.get(operation)
    return summary if need is None else f"after a barrier {_BARRIERS[need]}{': ' if summary else ''}{summary}"
