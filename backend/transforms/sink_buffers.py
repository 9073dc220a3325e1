"""Moves the filling of buffers in shared memory down to their first use.

Upstream's passes fill a buffer as soon as the value is there. Where values are many and memory is short, buffers that
are filled late can have the bytes of those that are no longer read; until then the values are in registers.
"""

from __future__ import annotations

from ..ttgir.ir import Block, Module, Operation
from ..ttgir.types import MemDescType


def sink_buffers(module: Module) -> bool:
    """Moves the ``ttg.local_alloc`` of every function that have a value. Whether any was moved."""
    moved = False
    for function in module.functions.values():
        for block in function.body.blocks if function.body is not None else ():
            moved = _sink(block) or moved
    return moved


def _sink(block: Block) -> bool:
    moved = False
    # The first use of a buffer may be a load that another buffer is filled from: the last ones first.
    for operation in reversed(list(block.operations)):
        for region in operation.regions:
            for inner in region.blocks:
                moved = _sink(inner) or moved
        if _is_filled(operation):
            place = block.operations.index(operation)
            target = _first_use(block, operation, place)
            if target > place + 1:
                block.operations.insert(target - 1, block.operations.pop(place))
                moved = True
    return moved


def _is_filled(operation: Operation) -> bool:
    """Whether it fills a buffer that is never written again: whose type is not ``mutable``."""
    if operation.name != "ttg.local_alloc" or not operation.operands:
        return False
    type_ = operation.result.type
    return isinstance(type_, MemDescType) and not type_.mutable


def _first_use(block: Block, alloc: Operation, place: int) -> int:
    """The place of the first operation of the block that uses the buffer, or has one inside that does."""
    for number in range(place + 1, len(block.operations)):
        if any(alloc.result in operation.operands for operation in block.operations[number].walk()):
            return number
    return place + 1
