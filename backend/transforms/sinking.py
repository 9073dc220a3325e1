"""Moving operations down in their blocks: what the rewrites that sink loads and buffers share."""

from __future__ import annotations

from collections.abc import Callable

from ..ttgir.ir import Block, Module, Operation
from .rewriting import Rewriter

#: (block, operation, its place in it) → the place of the operation that it goes right before; None where it stays.
Target = Callable[[Block, Operation, int], int | None]


def sink(module: Module, wanted: Callable[[Operation], bool], target: Target) -> bool:
    """Moves the ``wanted`` operations of every function to where ``target`` says. Whether any was moved."""
    moved = False
    # An operation may be followed by another one that is to be moved: the last ones first.
    for operation in [one for one in reversed(list(module.walk())) if wanted(one)]:
        assert operation.block is not None
        operations = operation.block.operations
        before = target(operation.block, operation, operations.index(operation))
        if before is not None:
            Rewriter.before(operations[before]).move(operation)
            moved = True
    return moved
