"""Barriers that upstream's membar analysis counts on without inserting them.

Membar takes an operation that was given scratch memory (``allocation.offset``) to write it, wait for all invocations,
and read it: that wait also orders the accesses to *other* buffers before and after the operation, so none is inserted
for them. Where layouts hold copies of elements in several subgroups, the lowering may find all that it needs in the
invocation's own subgroup and emit neither scratch accesses nor the wait. Then the wait has to be made up for.
"""

from __future__ import annotations

from collections.abc import Container

from ..ttgir.ir import Operation
from ..ttgir.traits import Memory, in_loop, traits
from .barrier_filter import BARRIER


def stands_for_barrier(operation: Operation, shared_used: bool, weaker: Container[Operation] = ()) -> bool:
    """Whether a barrier must take the place of ``operation``, which was lowered without any.

    Not where a barrier of membar's comes right before it, nor where no shared memory was accessed before
    (``shared_used``), unless a loop comes back to the operation after it was. Barriers in ``weaker`` do not count.
    """
    if "allocation.offset" not in operation.attributes or traits(operation).memory is Memory.BUFFER:
        return False
    block = operation.block
    assert block is not None
    place = next(index for index, other in enumerate(block.operations) if other is operation)
    if place and block.operations[place - 1].name == BARRIER and block.operations[place - 1] not in weaker:
        return False
    return shared_used or in_loop(operation)
