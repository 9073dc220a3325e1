"""Rows that a loop with dots loads go through shared memory.

The gradients of attention's keys load two numbers of each query in each iteration. Upstream has every lane load what
its own elements of the dot's result need: all warps the same numbers, and in so many registers that they are not loaded
ahead (prefetch.py). Here each lane loads one number, an iteration ahead. The row is stored with the loop's tiles
(fill_together.py) and read from there.
"""

from __future__ import annotations

from dataclasses import replace

from ...layouts.buffer_layouts import buffer_bytes
from ...layouts.strip_layouts import register_count
from ...ttgir.encodings import BlockedEncoding, Encoding, SliceEncoding, SwizzledSharedEncoding
from ...ttgir.ir import Block, DenseAttr, Function, Operation, Value
from ...ttgir.operations import definition_of
from ...ttgir.types import FloatType, IntegerType, MemDescType, TensorType
from ..rewriting import Rewriter, erase_unused
from .loop_buffers import fills, loop_bytes
from .prefetch import FEW_REGISTERS, is_repeatable, prefetched_loops


def buffer_rows(function: Function, stages: int, lanes: int, warps: int, most: int) -> bool:
    """Rewrites every row of a loop that fills buffers already, if they take at most ``most`` bytes with it. ``lanes``
    and ``warps``: of a workgroup. ``stages``: as prefetch_dot_operands(). Whether there was any."""
    changed = False
    for loop in prefetched_loops(function, stages):
        body = loop.regions[0].entry
        for load in [one for one in body.operations if _is_row(one) and is_repeatable(one, body)]:
            type_ = load.result.tensor
            shared = MemDescType(type_.shape, type_.element, SwizzledSharedEncoding(1, 1, 1, (0,)))
            if fills(body) and loop_bytes(body) + buffer_bytes(shared) <= most:
                changed = _buffer(load, body, BlockedEncoding((1,), (lanes,), (warps,), (0,)), shared) or changed
    return changed


def _is_row(operation: Operation) -> bool:
    """Whether it loads numbers of one row in the layout of a matrix, too many a lane to be loaded ahead."""
    if operation.name != "tt.load" or operation.attribute("isVolatile"):
        return False
    type_ = operation.result.type
    return (
        isinstance(type_, TensorType)
        and type_.rank == 1
        and isinstance(type_.encoding, SliceEncoding)
        and isinstance(type_.element, FloatType | IntegerType)
        and type_.element.width >= 8
        and bool(operation.result.uses)
        and register_count(type_) > FEW_REGISTERS
    )


def _buffer(load: Operation, body: Block, encoding: Encoding, shared: MemDescType) -> bool:
    """Loads the row in ``encoding``, stores it where it was loaded, and reads it where it is used first. Not where dots
    would find other contents of shared memory than their operands' loads did (analysis/lazy_loads.py)."""
    uses = [use for use in load.result.uses if use.block is body]
    if len(uses) != len(load.result.uses) or _is_between(load, body):
        return False
    known: dict[Value, Value] = {}
    if not all(_encode(operand, encoding, known) for operand in load.operands):
        erase_unused([value.owner for value in known.values() if isinstance(value.owner, Operation)])
        return False
    there = Rewriter.before(load)
    operands = [known[operand] for operand in load.operands]
    row = there.copy(load, operands=operands, types=[replace(load.result.tensor, encoding=encoding)]).result
    buffer = there.make("ttg.local_alloc", [row], [shared]).result
    reader = Rewriter.before(min(uses, key=body.operations.index))
    load.result.replace_uses(reader.make("ttg.local_load", [buffer], [load.result.type]).result)
    load.erase()
    return True


def _is_between(load: Operation, body: Block) -> bool:
    """Whether it stands between the load of an operand from shared memory and what uses that."""
    place = body.operations.index(load)
    behind = set(body.operations[place:])
    above = (one for one in body.operations[:place] if one.name == "ttg.local_load")
    return any(use in behind for one in above for use in one.result.uses)


def _encode(value: Value, encoding: Encoding, known: dict[Value, Value]) -> bool:
    """Puts ``value`` in ``encoding`` into ``known``, and all that it is computed from, each behind its own. False if it
    is computed from what is not elementwise, such as what a loop carries."""
    pending = [value]
    while pending:
        one = pending[-1]
        sources = _sources(one)
        if sources is None:
            return False
        before = [source for source in sources if source not in known]
        if before:
            pending += before
            continue
        pending.pop()
        if one not in known:
            known[one] = _encoded(one, encoding, known) if isinstance(one.type, TensorType) else one
    return True


def _sources(value: Value) -> list[Value] | None:
    """The tensors that ``value`` is computed from, element by element; None if it is computed otherwise."""
    owner = value.owner
    if not isinstance(value.type, TensorType):
        return []
    if not isinstance(owner, Operation):
        return None
    if owner.name in ("tt.make_range", "tt.splat"):
        return []
    if owner.name == "arith.constant":
        attribute = owner.attribute("value")
        return [] if isinstance(attribute, DenseAttr) and attribute.splat else None
    row = definition_of(owner)
    plain = row.elementwise and row.repeatable and not owner.regions and len(owner.results) == 1
    return owner.operands if plain else None


def _encoded(value: Value, encoding: Encoding, known: dict[Value, Value]) -> Value:
    owner = value.owner
    assert isinstance(owner, Operation)
    type_ = replace(value.tensor, encoding=encoding)
    attributes = dict(owner.attributes)
    if owner.name == "arith.constant":
        attributes |= {"value": replace(owner.attribute("value"), type=type_)}
    return Rewriter.after(owner).copy(owner, dict(known), types=[type_], attributes=attributes).result
