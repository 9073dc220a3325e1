"""Fills buffers in shared memory where they are used: in each iteration of a loop anew.

Upstream's passes put a value that a loop does not change into its buffer before the loop. Where memory is short, such
buffers would take it for all of the loop; filled in front of their use, they have it for that use only, and the value
is in registers meanwhile.
"""

from __future__ import annotations

from ..ttgir.ir import Block, Module, Operation
from .rewriting import Rewriter
from .sink_buffers import is_filled


def refill_buffers(module: Module) -> bool:
    """Moves the ``ttg.local_alloc`` of every function that have a value and are used inside of other operations alone,
    a copy to each block that uses them. Whether any was moved."""
    moved = False
    for operation in list(module.walk()):
        if is_filled(operation) and operation.result.uses:
            moved = _refill(operation) or moved
    return moved


def _refill(alloc: Operation) -> bool:
    uses = list(alloc.result.uses)
    if any(use.block is alloc.block or use.block is None for use in uses):
        return False
    blocks: dict[int, Block] = {id(use.block): use.block for use in uses if use.block is not None}
    for block in blocks.values():
        first = min((use for use in uses if use.block is block), key=block.operations.index)
        made = Rewriter.before(first).copy(alloc)
        alloc.result.replace_uses(made.result, by=set(block.operations).__contains__)
    alloc.erase()
    return True
