"""Gathers through shared memory take their operands in the layouts that these have.

Upstream converts the operands of a gather to a layout in which each subgroup has whole lines along the axis, so that
shuffles suffice. Where these are too many (layouts/gather.py), all elements go through shared memory after all, for
which any layout is as good: the conversions would only move each element three times more.
"""

from __future__ import annotations

from ..layouts.distributed import LayoutError, distributed_layout
from ..layouts.gather import plan_gather
from ..layouts.linear import LinearLayout
from ..ttgir.ir import Function, Operation, Value
from ..ttgir.types import TensorType
from .rewriting import drop_uses, insert, replace_in, replace_uses


def gather_without_conversions(function: Function) -> bool:
    """Rewrites every ``tt.gather`` of ``function`` that shuffles do not carry out. Whether there was one."""
    assert function.body is not None
    gathers = [
        one
        for block in function.body.blocks
        for top in block.operations
        for one in top.walk()
        if one.name == "tt.gather"
    ]
    return any([_take_as_they_are(gather) for gather in gathers])


def _take_as_they_are(gather: Operation) -> bool:
    before = [_unconverted(operand) for operand in gather.operands]
    indices, old = before[1].type, gather.result.type
    if before == gather.operands or not isinstance(indices, TensorType) or not isinstance(old, TensorType):
        return False
    try:
        source, wanted = (_layout_of(operand) for operand in gather.operands)
    except LayoutError:
        return False  # refused where it is lowered
    if plan_gather(source, wanted, int(gather.attributes["axis"])) is not None:
        return False
    block, conversions = gather.block, [one.owner for one in gather.operands]
    assert block is not None
    place = block.operations.index(gather)
    type_ = TensorType(old.shape, old.element, indices.encoding)
    made = insert(block, place, gather.name, before, [type_], dict(gather.attributes), like=gather).result
    converted = insert(block, place + 1, "ttg.convert_layout", [made], [old], like=gather)
    replace_uses(gather.result, converted.result)
    for use in [use for use in converted.result.uses if use.name == "ttg.convert_layout"]:
        replace_in(use, converted.result, made)
        if use.result.type == type_:
            replace_uses(use.result, made)
            _remove(use)
    _remove(gather)
    for operation in (converted, *dict.fromkeys(conversions)):
        if isinstance(operation, Operation) and operation.name == "ttg.convert_layout" and not operation.result.uses:
            _remove(operation)
    return True


def _layout_of(value: Value) -> LinearLayout:
    """The layout of a tensor. Raises LayoutError."""
    assert isinstance(value.type, TensorType) and value.type.encoding is not None
    return distributed_layout(value.type.encoding, value.type.shape)


def _unconverted(value: Value) -> Value:
    owner = value.owner
    return owner.operands[0] if isinstance(owner, Operation) and owner.name == "ttg.convert_layout" else value


def _remove(operation: Operation) -> None:
    drop_uses(operation)
    assert operation.block is not None
    operation.block.operations.remove(operation)
