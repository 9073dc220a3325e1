"""The plan of a kernel as text, for people: one line an operation."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.barrier_filter import BARRIER, Need
from ..ttgir.ir import Function, Operation
from .table import KernelPlan

_BARRIERS = {Need.NOTHING: "none is needed", Need.SUBGROUP: "within the subgroup", Need.WORKGROUP: "of the workgroup"}


def plan_text(kernel: Function, plan: KernelPlan) -> str:
    """What workgroup memory the kernel takes, then a line for each operation that has a plan: its place in the source,
    its name, the plan, and after ``because`` why a cheaper one was not possible."""
    rows = list(_rows(kernel, plan))
    places, names = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    lines = [f"{place:<{places}}  {name:<{names}}  {text}" for place, name, text in rows]
    return "\n".join([_memory(plan), *lines]) + "\n"


def _memory(plan: KernelPlan) -> str:
    room, view = plan.room, plan.view
    if room.explicit:
        seen = "one block"
    elif view.words:
        seen = f"64-bit words, but for {len(view.narrow)} buffers"
    else:
        seen = "an array for each type"
    fits = "" if plan.fits else ": more than the device has"
    return (
        f"shared memory: {plan.shared_bytes} of {room.limit} bytes{fits}; {room.upstream} allocated by upstream; "
        f"seen as {seen}"
    )


def _rows(kernel: Function, plan: KernelPlan) -> Iterator[tuple[str, str, str]]:
    assert kernel.body is not None
    for block in kernel.body.blocks:
        for top in block.operations:
            for operation in top.walk():
                text = _text(operation, plan)
                if text:
                    where = operation.location
                    yield (f"{where.file}:{where.line}:{where.column}" if where.file else "?"), operation.name, text


def _text(operation: Operation, plan: KernelPlan) -> str:
    if operation.name == BARRIER:
        return _BARRIERS[plan.needs.get(operation, Need.WORKGROUP)]
    planned = plan.plans.get(operation)
    if planned is None:
        return ""
    summary = planned.summary()
    return f"{summary}, because {planned.reason}" if summary and planned.reason else summary
