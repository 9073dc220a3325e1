"""Moving operations down in their blocks: what the rewrites that sink loads and buffers share."""

from __future__ import annotations

from collections.abc import Callable

from ..ttgir.ir import Block, Module, Operation

#: (block, operation, its place in it) → the place of the operation that it goes right before; None where it stays.
Target = Callable[[Block, Operation, int], int | None]


def sink(module: Module, wanted: Callable[[Operation], bool], target: Target) -> bool:
    """Moves the ``wanted`` operations of every function to where ``target`` says. Whether any was moved."""
    moved = False
    for function in module.functions.values():
        for block in function.body.blocks if function.body is not None else ():
            moved = _sink(block, wanted, target) or moved
    return moved


def _sink(block: Block, wanted: Callable[[Operation], bool], target: Target) -> bool:
    moved = False
    # An operation may be followed by another one that is to be moved: the last ones first.
    for operation in reversed(list(block.operations)):
        for region in operation.regions:
            for inner in region.blocks:
                moved = _sink(inner, wanted, target) or moved
        if not wanted(operation):
            continue
        place = block.operations.index(operation)
        before = target(block, operation, place)
        if before is not None:
            block.operations.insert(before - 1, block.operations.pop(place))
            moved = True
    return moved
