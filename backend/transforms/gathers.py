"""Gathers through shared memory take their operands in the layouts that these have.

Upstream converts the operands of a gather to a layout in which each subgroup has whole lines along the axis, so that
shuffles suffice. Where these are too many (layouts/gather_plans.py), all elements go through shared memory after all,
for which any layout is as good: the conversions would only move each element three times more.
"""

from __future__ import annotations

from typing import TypeGuard

from ..layouts.distributed import LayoutError, layout_of
from ..layouts.gather_plans import plan_gather
from ..ttgir.ir import Block, Function, Operation, Value
from ..ttgir.types import TensorType
from .rewriting import Rewriter, erase_unused


def gather_without_conversions(function: Function) -> bool:
    """Rewrites every ``tt.gather`` of ``function`` that shuffles do not carry out. Whether there was one."""
    return any([_take_as_they_are(one) for one in list(function.walk()) if one.name == "tt.gather"])


def _take_as_they_are(gather: Operation) -> bool:
    before = [_unconverted(operand) for operand in gather.operands]
    indices, old = before[1].type, gather.result.type
    if before == gather.operands or not isinstance(indices, TensorType) or not isinstance(old, TensorType):
        return False
    try:
        source, wanted = (layout_of(operand.type) for operand in gather.operands)
    except LayoutError:
        return False  # refused where it is lowered
    if plan_gather(source, wanted, int(gather.attribute("axis"))) is not None:
        return False
    conversions = dict.fromkeys(one.owner for one in gather.operands)
    type_ = TensorType(old.shape, old.element, indices.encoding)
    rewriter = Rewriter.before(gather)
    made = rewriter.copy(gather, operands=before, types=[type_]).result
    converted = rewriter.make("ttg.convert_layout", [made], [old])
    gather.result.replace_uses(converted.result)
    for use in [use for use in converted.result.uses if use.name == "ttg.convert_layout"]:
        use.replace_operand(converted.result, made)
        if use.result.type == type_:
            use.result.replace_uses(made)
            use.erase()
    gather.erase()
    erase_unused([one for one in (converted, *conversions) if _converts(one)])
    return True


def _unconverted(value: Value) -> Value:
    return value.owner["src"] if _converts(value.owner) else value


def _converts(owner: Operation | Block) -> TypeGuard[Operation]:
    return isinstance(owner, Operation) and owner.name == "ttg.convert_layout"
