"""Tiles that a loop stores to shared memory for different dots are stored at one place, between two barriers.

Attention multiplies queries by keys, and much later weights by values. Upstream fills the buffer of the values just
before their dot, so that an iteration has four barriers: one behind each store, and one before each buffer is written
again. Values that are loaded an iteration ahead (prefetch.py) are there from the beginning. Stored beside the keys,
they leave their registers to the next tiles, and two barriers are enough. Both buffers are then live at the same time.
On an H100, fp16 attention with heads of 64 and 128 went from 215 to 262 and from 243 to 271 TFLOP/s.
"""

from __future__ import annotations

from itertools import pairwise

from ...ttgir.ir import Block, Function, Operation, Value
from ...ttgir.operations import definition_of
from ..rewriting import Rewriter
from .loop_buffers import fills, loop_bytes
from .prefetch import prefetched_loops


def fill_together(function: Function, stages: int, most: int) -> bool:
    """Moves buffers of loops whose tiles are loaded ahead to the loop's first one, if they take at most ``most`` bytes
    with those that the loop reads and does not fill. ``stages``: as prefetch_dot_operands(). Whether any was moved."""
    changed = False
    for loop in prefetched_loops(function, stages):
        body = loop.regions[0].entry
        if loop_bytes(body) <= most:
            changed = _gather(body) or changed
    return changed


def _gather(body: Block) -> bool:
    """Moves each buffer that is filled behind a dot, and what it stores, to the one before it, where that can be."""
    changed = False
    for last, fill in pairwise(fills(body)):
        place = body.operations.index(last)
        above, between = body.operations[:place], body.operations[place : body.operations.index(fill)]
        needed = _needed(fill, body, set(above))
        if needed is None or not any(operation.name == "tt.dot" for operation in between):
            continue
        for operation in needed:
            Rewriter.before(last).move(operation)
        Rewriter.after(last).move(fill)
        changed = True
    return changed


def _needed(fill: Operation, body: Block, above: set[Operation]) -> list[Operation] | None:
    """The operations of ``body`` that compute what ``fill`` stores and are not ``above``, in their order. None if one
    has to stay, because it is neither a plain load nor repeatable."""
    found: set[Operation] = set()
    pending: list[Value] = list(fill.operands)
    if not pending:
        return None
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner.block is not body or owner in above or owner in found:
            continue
        plain = owner.name == "tt.load" and not owner.attribute("isVolatile")
        if owner.regions or not (plain or definition_of(owner).repeatable):
            return None
        found.add(owner)
        pending += owner.operands
    return [operation for operation in body.operations if operation in found]
