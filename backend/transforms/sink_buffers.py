"""Moves the filling of buffers in shared memory down to their first use.

Upstream's passes fill a buffer as soon as the value is there. Where values are many and memory is short, buffers that
are filled late can have the bytes of those that are no longer read; until then the values are in registers.
"""

from __future__ import annotations

from ..ttgir.ir import Block, Module, Operation
from ..ttgir.types import MemDescType
from .sinking import sink


def sink_buffers(module: Module) -> bool:
    """Moves the ``ttg.local_alloc`` of every function that have a value. Whether any was moved."""
    return sink(module, is_filled, _first_use)


def is_filled(operation: Operation) -> bool:
    """Whether it fills a buffer that is never written again: whose type is not ``mutable``."""
    if operation.name != "ttg.local_alloc" or not operation.operands:
        return False
    type_ = operation.result.type
    return isinstance(type_, MemDescType) and not type_.mutable


def _first_use(block: Block, alloc: Operation, place: int) -> int | None:
    """The place of the first operation of the block that uses the buffer, or has one inside that does; None where it is
    the next one."""
    for number in range(place + 1, len(block.operations)):
        if any(alloc.result in operation.operands for operation in block.operations[number].walk()):
            return number if number > place + 1 else None
    return None
