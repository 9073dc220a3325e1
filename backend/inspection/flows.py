"""Where the operands of dots come from, and where their results go, for a page to draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..analysis.matrix_dots import is_matrix_dot
from ..planning.kernel_plan import KernelPlan
from ..planning.plans import GlobalAccess
from ..ttgir.ir import Block, Function, Operation, Value
from ..ttgir.spelling import Spelling
from ..ttgir.types import TensorType
from .stage_lines import frames

#: The most steps that are followed from a dot, either way.
_STEPS = 12
#: Operations at which a flow ends.
_ENDS = frozenset({"tt.load", "tt.store", "tt.dot", "tt.reduce", "arith.constant", "tt.splat"})


def dots(function: Function, spelling: Spelling, plan: KernelPlan) -> list[dict[str, Any]]:
    """Each dot: how it is done, and the steps from loads to its operands and from its result to a store."""
    found = []
    for operation in function.walk():
        if operation.name != "tt.dot":
            continue
        planned = plan.plans.get(operation)
        found.append(
            {
                "how": planned.summary() if planned is not None else "",
                "why": _full_precision(operation),
                "matrix": is_matrix_dot(operation),
                "operands": [
                    list(reversed([_step(one, spelling, plan) for one in _sources(value)]))
                    for value in operation.operands[:2]
                ],
                "result": [_step(one, spelling, plan) for one in _users(operation.result)],
                "type": spelling.type(operation.result.type),
                "places": list(frames(operation.location)[:1]),
            }
        )
    return found


def _full_precision(dot: Operation) -> str:
    type_ = dot["a"].type
    if isinstance(type_, TensorType) and str(type_.element) == "f32" and dot.attribute("inputPrecision") == "ieee":
        return "its operands are fp32 of full precision; input_precision='tf32' would allow them"
    return ""


def _step(operation: Operation, spelling: Spelling, plan: KernelPlan) -> dict[str, Any]:
    planned = plan.plans.get(operation)
    value = operation.results[0] if operation.results else operation.operands[-1]
    note = planned.summary() if planned is not None else ""
    if isinstance(planned, GlobalAccess):
        note = f"{planned.width * planned.bits} bits an access"
    return {
        "name": operation.name.partition(".")[2],
        "note": note,
        "type": spelling.type(value.type),
        "places": list(frames(operation.location)[:1]),
    }


def _sources(value: Value) -> Iterator[Operation]:
    """The operations that a value comes through, the last one first. A loop's carried value is
    followed into the next iteration."""
    for _ in range(_STEPS):
        operation = value.owner
        if isinstance(operation, Block):
            carried = _carried(operation, value.index)
            if carried is None:
                return
            value = carried
            continue
        yield operation
        tensors = [one for one in operation.operands if one.type == value.type] or operation.operands
        if operation.name in _ENDS or not tensors:
            return
        value = tensors[0] if operation.name.startswith("arith.") else operation.operands[0]


def _carried(block: Block, index: int) -> Value | None:
    """What a loop's body passes to its argument ``index``; None if ``block`` is no such body."""
    loop = block.holder
    if loop is None or loop.name != "scf.for" or not 0 < index <= len(block.terminator.operands):
        return None
    return block.terminator.operands[index - 1]


def _users(value: Value) -> Iterator[Operation]:
    """The operations that a value goes through, up to a store, the first user of each."""
    for _ in range(_STEPS):
        use = next((one for one in value.uses if one.name not in ("tt.dot",)), None)
        if use is None:
            return
        if use.name == "scf.yield":
            loop = use.holder
            place = next((index for index, one in enumerate(use.operands) if one is value), None)
            if loop is None or place is None or place >= len(loop.results):
                return
            value = loop.results[place]
            continue
        yield use
        if use.name in _ENDS or not use.results:
            return
        value = use.results[0]
